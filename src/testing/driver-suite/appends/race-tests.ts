import assert from 'node:assert/strict'
import type { Append, AppendResult, Driver, Expect, LogKey } from '../../../log/contract.js'
import { expectAfter, makeAppend, makeEntry, mustAppend } from '../../entries.js'
import { branchId, createLog, headOf, LONG_MS, logKey, type SuiteTest } from '../suite-context.js'

export const raceTests: readonly SuiteTest[] = [
  {
    name: 'lets exactly one of two racing writers win, round after round',
    timeoutMs: 600_000,
    async run({ driver, open, tenant, rounds }) {
      await raceAppends([driver, await open()], logKey(tenant), rounds)
    },
  },
  {
    name: 'lets exactly one of three racing writers win',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      await raceAppends([driver, await open(), await open()], logKey(tenant), Math.ceil(rounds / 10))
    },
  },
  {
    name: 'lets exactly one of two writers win that share one driver',
    timeoutMs: 300_000,
    async run({ driver, tenant, rounds }) {
      await raceAppends([driver, driver], logKey(tenant), Math.ceil(rounds / 10))
    },
  },
  {
    name: 'lets exactly one of three creators of the same log win',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const drivers = [driver, await open(), await open()]
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const log = logKey(tenant, `thread-${round}`)
        await race(drivers, () => makeAppend(log, null, { count: 2 }), log)
        assert.equal((await driver.read(log, 0, 10)).length, 2)
      }
    },
  },
  {
    name: 'lets exactly one of two identical claims win',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const drivers = [driver, await open()]
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const log = logKey(tenant, `thread-${round}`)
        const at = await createLog(driver, log)
        // The same owner, the same bytes, the same hash: nothing but the order tells them apart.
        const claim = makeAppend(log, at, {
          seed: 'same',
          lease: { kind: 'claim', owner: 'worker', ms: LONG_MS, force: false },
        })
        const results = await Promise.all(drivers.map((each) => each.append([claim])))
        const statuses = results.map(([result]) => result?.status)
        assert.deepEqual(statuses.toSorted(), ['appended', 'conflict'])
        const head = await headOf(driver, log)
        assert.equal(head.epoch, 1)
        assert.equal(head.seq, 1)
      }
    },
  },
  {
    name: 'lets exactly one of two forced claims win, and fences the one it took over from',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const drivers = [driver, await open()]
      const log = logKey(tenant)
      const claim = (owner: string) => ({ kind: 'claim', owner, ms: LONG_MS, force: true }) as const
      let at = await createLog(driver, log, { lease: claim('first') })
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const before = at
        const winner = await race(drivers, (i) => makeAppend(log, before, { lease: claim(`w${i}`) }), log)
        at = expectAfter(winner)
        const late = await driver.append([makeAppend(log, before)])
        assert.equal(late[0]?.status, 'conflict')
        assert.equal(late[0]?.status === 'conflict' && late[0].head?.epoch, at.epoch)
      }
    },
  },
  {
    name: 'either erases a log or appends to it when both happen at once, never both',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const log = logKey(tenant, `thread-${round}`)
        const at = await createLog(driver, log)
        const append = makeAppend(log, at)
        const expect = [{ branch: log.branch, incarnation: at.incarnation, seq: at.seq }]
        const [[appended], erased] = await Promise.all([
          driver.append([append]),
          other.erase({ tenant, thread: log.thread, expect, tombstone: { at: 1, reason: 'race' } }),
        ])
        const head = await driver.head(log)
        if (appended?.status === 'appended') {
          assert.equal(erased, 'conflict')
          assert.equal(head?.hash, expectAfter(append).hash)
          assert.equal(await driver.tombstone(tenant, log.thread), undefined)
        } else {
          assert.deepEqual(appended, { status: 'conflict', head: undefined })
          assert.deepEqual(erased, { erased: 1 })
          assert.equal(head, undefined)
          assert.deepEqual({ ...(await driver.tombstone(tenant, log.thread)) }, { at: 1, reason: 'race' })
        }
      }
    },
  },
  {
    name: 'leaves nothing of a thread that is erased while it is being forked',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const log = logKey(tenant, `thread-${round}`)
        const at = await createLog(driver, log)
        const requires = { branch: log.branch, incarnation: at.incarnation }
        const fork = { ...log, branch: branchId('fork') }
        const [forked, erased] = await Promise.all([
          driver.append([makeAppend(fork, null, { requires })]),
          other.erase({ tenant, thread: log.thread, tombstone: null }),
        ])
        assert.deepEqual(erased, { erased: forked[0]?.status === 'appended' ? 2 : 1 })
        assert.equal(await driver.head(log), undefined)
        assert.equal(await driver.head(fork), undefined)
      }
    },
  },
  {
    name: 'prunes and appends at the same time without losing either',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const other = await open()
      const log = logKey(tenant)
      let at = await createLog(driver, log)
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const append = makeAppend(log, at, { count: 2 })
        const [[appended], pruned] = await Promise.all([
          driver.append([append]),
          other.prune(log, at.incarnation, at.seq),
        ])
        assert.deepEqual(appended, { status: 'appended' })
        assert.deepEqual(pruned, { removed: round === 0 ? 0 : 2 })
        const head = await headOf(driver, log)
        assert.deepEqual({ ...head.base }, { seq: at.seq, hash: at.hash })
        at = expectAfter(append)
        assert.equal(head.hash, at.hash)
      }
    },
  },
  {
    name: 'reads a head and its entries from one snapshot while others append and prune',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const writer = await open()
      const log = logKey(tenant)
      let at = await createLog(driver, log)
      let keyframe = 0
      let writing = true
      const write = async () => {
        for (let i = 0; i < Math.ceil(rounds / 10); i++) {
          const seq = at.seq + 1
          if (seq % 5 === 0) keyframe = seq
          at = await mustAppend(writer, makeAppend(log, at, { entries: [makeEntry({ seq, keyframe })] }))
          if (seq % 20 === 0) assert.notEqual(await writer.prune(log, at.incarnation, keyframe), 'conflict')
        }
        writing = false
      }
      const read = async () => {
        for (let looks = 0; writing || looks < 3; looks++) {
          const tail = await driver.tail(log)
          assert.ok(tail)
          const { head, entries } = tail
          assert.equal(entries[0]?.keyframe, entries[0]?.seq, 'begins with a keyframe')
          assert.equal(entries.at(-1)?.hash, head.hash, 'ends where the head says')
          assert.ok((entries[0]?.seq ?? -1) >= head.base.seq)
          for (const [i, entry] of entries.entries()) assert.equal(entry.seq, (entries[0]?.seq ?? 0) + i)
        }
      }
      await Promise.all([write(), read()])
    },
  },
]

