import { MAIN_BRANCH, type BranchId, type TenantId, type ThreadId } from '#src/core/ids.js'
import { DEFAULT_LIMITS, type Limits } from '#src/codec/limits.js'
import { BlobShelf } from '#src/log/read/blob-shelf.js'
import type { Driver, Head, LogKey, StoredEntry } from '#src/log/contract.js'
import { EntryCodec } from '#src/log/entry/entry-codec.js'
import { LogStore } from '#src/log/log-store.js'
import type { LogStoreOptions } from '#src/log/log-store-options.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { push, remove, set, splice } from '#src/log/entry/ops.js'
import { virtualClock } from '#src/testing/virtual-clock.js'

export const BLOB_THRESHOLD = 1024

export function logKey(thread = 'bf-847', branch: string = MAIN_BRANCH, tenant = 'acme'): LogKey {
  return { tenant: tenant as TenantId, thread: thread as ThreadId, branch: branch as BranchId }
}

/** Ids that are the same in every store, so that only the names of two logs tell their entries apart. */
function countingIds(): () => string {
  let count = 0
  return () => `id-${String(count++).padStart(13, '0')}`
}

export function openStore(driver: Driver, options: LogStoreOptions = {}): LogStore {
  return new LogStore(driver, {
    clock: virtualClock(),
    randomId: countingIds(),
    blobThreshold: BLOB_THRESHOLD,
    retryMs: 0,
    ...options,
  })
}

export function codecFor(driver: Driver, log: LogKey, limits: Partial<Limits> = {}): EntryCodec {
  const bounds = { ...DEFAULT_LIMITS, ...limits }
  const shelf = new BlobShelf(driver, log.tenant, { threshold: BLOB_THRESHOLD, maxBytes: bounds.maxBytes })
  return new EntryCodec({ log, limits: bounds, shelf, keys: undefined })
}

/** What the sample log holds at each seq, by name. */
export const SAMPLE = { first: 0, typed: 1, compressed: 2, blobs: 3, keyframe: 4, after: 5, last: 6 } as const

/** Writes a log with an entry of every shape, and a fork of it with one more. */
export async function writeSample(driver: Driver, log = logKey()): Promise<void> {
  const store = openStore(driver)
  const main = await store.open(log)
  await main.update(() => [
    { kind: 'input', ops: [set('greeting', 'hello'), push('list', 1, 2)], index: { status: 'running' } },
  ])
  await main.update(() => [
    { kind: 'step', ops: [set('typed', [new Date(0), 255n, new Uint8Array([1, 2]), -0])], data: { by: 'worker' } },
  ])
  await main.update(() => [{ kind: 'step', ops: [set('essay', { text: 'word '.repeat(300).match(/.{1,100}/g) })] }])
  await main.update(() => [
    {
      kind: 'step',
      ops: [
        set('text', 'a long text. '.repeat(200)),
        set('bytes', new Uint8Array(2000).fill(7)),
        push('list', { whole: 'x'.repeat(1500) }),
      ],
    },
  ])
  await main.update(() => [{ kind: 'step', keyframe: true, ops: [remove('greeting')], index: { tags: { good: 3 } } }])
  await main.update(() => [
    { kind: 'step', ops: [splice('list', 0, 1, 'a', 'b')], index: { metadata: { plan: 'pro' } } },
  ])
  await main.update(() => [{ kind: 'step', ops: [set(['nested', 'deep'], true)] }])
  await main.fork({ at: SAMPLE.after, branch: 'fork' as BranchId, draft: { ops: [set('forked', true)] } })
}

export async function openSample(): Promise<{ driver: Driver; log: LogKey; fork: LogKey }> {
  const driver = await openMemory({ clock: virtualClock() })
  const log = logKey()
  await writeSample(driver, log)
  return { driver, log, fork: { ...log, branch: 'fork' as BranchId } }
}

export async function rows(driver: Driver, log: LogKey): Promise<{ head: Head; entries: readonly StoredEntry[] }> {
  const head = await driver.head(log)
  if (head === undefined) throw new Error('There is no such log.')
  return { head, entries: await driver.read(log, head.base.seq, 1000) }
}

export type Tamper = {
  entries?: (entries: readonly StoredEntry[], log: LogKey) => readonly StoredEntry[]
  blob?: (hash: string, bytes: Uint8Array) => Uint8Array | undefined
  head?: (head: Head) => Head
}

/** A driver that reads something else than was written, as a damaged disk or an intruder would make it. */
export function tampering(driver: Driver): Driver & { tamper: Tamper } {
  const changed: Driver & { tamper: Tamper } = {
    ...driver,
    tamper: {},
    async tail(log, upTo) {
      const tail = await driver.tail(log, upTo)
      if (tail === undefined) return undefined
      const { head = (same) => same, entries = (same) => same } = changed.tamper
      return { head: head(tail.head), entries: entries(tail.entries, log) }
    },
    async read(log, from, limit) {
      const entries = await driver.read(log, from, limit)
      return changed.tamper.entries?.(entries, log) ?? entries
    },
    async head(log) {
      const head = await driver.head(log)
      return head && (changed.tamper.head?.(head) ?? head)
    },
    async getBlobs(tenant, hashes) {
      const blobs = new Map<string, Uint8Array>()
      for (const [hash, bytes] of await driver.getBlobs(tenant, hashes)) {
        const seen = changed.tamper.blob ? changed.tamper.blob(hash, bytes) : bytes
        if (seen) blobs.set(hash, seen)
      }
      return blobs
    },
  }
  return changed
}

/** Puts another entry in the place of one. */
export function replaceEntry(seq: number, change: (entry: StoredEntry) => StoredEntry): NonNullable<Tamper['entries']> {
  return (entries) => entries.map((entry) => (entry.seq === seq ? change(entry) : entry))
}

export function flip(bytes: Uint8Array, at: number, mask: number): Uint8Array {
  const copy = new Uint8Array(bytes)
  copy[at] = (copy[at] ?? 0) ^ mask
  return copy
}

export function flipText(text: string, at: number, mask: number): string {
  return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ mask) + text.slice(at + 1)
}
