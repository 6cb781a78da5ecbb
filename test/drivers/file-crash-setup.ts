import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Head, LogKey } from 'holdfast/driver'
import type { TenantId } from 'holdfast/log'
import { openFile } from '#src/drivers/file/open-file.js'
import { makeAppend, mustAppend } from '#src/testing/entries.js'
import { afterAll, afterEach, beforeAll, vi } from 'vitest'
import { full } from '../support/scale.js'
import { makeItem, NOW } from './file-child-items.mjs'

export type FileDriver = Awaited<ReturnType<typeof openFile>>

export const log = { tenant: 'tenant', thread: 'thread', branch: 'main' } as unknown as LogKey
export const tenant = log.tenant as TenantId
/** The seq of the template's newest entry. */
export const LAST = 5

/** What a process says before it is killed or stopped, and when it has done its work. */
export interface Report {
  readonly at?: string
  readonly result?: unknown
  readonly points?: number
  readonly error?: string
  readonly data?: { readonly written?: string }
  readonly acknowledged?: readonly string[]
}

// A process that is killed before one of these leaves the disk as it is before the next call that changes it.
const UNCHANGING = ['stat', 'stat-file', 'list', 'read', 'open-file', 'open-folder']
const FLUSHES = ['flush-file', 'flush-folder']
// A process that is stopped before one of these has seen nothing since the call before it that others can change, or
// works on a file that nobody else knows.
const UNSEEN = ['stat-file', 'open-folder', 'write-file', ...FLUSHES]

let root: string
let drivers: FileDriver[] = []
const children = new Set<ChildProcess>()

/** Call it once in a test file. */
export function prepare(): void {
  // One process per system call of an operation.
  vi.setConfig({ testTimeout: 300_000 })

  beforeAll(async () => {
    // Killed processes lose nothing that the system holds, so memory serves as well as a disk, and flushing costs
    // nothing.
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
}

export async function open(folder: string): Promise<FileDriver> {
  const driver = await openFile(folder)
  drivers.push(driver)
  return driver
}

/** A store with a log of six keyframes whose claim has run out, and with some items. */
export async function makeTemplate(): Promise<string> {
  const folder = await mkdtemp(join(root, 'template-'))
  const driver = await open(folder)
  let at = await mustAppend(driver, makeAppend(log, null, { seed: 'first', incarnation: 'one' }))
  at = await mustAppend(
    driver,
    makeAppend(log, at, { seed: 'claim', lease: { kind: 'claim', owner: 'gone', ms: 0, force: false } }),
  )
  while (at.seq < LAST) at = await mustAppend(driver, makeAppend(log, at, { seed: 'more' }))
  const write = (key: string, item: ReturnType<typeof makeItem> | null) => [{ space: 's', key, item }]
  await driver.writeItems(tenant, write('k', makeItem('older')), NOW)
  await driver.writeItems(tenant, write('k', makeItem('old')), NOW)
  await driver.writeItems(tenant, write('kept', makeItem('kept')), NOW)
  await driver.writeItems(tenant, write('expiring', makeItem('expiring', NOW + 10)), NOW)
  await driver.writeItems(tenant, write('removed', null), NOW)
  return folder
}

export async function copyOf(template: string): Promise<string> {
  const folder = await mkdtemp(join(root, 'store-'))
  await cp(template, folder, { recursive: true })
  return folder
}

export function start(task: Record<string, unknown>) {
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
 * Runs an operation once for each of its system calls, killed before it, and hands the store to `check`. Calls that
 * change nothing are left to the full run, and so are flushes unless asked for.
 */
export async function killEverywhere(
  operation: string,
  check: (driver: FileDriver, outcome: { readonly acknowledged: boolean; readonly point: string }) => Promise<void>,
  { flushes = false }: { readonly flushes?: boolean } = {},
): Promise<string[]> {
  const template = await makeTemplate()
  const points: string[] = []
  const skip = full ? [] : [...UNCHANGING, ...(flushes ? [] : FLUSHES)]
  for (let at = 1; ; at++) {
    const folder = await copyOf(template)
    const { reports, ended } = start({ folder, operation, at, signal: 'SIGKILL', skip })
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

/**
 * Stops a process at each system call of an operation, at every fourth one unless in the full run, lets `meanwhile`
 * happen, and wakes it again.
 */
export async function stopEverywhere(
  operation: string,
  meanwhile: (driver: FileDriver, before: Head | undefined) => Promise<void>,
  check: (driver: FileDriver, report: Report, point: string, folder: string) => Promise<void>,
): Promise<void> {
  const template = await makeTemplate()
  for (let at = 1; ; at += full ? 1 : 4) {
    const folder = await copyOf(template)
    const { child, reports, ended } = start({ folder, operation, at, signal: 'SIGSTOP', skip: full ? [] : UNSEEN })
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

/** Whatever was left behind, everything works for the next process, and at once. */
async function goesOn(driver: FileDriver): Promise<void> {
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
  await itemsGoOn(driver, at.incarnation)
  assert.notEqual(await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null }), 'conflict')
  assert.equal(await driver.head(log), undefined)
  await mustAppend(driver, makeAppend(log, null))
}

async function itemsGoOn(driver: FileDriver, incarnation: string): Promise<void> {
  for (const key of ['k', 'new', 'removed', 'expiring']) {
    const [before] = await driver.readItems(tenant, 's', [key], { now: NOW })
    const write = { space: 's', key, item: makeItem('on'), expect: before?.version ?? null }
    assert.deepEqual(await driver.writeItems(tenant, [write], NOW), [{ status: 'written' }])
  }
  const write = { seq: 1000, space: 's', key: 'applied', item: makeItem('on'), at: NOW }
  assert.equal(await driver.applyWrites(log, incarnation, [write], { upTo: 1000, redo: true }), true)
  assert.equal((await driver.head(log))?.applied, 1000)
  const found = await driver.scanItems(tenant, 's', { limit: 100 }, NOW)
  for (const key of ['applied', 'expiring', 'k', 'new', 'removed']) {
    assert.equal(found.filter((item) => item.key === key && item.version === 'on').length, 1, key)
  }
  await driver.writeItems(
    tenant,
    found.map(({ key }) => ({ space: 's', key, item: null })),
    NOW,
  )
  assert.equal(await driver.sweepItems(Date.now() + 2 * 86_400_000, 100), 0)
  assert.deepEqual(await driver.scanItems(tenant, 's', { limit: 100 }, NOW), [])
}
