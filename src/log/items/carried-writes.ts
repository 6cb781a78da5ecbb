import { hash } from 'node:crypto'
import { readVector } from '../../codec/item.js'
import { encodeValue } from '../../codec/value.js'
import { andThen, forEachInTurn } from '../../core/async/at-once.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { Driver, LogKey } from '../contract.js'
import type { Fold } from '../entry/fold.js'
import type { LogEnvironment } from '../log-environment.js'
import type { CarriedWrite, ItemDriver } from '../store-contract.js'
import type { StoreWrite, WriteExtras } from './store-write.js'

/**
 * Makes the writes of an entry ready for the driver. The version follows from log, seq and key, so that a redo leaves
 * the very item that the first application would have.
 */
export function carryWrites(
  { driver, items, limits }: Pick<LogEnvironment, 'driver' | 'items' | 'limits'>,
  log: LogKey,
  { incarnation, seq, at }: Pick<Fold, 'incarnation' | 'seq' | 'at'>,
  store: readonly StoreWrite[],
): CarriedWrite[] | Promise<CarriedWrite[]> {
  itemDriver(driver)
  const carried: CarriedWrite[] = []
  const carrying = forEachInTurn(newestOnly(store), (write) => {
    const [kind, space, key] = write
    const add = (item: CarriedWrite['item']): undefined => void carried.push({ seq, space, key, item, at })
    if (kind === 'delete') return add(null)
    const [, , , value, expiresAt, { vector, renewable, index } = NO_EXTRAS] = write
    const sealing = items.seal(log.tenant, {
      space,
      key,
      content: encodeValue(value, limits),
      expiresAt,
      renewable,
      index,
      vector: vector && readVector(vector),
      version: versionOf(incarnation, seq, space, key),
      at,
    })
    return andThen(sealing, add)
  })
  return andThen(carrying, () => carried)
}

const NO_EXTRAS: WriteExtras = {}

/** Of several writes to one item only the last: drivers take one per item, and nobody could have seen the others. */
export function newestPerItem(writes: readonly CarriedWrite[]): readonly CarriedWrite[] {
  if (writes.length < 2) return writes
  return [...new Map(writes.map((write) => [JSON.stringify([write.space, write.key]), write])).values()]
}

function newestOnly(store: readonly StoreWrite[]): readonly StoreWrite[] {
  if (store.length < 2) return store
  return [...new Map(store.map((write) => [JSON.stringify([write[1], write[2]]), write])).values()]
}

/** The driver, if it keeps items. */
export function itemDriver(driver: Driver): Driver & ItemDriver {
  if (driver.writeItems !== undefined) return driver as Driver & ItemDriver
  throw new InvalidOptionError('store', `is not offered by the ${driver.name} driver`, 'Use a backend with a store.')
}

function versionOf(incarnation: string, seq: number, space: string, key: string): string {
  return hash('sha256', JSON.stringify([incarnation, seq, space, key]), 'base64url').slice(0, 16)
}
