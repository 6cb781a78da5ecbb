import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  type BranchId,
  MAIN_BRANCH,
  parseBranchId,
  parseTenantId,
  parseThreadId,
  type TenantId,
} from '../../core/ids.js'
import type {
  Append,
  AppendResult,
  Driver,
  Expect,
  Head,
  HeadQuery,
  LeaseChange,
  LogKey,
  StoredEntry,
} from '../../log/contract.js'
import { type AppendOptions, makeAppend, mustAppend } from '../entries.js'

/** What one test of the suite works with. */
export interface SuiteContext {
  /** A driver of the store under test. Closed after the test. */
  readonly driver: Driver
  /** Another driver of the same store. Closed after the test. */
  open(): Promise<Driver>
  /** Advances the store's clock. */
  advance(ms: number): Promise<void>
  /** A tenant that no other test uses. */
  readonly tenant: TenantId
  /** How often the long races run. */
  readonly rounds: number
}

export interface SuiteTest {
  /** Reads as the specification. */
  readonly name: string
  readonly run: (context: SuiteContext) => Promise<void>
  readonly timeoutMs?: number
  /** Why the test does not apply to this driver, given what it declares; undefined if it does. */
  readonly exempt?: (driver: Driver) => string | undefined
}

/** A lease that certainly outlives a test. */
export const LONG_MS = 600_000
/** A lease that ends within `PAST_SHORT_MS`. */
export const SHORT_MS = 60
export const PAST_SHORT_MS = 150

export function newTenant(label = ''): TenantId {
  return parseTenantId(`t-${randomBytes(8).toString('hex')}${label}`)
}

export function logKey(tenant: TenantId, thread = 'thread', branch: string = MAIN_BRANCH): LogKey {
  return { tenant, thread: parseThreadId(thread), branch: parseBranchId(branch) }
}

export function branchId(name: string): BranchId {
  return parseBranchId(name)
}

/** Creates a log with one keyframe (or as the options say) and returns where it ends. */
export function createLog(driver: Driver, log: LogKey, options: AppendOptions = {}): Promise<Expect> {
  return mustAppend(driver, makeAppend(log, null, options))
}

/** One append, one result. */
export async function appendOne(driver: Driver, append: Append): Promise<AppendResult> {
  const results = await driver.append([append])
  assert.equal(results.length, 1)
  return results[0] as AppendResult
}

export async function headOf(driver: Driver, log: LogKey): Promise<Head> {
  const head = await driver.head(log)
  assert.ok(head, 'the log is there')
  return head
}

/** Every head of a query, page by page. A page may be short as long as its cursor leads on. */
export async function allHeads(driver: Driver, query: Omit<HeadQuery, 'limit'>, limit = 100): Promise<readonly Head[]> {
  const found: Head[] = []
  let cursor: string | undefined
  for (let pages = 0; ; pages++) {
    assert.ok(pages < 1000, 'the pages come to an end')
    const page = await driver.heads({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) })
    assert.ok(page.heads.length <= limit, 'a page is no longer than its limit')
    found.push(...page.heads)
    cursor = page.cursor
    if (cursor === undefined) return found
  }
}

/** The threads that a query finds, in the order it gives them. */
export async function threadsFound(driver: Driver, query: Omit<HeadQuery, 'limit'>): Promise<readonly string[]> {
  return (await allHeads(driver, query)).map((head) => head.log.thread)
}

export function assertBytes(actual: Uint8Array | undefined, expected: Uint8Array, what: string): void {
  assert.ok(actual instanceof Uint8Array, `${what} is bytes`)
  assert.ok(Buffer.compare(actual, expected) === 0, `${what} is byte for byte what was given`)
}

export function assertEntries(actual: readonly StoredEntry[], expected: readonly StoredEntry[]): void {
  assert.deepEqual(
    actual.map(({ seq, keyframe, hash }) => ({ seq, keyframe, hash })),
    expected.map(({ seq, keyframe, hash }) => ({ seq, keyframe, hash })),
  )
  for (const [i, entry] of expected.entries()) {
    assertBytes(actual[i]?.header, entry.header, `the header of entry ${entry.seq}`)
    assertBytes(actual[i]?.body, entry.body, `the body of entry ${entry.seq}`)
  }
}

/** Equal except for how much of the lease is left, which keeps running between two looks. */
export function assertSameHead(actual: Head | undefined, expected: Head | undefined): void {
  assert.deepEqual(actual && comparable(actual), expected && comparable(expected))
}

// Through entries, because a driver may return metadata without a prototype, and a key may be `__proto__`.
function comparable(head: Head): unknown {
  const { log, incarnation, seq, hash, epoch, base, lease, index } = head
  return {
    log: [log.tenant, log.thread, log.branch],
    incarnation,
    seq,
    hash,
    epoch,
    base: [base.seq, base.hash],
    owner: lease?.owner ?? null,
    index: comparableIndex(index),
  }
}

export function comparableIndex(index: Head['index']): unknown {
  const { status, createdAt, updatedAt, expiresAt, wakeAt, tags, metadata, origin } = index
  return {
    status,
    times: [createdAt, updatedAt, expiresAt, wakeAt],
    tags: [...tags],
    metadata: Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)),
    origin: origin && [origin.branch, origin.incarnation, origin.seq, origin.hash],
  }
}

/** Asserts that the log is exactly as the head and entries seen before. */
export async function assertUnchanged(driver: Driver, before: Head, entries: readonly StoredEntry[]): Promise<void> {
  assertSameHead(await driver.head(before.log), before)
  assertEntries(await driver.read(before.log, 0, 10_000), entries)
}

export function claim(owner: string, ms = LONG_MS, force = false): LeaseChange {
  return { kind: 'claim', owner, ms, force }
}

/** More than `above` is left, and no more than was given. */
export function assertRemaining(remainingMs: number | undefined, given: number, above = 0): void {
  assert.ok(remainingMs !== undefined, 'the lease runs')
  assert.ok(remainingMs > above && remainingMs <= given, `${remainingMs} ms of ${given} ms are left`)
}
