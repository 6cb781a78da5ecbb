import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import type { Append, Driver } from '#src/log/contract.js'
import { type DriverSuiteOptions, driverSuite } from '#src/testing/driver-suite.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import { describe, expect, it } from 'vitest'

type Break = (driver: Driver) => Partial<Driver>

const skipsTest = 'skips only tests that exist, and gives a reason for each'

/** The tests of the suite over a memory driver in which something is broken. */
function collect(spoil: Break = () => ({}), options: Omit<DriverSuiteOptions, 'framework'> = {}) {
  const tests = new Map<string, () => Promise<void> | void>()
  const skipped: string[] = []
  const setup = async () => {
    const clock = virtualClock()
    const store = createMemoryStore({ clock })
    const open = async (): Promise<Driver> => {
      const driver = await openMemory({ store })
      return { ...driver, ...spoil(driver) }
    }
    return { open, advance: (ms: number) => clock.advance(ms), cleanup: async () => store.threads.clear() }
  }
  const framework = {
    describe: (_name: string, body: () => void) => body(),
    it: (name: string, body: () => Promise<void> | void) => void tests.set(name, body),
    skip: (name: string) => void skipped.push(name),
  }
  driverSuite('broken', setup, { framework, rounds: 20, ...options })
  return { tests, skipped }
}

async function run(name: string, spoil?: Break): Promise<void> {
  const test = collect(spoil).tests.get(name)
  if (test === undefined) throw new TypeError(`The suite has no test "${name}".`)
  await test()
}

