import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ThreadId } from 'holdfast'
import type { Head } from 'holdfast/driver'
import type { BranchId } from 'holdfast/log'
import { type expectAfter, makeAppend, makeBytes, makeEntry, makeHash, mustAppend } from '#src/testing/entries.js'
import { describe, it } from 'vitest'
import { rounds } from '../support/scale.js'
import {
  copyOf,
  killEverywhere,
  LAST,
  log,
  makeTemplate,
  open,
  prepare,
  start,
  stopEverywhere,
} from './file-crash-setup.js'

const FORK = 'fork' as BranchId

prepare()

async function recordsIn(folder: string): Promise<string[]> {
  const names = await readdir(join(folder, 'tenants', 'tenant', 'threads', 'thread'), { recursive: true })
  return names.filter((name) => name.endsWith('.rec')).sort()
}

describe('a process killed at any system call', () => {
  it('leaves an append whole or absent, and never loses an acknowledged one', async () => {
    const points = await killEverywhere(
      'append',
      async (driver, { acknowledged, point }) => {
        const head = (await driver.head(log)) as Head
        assert.ok(head.seq === LAST || head.seq === LAST + 2, `after a kill at ${point} the log ends at ${head.seq}`)
        if (acknowledged) assert.equal(head.seq, LAST + 2)
        const entries = await driver.read(log, 0, 100)
        assert.equal(entries.length, head.seq + 1)
        if (head.seq > LAST) {
          assert.deepEqual(
            Buffer.from(entries[LAST + 2]?.body ?? []),
            Buffer.from(makeEntry({ seq: LAST + 2, seed: 'child' }).body),
          )
        }
      },
      { flushes: true },
    )
    for (const call of ['create-file', 'write-file', 'flush-file', 'link', 'remove', 'flush-folder']) {
      assert.ok(points.includes(call), `${call} is one of ${points}`)
    }
  })

  it('creates a thread whole or not at all', async () => {
    const points = await killEverywhere('create', async (driver, { acknowledged, point }) => {
      const created = { ...log, thread: 'new' as ThreadId }
      const head = await driver.head(created)
      if (acknowledged) assert.ok(head)
      assert.ok(head === undefined || head.seq === 1, point)
      assert.equal((await driver.read(created, 0, 10)).length, head === undefined ? 0 : 2)
      if (head === undefined) await mustAppend(driver, makeAppend(created, null))
    })
    assert.ok(points.includes('rename'))
  })

  it('forks a branch whole or not at all', async () => {
    await killEverywhere('fork', async (driver, { acknowledged }) => {
      const fork = { ...log, branch: FORK }
      const head = await driver.head(fork)
      if (acknowledged) assert.ok(head)
      assert.equal((await driver.read(fork, 0, 10)).length, head === undefined ? 0 : 1)
      if (head === undefined) await mustAppend(driver, makeAppend(fork, null))
      assert.equal((await driver.head(log))?.seq, LAST)
    })
  })

  it('claims or does not, and never half', async () => {
    await killEverywhere('claim', async (driver, { acknowledged }) => {
      const head = (await driver.head(log)) as Head
      if (acknowledged) assert.equal(head.epoch, 2)
      assert.equal(head.lease?.owner, head.epoch === 2 ? 'child' : undefined)
      assert.equal(head.seq, head.epoch === 2 ? LAST + 1 : LAST)
    })
  })

  it('renews or does not', async () => {
    await killEverywhere('renew', async (driver, { acknowledged }) => {
      const head = (await driver.head(log)) as Head
      if (acknowledged) assert.equal(head.lease?.owner, 'gone')
      assert.equal(head.epoch, 1)
    })
  })

  it('prunes or does not, and what is kept is whole', async () => {
    await killEverywhere('prune', async (driver, { acknowledged }) => {
      const head = (await driver.head(log)) as Head
      if (acknowledged) assert.equal(head.base.seq, LAST - 1)
      assert.ok(head.base.seq === 0 || head.base.seq === LAST - 1)
      assert.equal((await driver.read(log, 0, 10)).length, LAST - head.base.seq + 1)
    })
  })

  it('reindexes or does not', async () => {
    await killEverywhere('reindex', async (driver, { acknowledged }) => {
      const { index } = (await driver.head(log)) as Head
      if (acknowledged) assert.equal(index.status, 'reindexed')
      assert.ok(['idle', 'reindexed'].includes(index.status))
    })
  })

  it.each(['erase', 'bury'])('erases or does not (%s), and the next writer does not wait for it', async (operation) => {
    await killEverywhere(operation, async (driver, { acknowledged }) => {
      const head = await driver.head(log)
      const tombstone = await driver.tombstone(log.tenant, log.thread)
      if (acknowledged) assert.equal(head, undefined)
      assert.ok(head === undefined || head.seq === LAST)
      assert.equal((await driver.read(log, 0, 10)).length, head === undefined ? 0 : LAST + 1)
      assert.equal(tombstone !== undefined, head === undefined && operation === 'bury')
    })
  })

  it('stores a blob whole or not at all', async () => {
    await killEverywhere('blob', async (driver, { acknowledged }) => {
      const found = (await driver.getBlobs(log.tenant, [makeHash('child')])).get(makeHash('child'))
      if (acknowledged) assert.ok(found)
      if (found) assert.deepEqual(Buffer.from(found), Buffer.from(makeBytes('child', 100)))
    })
  })
})

