import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { BranchId, Driver, Head, LogKey, ThreadId } from 'holdfast'
import { openFile } from '#src/drivers/file/open-file.js'
import { type expectAfter, makeAppend, makeBytes, makeEntry, makeHash, mustAppend } from '#src/testing/entries.js'
import { afterAll, afterEach, beforeAll, describe, it, vi } from 'vitest'
import { full, rounds } from '../support/scale.js'

const log = { tenant: 'tenant', thread: 'thread', branch: 'main' } as unknown as LogKey
const FORK = 'fork' as BranchId
const LAST = 5

interface Report {
  readonly at?: string
  readonly result?: unknown
  readonly points?: number
  readonly error?: string
  readonly data?: { readonly written?: string }
  readonly acknowledged?: readonly string[]
}

let root: string
let drivers: Driver[] = []
const children = new Set<ChildProcess>()

// One process per system call of an operation.
vi.setConfig({ testTimeout: 300_000 })

beforeAll(async () => {
  // Killed processes lose nothing that the system holds, so memory serves as well as a disk, and flushing costs nothing.
  const place = await access('/dev/shm', constants.W_OK).then(
    () => '/dev/shm',
    () => tmpdir(),
  )
  root = await mkdtemp(join(place, 'holdfast-crash-'))
})

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  await Promise.all(drivers.map((driver) => driver.close()))
  drivers = []
})

afterAll(() => rm(root, { recursive: true, force: true }))

async function open(folder: string): Promise<Driver> {
  const driver = await openFile(folder)
  drivers.push(driver)
  return driver
}

/** A store with a log of six keyframes whose claim has run out. */
async function makeTemplate(): Promise<string> {
  const folder = await mkdtemp(join(root, 'template-'))
  const driver = await open(folder)
  let at = await mustAppend(driver, makeAppend(log, null, { seed: 'first', incarnation: 'one' }))
  at = await mustAppend(
    driver,
    makeAppend(log, at, { seed: 'claim', lease: { kind: 'claim', owner: 'gone', ms: 0, force: false } }),
  )
  while (at.seq < LAST) at = await mustAppend(driver, makeAppend(log, at, { seed: 'more' }))
  return folder
}

async function copyOf(template: string): Promise<string> {
  const folder = await mkdtemp(join(root, 'store-'))
  await cp(template, folder, { recursive: true })
  return folder
}

function start(task: Record<string, unknown>): { child: ChildProcess; reports: Report[]; ended: Promise<unknown> } {
  const script = fileURLToPath(new URL('file-child.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, JSON.stringify({ log, ...task })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  const reports: Report[] = []
  const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })
  lines.on('line', (line) => reports.push(JSON.parse(line)))
  child.once('exit', () => children.delete(child))
  const ended = Promise.all([once(child, 'exit'), once(lines, 'close')])
  return { child, reports, ended }
}

/**
 * Runs an operation once for each of its system calls, killed before it, and hands the store to `check`. Before a call
 * that only reads, the disk is as before the next that changes it; those are left to the full run.
 */
async function killEverywhere(
  operation: string,
  check: (driver: Driver, outcome: { readonly acknowledged: boolean; readonly point: string }) => Promise<void>,
): Promise<string[]> {
  const template = await makeTemplate()
  const points: string[] = []
  for (let at = 1; ; at++) {
    const folder = await copyOf(template)
    const { reports, ended } = start({ folder, operation, at, signal: 'SIGKILL', changesOnly: !full })
    await ended
    const last = reports.at(-1)
    assert.ok(last, 'the process came as far as the operation')
    assert.equal(last.error, undefined, `the operation fails only by being killed: ${JSON.stringify(last)}`)
    const acknowledged = last.result !== undefined
    await check(await open(folder), { acknowledged, point: last.at ?? 'the end' })
    await goesOn(await open(folder))
    await rm(folder, { recursive: true })
    if (acknowledged) return points
    points.push(last.at as string)
  }
}

/** Whatever was left behind, everything works for the next process, and at once. */
async function goesOn(driver: Driver): Promise<void> {
  const head = await driver.head(log)
  const at = await mustAppend(driver, makeAppend(log, head ?? null))
  const { entries } = (await driver.tail(log)) as { entries: readonly { readonly hash: string }[] }
  assert.equal(entries.at(-1)?.hash, at.hash)
  const all = await driver.read(log, 0, 1000)
  assert.deepEqual(
    all.map((entry) => entry.seq),
    Array.from({ length: all.length }, (_, i) => (all[0]?.seq ?? 0) + i),
  )
  assert.notEqual(await driver.prune(log, at.incarnation, at.seq), 'conflict')
  assert.equal(
    (await driver.heads({ limit: 10 })).heads.some((each) => each.hash === at.hash),
    true,
  )
  assert.notEqual(await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null }), 'conflict')
  assert.equal(await driver.head(log), undefined)
  await mustAppend(driver, makeAppend(log, null))
}

async function recordsIn(folder: string): Promise<string[]> {
  const names = await readdir(join(folder, 'tenants', 'tenant', 'threads', 'thread'), { recursive: true })
  return names.filter((name) => name.endsWith('.rec')).sort()
}

describe('a process killed at any system call', () => {
  it('leaves an append whole or absent, and never loses an acknowledged one', async () => {
    const points = await killEverywhere('append', async (driver, { acknowledged, point }) => {
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
    })
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

/** Stops a process at each system call of an operation, lets `meanwhile` happen, and wakes it again. */
async function stopEverywhere(
  operation: string,
  meanwhile: (driver: Driver, before: Head | undefined) => Promise<void>,
  check: (driver: Driver, report: Report, point: string, folder: string) => Promise<void>,
): Promise<void> {
  const template = await makeTemplate()
  for (let at = 1; ; at++) {
    const folder = await copyOf(template)
    const { child, reports, ended } = start({ folder, operation, at, signal: 'SIGSTOP' })
    await Promise.race([ended, waitFor(() => reports.length > 0)])
    const point = reports[0]?.at
    if (point !== undefined) {
      const driver = await open(folder)
      await meanwhile(driver, await driver.head(log))
      await wake(child, ended)
      await check(driver, reports.at(-1) as Report, `${point} (${at})`, folder)
      await goesOn(await open(folder))
    }
    await ended
    await rm(folder, { recursive: true })
    if (point !== undefined) continue
    assert.notEqual(reports[0]?.result, undefined, 'the process came to the end of the operation')
    return
  }
}

async function waitFor(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2))
}

// The signal that stops may still be on its way when the first one that wakes is sent.
async function wake(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  const timer = setInterval(() => child.kill('SIGCONT'), 10)
  await ended
  clearInterval(timer)
}

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
        if (found?.epoch === 1) assert.equal(await driver.renew(log, 1, 600_000), true)
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
      const count = rounds(500, 2000)
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