/** Each way to break a promise, and the test that must notice. */
const faults: readonly (readonly [fault: string, noticedBy: string, spoil: Break])[] = [
  [
    'has a transact that it does not declare',
    'has transact exactly when it declares transactions',
    () => ({ transact: async () => ({ status: 'appended' }) }),
  ],
  [
    'compares no hash',
    'refuses an append that expects another hash, returns the head and writes nothing',
    (driver) => ({ append: (batch) => withExpect(driver, batch, (expect, head) => ({ ...expect, hash: head.hash })) }),
  ],
  [
    'compares no epoch',
    'refuses an append that expects another epoch, returns the head and writes nothing',
    (driver) => ({
      append: (batch) => withExpect(driver, batch, (expect, head) => ({ ...expect, epoch: head.epoch })),
    }),
  ],
  [
    'checks, then writes',
    'lets exactly one of two racing writers win, round after round',
    (driver) => ({
      async append(batch) {
        const ok = await Promise.all(
          batch.map(async ({ log, expect }) => (await driver.head(log))?.hash === expect?.hash),
        )
        await new Promise((resolve) => setImmediate(resolve))
        if (ok.includes(false)) return driver.append(batch)
        return withExpect(driver, batch, (_, head) => head)
      },
    }),
  ],
  [
    'fails the whole batch for one conflict',
    'answers by index in a batch where some conflict, some are held and the others land',
    (driver) => ({
      async append(batch) {
        for (const append of batch) {
          const head = await driver.head(append.log)
          if (head?.hash !== append.expect?.hash) return batch.map(() => ({ status: 'conflict', head }))
        }
        return driver.append(batch)
      },
    }),
  ],
  [
    'says nothing of the head in a conflict',
    'refuses to create a log that exists and returns its head',
    (driver) => ({
      append: async (batch) =>
        (await driver.append(batch)).map((result) =>
          result.status === 'conflict' ? { status: 'conflict', head: undefined } : result,
        ),
    }),
  ],
  [
    'forces every claim',
    'holds off a claim while a lease runs, says whose it is and writes nothing',
    (driver) => ({
      append: (batch) =>
        driver.append(
          batch.map((append) =>
            append.lease.kind === 'claim' ? { ...append, lease: { ...append.lease, force: true } } : append,
          ),
        ),
    }),
  ],
  [
    'prolongs the lease with every append',
    'never prolongs a lease by an append that keeps it',
    (driver) => ({
      append: (batch) =>
        driver.append(
          batch.map((append) =>
            append.lease.kind === 'keep' && append.epoch > 0
              ? { ...append, lease: { kind: 'extend', ms: 600_000 } }
              : append,
          ),
        ),
    }),
  ],
  [
    'renews for anyone',
    'does not renew another epoch, nor a log that does not exist',
    () => ({ renew: async () => true }),
  ],
  [
    'returns the newest state for any that does not exist',
    'returns the head and no entries for a state before the base or behind the head',
    (driver) => ({
      tail: async (log, upTo) => driver.tail(log, upTo && Math.min(upTo, (await driver.head(log))?.seq ?? 0)),
    }),
  ],
  [
    'starts at the first entry instead of the keyframe',
    'reads any past state: from the newest keyframe at or before it, up to exactly there',
    (driver) => ({
      async tail(log, upTo) {
        const tail = await driver.tail(log, upTo)
        return tail && { ...tail, entries: await driver.read(log, 0, (upTo ?? tail.head.seq) + 1) }
      },
    }),
  ],
  [
    'cuts pages at ten entries',
    'reads entries in pages that are short only at the end',
    (driver) => ({ read: (log, from, limit) => driver.read(log, from, Math.min(limit, 10)) }),
  ],
  [
    'loses the last byte',
    'returns header and body byte for byte: empty, every byte value, text that looks like an escape',
    (driver) => ({
      read: async (...args) =>
        (await driver.read(...args)).map((entry) => ({ ...entry, body: entry.body.slice(0, -1) })),
    }),
  ],
  [
    'prunes to any entry',
    'refuses to prune to an entry that is no keyframe, or that does not exist yet',
    (driver) => ({
      prune: async (log, incarnation, seq) => {
        const result = await driver.prune(log, incarnation, seq)
        return result === 'conflict' ? { removed: 0 } : result
      },
    }),
  ],
  [
    'erases whatever is there',
    'erases nothing when the logs are not exactly the expected ones',
    (driver) => ({
      erase: ({ tenant, thread, tombstone }) => driver.erase({ tenant, thread, tombstone }),
    }),
  ],
  [
    'leaves no tombstones',
    'leaves a tombstone when the last branch of a thread goes',
    (driver) => ({ erase: (request) => driver.erase({ ...request, tombstone: null }) }),
  ],
  [
    'removes blobs whatever happened to them',
    'removes a blob only if it was not touched since',
    (driver) => ({
      removeBlob: async (tenant, hash) => {
        const found = (await driver.listBlobs(tenant, { limit: 1000 })).find((blob) => blob.hash === hash)
        return found !== undefined && driver.removeBlob(tenant, hash, found.touchedAt)
      },
    }),
  ],
  [
    'rounds touches to milliseconds',
    'makes touchedAt strictly later with every touch, also within one millisecond',
    (driver) => ({
      listBlobs: async (...args) =>
        (await driver.listBlobs(...args)).map((blob) => ({ ...blob, touchedAt: Math.floor(blob.touchedAt) })),
    }),
  ],
  [
    'treats a tag as a pattern',
    'finds each tag by exactly its characters, whatever they are',
    (driver) => ({
      async heads({ tags, ...query }) {
        const page = await driver.heads({ ...query, limit: 1000 })
        const like = (tag: string) =>
          new RegExp(
            `^${tag
              .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
              .replace(/%/g, '.*')
              .replace(/_/g, '.')}$`,
          )
        return {
          heads: page.heads.filter((head) => tags?.every((tag) => head.index.tags.some((own) => like(tag).test(own)))),
        }
      },
    }),
  ],
  [
    'stores metadata as text',
    'tells numbers, strings and booleans apart in metadata',
    (driver) => ({
      append: (batch) =>
        driver.append(
          batch.map((append) => {
            const metadata = Object.entries(append.index.metadata).map(([key, value]) => [key, String(value)])
            return { ...append, index: { ...append.index, metadata: Object.fromEntries(metadata) } }
          }),
        ),
    }),
  ],
  [
    'pages by position',
    'returns each log exactly once in created order while logs are written, created and erased between pages',
    (driver) => ({
      async heads({ cursor, ...query }) {
        const { heads } = await driver.heads({ ...query, limit: 1000 })
        const from = Number(cursor ?? 0)
        const page = heads.slice(from, from + query.limit)
        return { heads: page, ...(page.length === query.limit ? { cursor: String(from + query.limit) } : {}) }
      },
    }),
  ],
  [
    'ignores the case of ids',
    'carries a thread id of any characters through every method',
    (driver) => ({
      append: (batch) => driver.append(batch.map((append) => ({ ...append, log: lowerCase(append.log) }))),
      head: (log) => driver.head(lowerCase(log)),
    }),
  ],
  [
    'normalizes ids',
    'carries a branch id of any characters through every method',
    (driver) => ({
      append: (batch) =>
        driver.append(
          batch.map((append) => ({
            ...append,
            log: { ...append.log, branch: append.log.branch.normalize() as Append['log']['branch'] },
          })),
        ),
    }),
  ],
  ['forgets to close', 'rejects every method with a ClosedError after close', () => ({ close: async () => {} })],
]

