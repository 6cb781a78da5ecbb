import { isHoldfastError } from 'holdfast'
import { type Log, LogStore, ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore, type MemoryStore } from '#src/drivers/memory/memory-store.js'
import type { Driver } from '#src/log/contract.js'
import { logKey } from '../support/keyed-store.js'

const { set } = ops

const LOG = logKey('talk')

async function readAll(entries: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of entries);
}

const operations = {
  refresh: (log) => log.refresh(),
  update: (log) => log.update(() => [{ kind: 'step', ops: [set('mine', true)] }]),
  reopen: (log) => log.reopen(),
  entries: (log) => readAll(log.entries(0, 9)),
  'entries after a known one': (log) => readAll(log.entries(1, 9, log.fold)),
  at: (log) => log.at(0),
  tail: (log) => log.tail(0),
} satisfies Record<string, (log: Log) => Promise<unknown>>

/** What others made of the log in the place of the one that is read. */
const successors = { nothing: 0, 'a shorter one': 1, 'one as long': 4, 'a longer one': 7 }

async function write(store: MemoryStore, count: number): Promise<void> {
  const log = await new LogStore(await openMemory({ store })).open(LOG)
  for (let i = 0; i < count; i++) await log.update(() => [{ kind: 'step', ops: [set(`of ${count}`, i)] }])
}

/** Does it on a log that others erase right before the given call to the driver; returns whether it got that far. */
async function interrupt(name: keyof typeof operations, call: number, count: number): Promise<boolean> {
  const store = createMemoryStore()
  const driver = await openMemory({ store })
  let calls = -1
  const racing = new Proxy(driver, {
    get(target, property: keyof Driver) {
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function' || property === 'close') return value
      return async (...args: unknown[]) => {
        if (calls >= 0 && calls++ === call) {
          const others = await openMemory({ store })
          const { tenant, thread } = LOG
          await others.erase({ tenant, thread, tombstone: { at: Date.now(), reason: 'expired' } })
          if (count > 0) await write(store, count)
        }
        return (value as (...args: unknown[]) => unknown).apply(target, args)
      }
    },
  })
  const log = await new LogStore(racing).open(LOG)
  await log.update(() => [{ kind: 'step', ops: [set('i', 0)] }])
  await write(store, 3)
  calls = 0
  await (operations[name] as (log: Log) => Promise<unknown>)(log).catch((error: unknown) => {
    const isTold = isHoldfastError(error, 'not-found') || isHoldfastError(error, 'conflict')
    if (!isTold) throw error
  })
  return calls > call
}

describe.each(Object.keys(operations) as (keyof typeof operations)[])('%s of a log that others erase', (name) => {
  it.each(Object.entries(successors))('takes it for no damage and no loss: %s in its place', async (_, count) => {
    for (let call = 0; await interrupt(name, call, count); call++) expect(call).toBeLessThan(50)
  })
})
