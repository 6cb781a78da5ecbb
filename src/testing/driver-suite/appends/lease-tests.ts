import assert from 'node:assert/strict'
import type { Expect, LeaseChange } from '../../../log/contract.js'
import { makeAppend, mustAppend } from '../../entries.js'
import {
  appendOne,
  assertRemaining,
  assertSameHead,
  assertUnchanged,
  claim,
  createLog,
  headOf,
  LONG_MS,
  logKey,
  PAST_SHORT_MS,
  SHORT_MS,
  type SuiteTest,
} from '../suite-context.js'

export const leaseTests: readonly SuiteTest[] = [
  {
    name: 'claims a free log: the epoch rises by one and the lease runs',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log)
      assert.equal((await headOf(driver, log)).lease, null)
      await mustAppend(driver, makeAppend(log, at, { lease: claim('worker-1') }))
      const head = await headOf(driver, log)
      assert.equal(head.epoch, 1)
      assert.equal(head.lease?.owner, 'worker-1')
      assertRemaining(head.lease?.remainingMs, LONG_MS)
    },
  },
  {
    name: 'creates a log with a claim at epoch 1, without one at epoch 0',
    async run({ driver, tenant }) {
      await createLog(driver, logKey(tenant, 'claimed'), { lease: claim('worker') })
      await createLog(driver, logKey(tenant, 'plain'))
      const claimed = await headOf(driver, logKey(tenant, 'claimed'))
      assert.equal(claimed.epoch, 1)
      assert.equal(claimed.lease?.owner, 'worker')
      const plain = await headOf(driver, logKey(tenant, 'plain'))
      assert.equal(plain.epoch, 0)
      assert.equal(plain.lease, null)
    },
  },
  {
    name: 'holds off a claim while a lease runs, says whose it is and writes nothing',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('first') })
      const before = await headOf(driver, log)
      const entries = await driver.read(log, 0, 10)
      const result = await appendOne(driver, makeAppend(log, at, { lease: claim('second') }))
      assert.equal(result.status, 'held')
      if (result.status !== 'held') return
      assertSameHead(result.head, before)
      assertRemaining(result.head.lease?.remainingMs, LONG_MS)
      await assertUnchanged(driver, before, entries)
    },
  },
  {
    name: 'holds off a claim by the name of the owner itself: a worker that restarted is another worker',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('same') })
      assert.equal((await appendOne(driver, makeAppend(log, at, { lease: claim('same') }))).status, 'held')
      assert.equal((await headOf(driver, log)).epoch, 1)
    },
  },
  {
    name: 'lets a forced claim take over a running lease',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('first') })
      await mustAppend(driver, makeAppend(log, at, { lease: claim('second', 5000, true) }))
      const head = await headOf(driver, log)
      assert.equal(head.epoch, 2)
      assert.equal(head.lease?.owner, 'second')
      assertRemaining(head.lease?.remainingMs, 5000)
    },
  },
  {
    name: 'fences the old owner after a takeover, whatever it tries',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const old = await createLog(driver, log, { lease: claim('first') })
      await mustAppend(driver, makeAppend(log, old, { lease: claim('second', LONG_MS, true) }))
      const before = await headOf(driver, log)
      const entries = await driver.read(log, 0, 10)
      const tries: LeaseChange[] = [
        { kind: 'keep' },
        { kind: 'extend', ms: LONG_MS },
        { kind: 'release' },
        claim('first'),
        claim('first', LONG_MS, true),
      ]
      for (const lease of tries) {
        // Once as it last saw the log, and once with the newest seq and hash but its own old epoch.
        for (const expect of [old, { ...old, seq: before.seq, hash: before.hash }]) {
          const result = await appendOne(driver, makeAppend(log, expect, { lease }))
          assert.equal(result.status, 'conflict')
          assert.equal(result.status === 'conflict' && result.head?.epoch, 2)
        }
      }
      assert.equal(await driver.renew(log, old.incarnation, old.epoch, LONG_MS), false)
      await assertUnchanged(driver, before, entries)
    },
  },
  {
    name: 'answers a claim that saw an older log with a conflict, also while a lease runs',
    // So that a claim which landed but lost its acknowledgment finds itself instead of its own lease.
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log)
      const append = makeAppend(log, at, { lease: claim('worker') })
      await mustAppend(driver, append)
      const again = await appendOne(driver, append)
      assert.equal(again.status, 'conflict')
      assert.equal(again.status === 'conflict' && again.head?.hash, append.entries[0]?.hash)
    },
  },
  {
    name: 'reports a lease that ran out as none, and lets anyone claim',
    async run({ driver, tenant, advance }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('first', SHORT_MS) })
      await advance(PAST_SHORT_MS)
      const head = await headOf(driver, log)
      assert.equal(head.lease, null)
      assert.equal(head.epoch, 1)
      assert.equal((await driver.tail(log))?.head.lease, null)
      assert.equal((await driver.heads({ tenant, limit: 5 })).heads[0]?.lease, null)
      await mustAppend(driver, makeAppend(log, at, { lease: claim('second') }))
      const taken = await headOf(driver, log)
      assert.equal(taken.epoch, 2)
      assert.equal(taken.lease?.owner, 'second')
    },
  },
  {
    name: 'lets the owner of a lease that ran out go on until somebody else claims',
    async run({ driver, tenant, advance }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('slow', SHORT_MS) })
      await advance(PAST_SHORT_MS)
      await mustAppend(driver, makeAppend(log, at, { lease: { kind: 'extend', ms: LONG_MS } }))
      const head = await headOf(driver, log)
      assert.equal(head.lease?.owner, 'slow')
      assert.equal(head.epoch, 1)
    },
  },
  {
    name: 'never prolongs a lease by an append that keeps it',
    async run({ driver, tenant, advance }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('owner') })
      const before = (await headOf(driver, log)).lease
      await advance(50)
      await mustAppend(driver, makeAppend(log, at, { lease: { kind: 'keep' } }))
      const after = (await headOf(driver, log)).lease
      assert.equal(after?.owner, 'owner')
      assert.ok((after?.remainingMs ?? Number.NaN) < (before?.remainingMs ?? Number.NaN))
    },
  },
  {
    name: 'lets appends that keep the lease land while another holds it',
    async run({ driver, tenant, open }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('owner') })
      const next = await mustAppend(await open(), makeAppend(log, at))
      assert.equal(next.epoch, 1)
      assert.equal((await headOf(driver, log)).lease?.owner, 'owner')
    },
  },
  {
    name: 'ends the lease by the time an extension names, later or sooner',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      let at: Expect = await createLog(driver, log, { lease: claim('owner', 300_000) })
      at = await mustAppend(driver, makeAppend(log, at, { lease: { kind: 'extend', ms: 900_000 } }))
      const longer = (await headOf(driver, log)).lease
      assert.equal(longer?.owner, 'owner')
      assertRemaining(longer?.remainingMs, 900_000, 300_000)
      await mustAppend(driver, makeAppend(log, at, { lease: { kind: 'extend', ms: 200_000 } }))
      assertRemaining((await headOf(driver, log)).lease?.remainingMs, 200_000)
    },
  },
  {
    name: 'ends the lease now by a release: the next claim lands and the epoch goes on rising',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('first') })
      const released = await mustAppend(driver, makeAppend(log, at, { lease: { kind: 'release' } }))
      const head = await headOf(driver, log)
      assert.equal(head.lease, null)
      assert.equal(head.epoch, 1)
      await mustAppend(driver, makeAppend(log, released, { lease: claim('second') }))
      assert.equal((await headOf(driver, log)).epoch, 2)
    },
  },
  {
    name: 'keeps epochs rising through many claims and releases',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      let at = await createLog(driver, log)
      for (let epoch = 1; epoch <= 20; epoch++) {
        at = await mustAppend(driver, makeAppend(log, at, { lease: claim(`worker-${epoch}`) }))
        assert.equal((await headOf(driver, log)).epoch, epoch)
        at = await mustAppend(driver, makeAppend(log, at, { lease: { kind: 'release' } }))
      }
    },
  },
  {
    name: 'starts at epoch 0 and without a lease when an erased id is used again',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const old = await createLog(driver, log, { lease: claim('old') })
      await driver.erase({ tenant, thread: log.thread, tombstone: null })
      await createLog(driver, log)
      const head = await headOf(driver, log)
      assert.equal(head.epoch, 0)
      assert.equal(head.lease, null)
      assert.equal(await driver.renew(log, old.incarnation, 1, LONG_MS), false)
    },
  },
  {
    name: 'gives each branch of a thread its own lease and epoch',
    async run({ driver, tenant }) {
      const one = logKey(tenant, 'thread', 'one')
      const two = logKey(tenant, 'thread', 'two')
      await createLog(driver, one, { lease: claim('first') })
      const at = await createLog(driver, two)
      await mustAppend(driver, makeAppend(two, at, { lease: claim('second') }))
      assert.equal((await headOf(driver, one)).lease?.owner, 'first')
      assert.equal((await headOf(driver, two)).lease?.owner, 'second')
      await driver.renew(two, at.incarnation, 1, 0)
      assert.equal((await headOf(driver, one)).lease?.owner, 'first')
    },
  },
  {
    name: 'returns an owner of any characters as it was given',
    async run({ driver, tenant }) {
      const owners = ['host:1/worker', `quote ' " \\ %_`, '{"json":[1]}', 'emoji 🦀', ' spaces ', '__proto__', 'a:b|c']
      for (const [i, owner] of owners.entries()) {
        const log = logKey(tenant, `thread-${i}`)
        const at = await createLog(driver, log, { lease: claim(owner) })
        assert.equal((await headOf(driver, log)).lease?.owner, owner)
        const held = await appendOne(driver, makeAppend(log, at, { lease: claim('other') }))
        assert.equal(held.status === 'held' && held.head.lease?.owner, owner)
      }
    },
  },
]