describe('driverSuite', () => {
  it.each(faults.map(([fault, noticedBy, spoil]) => ({ fault, noticedBy, spoil })))(
    'notices a driver that $fault',
    async ({ noticedBy, spoil }) => {
      await run(noticedBy)
      await expect(run(noticedBy, spoil)).rejects.toMatchObject({ code: 'ERR_ASSERTION' })
    },
  )

  it('fails when a skip names no test or gives no reason', async () => {
    const name = faults[0]![1]
    for (const skips of [[{ skip: 'no such test', reason: 'why not' }], [{ skip: name, reason: ' ' }]]) {
      const { tests } = collect(undefined, { skips })
      await expect((async () => tests.get(skipsTest)?.())()).rejects.toThrow(/no test|no reason/)
    }
  })

  it('leaves out a test that is skipped with a reason, and shows both', async () => {
    const name = faults[0]![1]
    const { tests, skipped } = collect(undefined, { skips: [{ skip: name, reason: 'a good reason' }] })
    await tests.get(skipsTest)?.()
    expect(tests.has(name)).toBe(false)
    expect(skipped).toEqual([`${name} (skipped: a good reason)`])
  })

  it('closes and cleans up also when a test fails, and shows the failure of the test', async () => {
    let cleaned = 0
    const tests = new Map<string, () => Promise<void> | void>()
    const framework = {
      describe: (_name: string, body: () => void) => body(),
      it: (name: string, body: () => Promise<void> | void) => void tests.set(name, body),
    }
    const setup = async () => ({
      open: async () => ({
        ...(await openMemory()),
        head: () => Promise.reject(new Error('the cause')),
        close: () => Promise.reject(new Error('the consequence')),
      }),
      cleanup: async () => void cleaned++,
    })
    driverSuite('failing', setup, { framework })
    await expect(
      (async () => tests.get('does not renew another epoch, nor a log that does not exist')?.())(),
    ).rejects.toThrow('the cause')
    expect(cleaned).toBe(1)
  })
})

async function withExpect(
  driver: Driver,
  batch: readonly Append[],
  change: (expect: NonNullable<Append['expect']>, head: NonNullable<Append['expect']>) => NonNullable<Append['expect']>,
) {
  const changed = await Promise.all(
    batch.map(async (append) => {
      const head = await driver.head(append.log)
      if (append.expect === null || head === undefined) return append
      const { incarnation, seq, hash, epoch } = change(append.expect, head)
      const shift = seq - append.expect.seq
      const entries = append.entries.map((entry) => ({
        ...entry,
        seq: entry.seq + shift,
        keyframe: entry.keyframe + shift,
      }))
      const raised = append.lease.kind === 'claim' ? epoch + 1 : epoch
      return { ...append, incarnation, epoch: raised, entries, expect: { incarnation, seq, hash, epoch } }
    }),
  )
  return driver.append(changed)
}

function lowerCase(log: Append['log']): Append['log'] {
  return { ...log, thread: log.thread.toLowerCase() as Append['log']['thread'] }
}