describe('a process stopped at any system call, and woken after the world went on', () => {
  it('never appends behind a prune that went past it', async () => {
    let landed: Head | undefined
    let end: Head | undefined
    await stopEverywhere(
      'append',
      async (driver, before) => {
        landed = before?.seq === LAST ? undefined : before
        let at = before as Head | ReturnType<typeof expectAfter>
        for (let i = 0; i < 4; i++) at = await mustAppend(driver, makeAppend(log, at, { count: 2 }))
        assert.notEqual(await driver.prune(log, at.incarnation, at.seq), 'conflict')
        end = await driver.head(log)
      },
      async (driver, report, point, folder) => {
        const outcome = String(report.result ?? report.data?.written)
        // Stopped exactly between the last look and the link, it can't tell its own record from one that was pruned.
        const fair = landed
          ? ['appended', 'unknown']
          : point.startsWith('link ')
            ? ['conflict', 'unknown']
            : ['conflict']
        assert.ok(fair.includes(outcome), `${point}: ${JSON.stringify(report)}`)
        assert.deepEqual(await driver.head(log), end, point)
        const inLog = (await recordsIn(folder)).filter((name) => name.includes('main~'))
        assert.equal(inLog.length, 2, `only the base and the prune are left after ${point}: ${inLog}`)
      },
    )
  })

  it('never appends to a log that was erased and made again', async () => {
    let end: Head | undefined
    await stopEverywhere(
      'append',
      async (driver) => {
        await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })
        let at = await mustAppend(driver, makeAppend(log, null, { incarnation: 'two' }))
        for (let i = 0; i < 8; i++) at = await mustAppend(driver, makeAppend(log, at))
        end = await driver.head(log)
      },
      async (driver, report, point) => {
        // Acknowledged only if it had landed before the erasure, and was on its way to say so.
        assert.ok(['conflict', 'appended'].includes(String(report.result)), `${point}: ${JSON.stringify(report)}`)
        assert.deepEqual(await driver.head(log), end, point)
      },
    )
  })

  it('never forks a thread that was erased and made again', async () => {
    let end: Head | undefined
    await stopEverywhere(
      'fork',
      async (driver) => {
        await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })
        await mustAppend(driver, makeAppend(log, null, { incarnation: 'two' }))
        end = await driver.head(log)
      },
      async (driver, report, point) => {
        assert.ok(
          ['conflict', 'appended'].includes(String(report.result)) || report.data?.written === 'unknown',
          `${point}: ${JSON.stringify(report)}`,
        )
        assert.deepEqual(await driver.head(log), end, point)
        assert.equal(await driver.head({ ...log, branch: FORK }), undefined, point)
      },
    )
  })

  it('never claims once another renewed or claimed', async () => {
    let end: Head | undefined
    let before: Head | undefined
    await stopEverywhere(
      'claim',
      async (driver, found) => {
        before = found
        if (found?.epoch === 1) assert.equal(await driver.renew(log, found.incarnation, 1, 600_000), true)
        end = await driver.head(log)
      },
      async (driver, report, point) => {
        const head = await driver.head(log)
        assert.equal(report.result, before?.epoch === 1 ? 'held' : 'appended', point)
        assert.equal(head?.epoch, end?.epoch, point)
        assert.equal(head?.lease?.owner, before?.epoch === 1 ? 'gone' : 'child', point)
      },
    )
  })

  it('never holds up another that erases', async () => {
    await stopEverywhere(
      'erase',
      async (driver, before) => {
        if (before !== undefined) await mustAppend(driver, makeAppend(log, before, { seed: 'meanwhile' }))
      },
      async (driver, report, point) => {
        assert.notEqual(report.result, undefined, point)
        assert.equal(await driver.head(log), undefined, point)
      },
    )
  })
})

describe('processes that append to one log at once', () => {
  it.each([
    { processes: 2, fsync: true },
    { processes: 4, fsync: false },
  ])(
    'keeps every acknowledged entry once and leaves no gap, with $processes of them',
    async ({ processes, fsync }) => {
      const count = rounds(30, 2000)
      const folder = await copyOf(await makeTemplate())
      const racers = Array.from({ length: processes }, (_, i) =>
        start({ folder, operation: 'race', count, name: `racer-${i}`, fsync }),
      )
      await Promise.all(racers.map(({ ended }) => ended))
      for (const { reports } of racers) assert.equal(reports.at(-1)?.result, 'done', JSON.stringify(reports.at(-1)))
      const acknowledged = racers.flatMap(({ reports }) => reports.flatMap((report) => report.acknowledged ?? []))
      const driver = await open(folder)
      const entries = await driver.read(log, 0, 1_000_000)
      assert.deepEqual(
        entries.map((entry) => entry.seq),
        entries.map((_, i) => i),
      )
      assert.deepEqual(
        entries
          .slice(LAST + 1)
          .map((entry) => entry.hash)
          .toSorted(),
        acknowledged.toSorted(),
      )
      assert.equal((await readdir(join(folder, 'tmp'))).length, 0)
    },
    300_000,
  )
})
