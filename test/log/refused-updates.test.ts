import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { explainFailure } from '#src/drivers/sqlite/connection/explain-failure.js'
import type { Driver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { randomly } from '../support/scale.js'

const { push } = ops

/** Refuses a batch with an entry that is too large for it, as SQLite does: by name, after rolling it all back. */
async function narrowDriver(limit: number): Promise<Driver> {
  const below = await openMemory()
  const tooBig = { kind: 'sqlite', errcode: 18, message: 'string or blob too big', written: 'nothing' } as const
  return {
    ...below,
    async append(batch) {
      const isTooBig = batch.some(({ entries }) => entries.some(({ body }) => body.length > limit))
      if (isTooBig) throw await explainFailure(tooBig, 'agents.db')
      return below.append(batch)
    },
  }
}

/** Not compressible. */
const BIG = randomBytes(5000).toString('hex')

const logOf = (thread: string) => ({
  tenant: parseTenantId('t'),
  thread: parseThreadId(thread),
  branch: parseBranchId('main'),
})

describe('an update that the backend refuses', () => {
  it('fails alone: those of the same log and of other logs that were sent with it land, in order', async () => {
    const update = fc.record({ log: fc.integer({ min: 0, max: 2 }), isBad: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(update, { minLength: 1, maxLength: 12 }), async (updates) => {
        await using store = new LogStore(await narrowDriver(2000))
        const logs = await Promise.all([0, 1, 2].map((i) => store.open(logOf(`log-${i}`))))
        const results = await Promise.allSettled(
          updates.map(({ log, isBad }, i) =>
            logs[log]?.update(() => [{ kind: 'input', ops: [push('got', `${i}${isBad ? BIG : ''}`)] }]),
          ),
        )
        for (const [i, { isBad }] of updates.entries()) {
          expect(results[i]).toMatchObject(
            isBad ? { status: 'rejected', reason: { code: 'too-large' } } : { status: 'fulfilled' },
          )
        }
        for (const [at, log] of logs.entries()) {
          const good = [...updates.entries()].filter(([, { log, isBad }]) => log === at && !isBad).map(([i]) => `${i}`)
          const stored = await store.open(log.key)
          expect(stored.fold.state).toEqual(good.length === 0 ? {} : { got: good })
          expect(log.fold.state).toEqual(stored.fold.state)
        }
      }),
      randomly(30),
    )
  })
})
