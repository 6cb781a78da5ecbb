import { isHoldfastError } from 'holdfast'
import { type Log, LogStore, ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import type { Driver } from '#src/log/contract.js'
import { logKey } from '../support/keyed-store.js'

const { set } = ops

const LOG = logKey('talk')
const NEWEST = 8

async function readAll(entries: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of entries);
}

const operations = {
  refresh: (log) => log.refresh(),
  update: (log) => log.update(() => [{ kind: 'step', ops: [set('mine', true)] }]),
  reopen: (log) => log.reopen(),
  entries: (log) => readAll(log.entries(0, NEWEST)),
  'entries after a known one': (log) => readAll(log.entries(1, NEWEST, log.fold)),
  at: (log) => log.at(0),
  tail: (log) => log.tail(0),
} satisfies Record<string, (log: Log) => Promise<unknown>>

/** Does it on a log that others cut right before the given call to the driver; returns whether it got that far. */
async function interrupt(name: keyof typeof operations, call: number, cut: number): Promise<boolean> {
  const store = createMemoryStore()
  const driver = await openMemory({ store })
  let calls = -1
  const racing = new Proxy(driver, {
    get(target, property: keyof Driver) {
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function' || property === 'close') return value
      return async (...args: unknown[]) => {
        if (calls >= 0 && calls++ === call) await new LogStore(await openMemory({ store })).prune(LOG, cut)
        return (value as (...args: unknown[]) => unknown).apply(target, args)
      }
    },
  })
  const log = await new LogStore(racing).open(LOG)
  await log.update(() => [{ kind: 'step', ops: [set('i', 0)] }])
  const others = await new LogStore(await openMemory({ store })).open(LOG)
  for (let i = 1; i <= NEWEST; i++) await others.update(() => [{ kind: 'step', ops: [set('i', i)] }])
  calls = 0
  await (operations[name] as (log: Log) => Promise<unknown>)(log).catch((error: unknown) => {
    // What was asked for may be gone; then it is said to be pruned, and nothing else.
    if (!isHoldfastError(error, 'not-found')) throw error
  })
  const reached = calls > call
  calls = -1
  expect((await log.refresh()).state).toMatchObject({ i: NEWEST })
  return reached
}

describe.each(Object.keys(operations) as (keyof typeof operations)[])('%s of a log that others cut', (name) => {
  it.each([1, 2, 5, NEWEST])('takes it for no damage and no loss: cut at %i', async (cut) => {
    for (let call = 0; await interrupt(name, call, cut); call++) expect(call).toBeLessThan(50)
  })
})
