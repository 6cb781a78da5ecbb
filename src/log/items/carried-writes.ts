import { createHash } from 'node:crypto'
import { readVector } from '../../codec/item.js'
import { encodeValue } from '../../codec/value.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { Driver, LogKey } from '../contract.js'
import type { Fold } from '../entry/fold.js'
import type { LogEnvironment } from '../log-environment.js'
import type { CarriedWrite, ItemDriver } from '../store-contract.js'
import type { StoreWrite } from './store-write.js'

/**
 * Makes the writes of an entry ready for the driver. The version follows from log, seq and key, so that a redo leaves
 * the very item that the first application would have.
 */
export async function carryWrites(
  { driver, items, limits }: Pick<LogEnvironment, 'driver' | 'items' | 'limits'>,
  log: LogKey,
  { incarnation, seq, at }: Pick<Fold, 'incarnation' | 'seq' | 'at'>,
  store: readonly StoreWrite[],
): Promise<CarriedWrite[]> {
  itemDriver(driver)
  const carried: CarriedWrite[] = []
  for (const write of newestOnly(store)) {
    const [kind, space, key] = write
    if (kind === 'delete') {
      carried.push({ seq, space, key, item: null, at })
      continue
    }
    const [, , , value, expiresAt, extras = {}] = write
    const vector = extras.vector && readVector(extras.vector)
    const version = versionOf(incarnation, seq, space, key)
    const content = encodeValue(value, limits)
    const item = await items.seal(log.tenant, {
      space,
      key,
      content,
      expiresAt,
      renewable: extras.renewable,
      index: extras.index,
      vector,
      version,
      at,
    })
    carried.push({ seq, space, key, item, at })
  }
  return carried
}

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
  const name = JSON.stringify([incarnation, seq, space, key])
  return createHash('sha256').update(name).digest('base64url').slice(0, 16)
}