async function raceAppends(drivers: readonly Driver[], log: LogKey, rounds: number): Promise<void> {
  let at: Expect = await createLog(drivers[0] as Driver, log)
  for (let round = 0; round < rounds; round++) {
    const before = at
    at = expectAfter(await race(drivers, () => makeAppend(log, before), log))
  }
  const head = await headOf(drivers[0] as Driver, log)
  assert.equal(head.seq, rounds)
  assert.equal(head.hash, at.hash)
  const entries = await (drivers[0] as Driver).read(log, 0, rounds + 10)
  assert.deepEqual(
    entries.map((entry) => entry.seq),
    Array.from({ length: rounds + 1 }, (_, seq) => seq),
  )
}

/** All at once; asserts that exactly one landed and that the others conflict with it, and returns that one. */
async function race(drivers: readonly Driver[], make: (i: number) => Append, log: LogKey): Promise<Append> {
  const appends = drivers.map((_, i) => make(i))
  const results = await Promise.all(drivers.map((driver, i) => driver.append([appends[i] as Append])))
  const flat = results.map(([result]) => result as AppendResult)
  const winners = appends.filter((_, i) => flat[i]?.status === 'appended')
  assert.equal(winners.length, 1, `exactly one wins, not ${winners.length}`)
  const winner = winners[0] as Append
  for (const result of flat) {
    if (result.status === 'appended') continue
    assert.equal(result.status, 'conflict')
    assert.equal(result.status === 'conflict' && result.head?.hash, expectAfter(winner).hash)
  }
  assert.deepEqual((await (drivers[0] as Driver).head(log))?.hash, expectAfter(winner).hash)
  return winner
}
