import { setTimeout as delay } from 'node:timers/promises'
import { isHoldfastError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import {
  addReports,
  type Caps,
  capsOf,
  EXPIRED,
  EXPIRED_TO_ARCHIVE,
  type StoreRetentionPolicy,
  type SweepReport,
} from '../core/retention.js'
import type { Head, HeadQuery } from '../log/contract.js'
import type { LogStore } from '../log/log-store.js'
import { allHeads } from '../log/read/heads.js'
import { CAPPED, capsFor, findCut } from './cap.js'
import { CollectNotes } from './collect-notes.js'
import { existingTtl, isExpired, RESTING } from './expired.js'
import { measureEntries } from './measure.js'
import type { SweepOptions } from './sweep-options.js'

type Counts = { -readonly [Field in keyof SweepReport]: SweepReport[Field] }

const PAGE = 100
const BRANCH_PAGE = 1000
const ITEMS = 1000
const DEFAULT_GRACE_MS = 60 * 60 * 1000
/** How much the clocks of writers may differ. */
const CLOCKS_MS = 10 * 60 * 1000
/** How long a sweep rests, as a share of how long it worked. */
const REST_SHARE = 1
const MOST_REST_MS = 1000

/**
 * Removes what a policy no longer keeps, a little at a time: each thread is removed in one separate step that compares
 * it with what was looked at, so nothing waits for a sweep and nothing that was used in the meantime is lost. Whatever
 * a killed sweep left behind, the next one finds.
 */
export class Sweeper {
  readonly #logs: LogStore
  readonly #policy: StoreRetentionPolicy
  readonly #options: SweepOptions
  readonly #notes: CollectNotes
  readonly #steps: AsyncGenerator<void, undefined>
  #counts: Counts

  constructor(logs: LogStore, policy: StoreRetentionPolicy, options: SweepOptions = {}) {
    this.#logs = logs
    this.#policy = policy
    this.#options = options
    this.#notes = new CollectNotes(logs)
    this.#counts = this.#nothing()
    this.#steps = this.#pass()
  }

  /** The next limited piece of work. `more`: the pass is not over. Counts are for this piece. */
  async step(): Promise<{ readonly more: boolean; readonly swept: SweepReport }> {
    this.#counts = this.#nothing()
    this.#options.signal?.throwIfAborted()
    const { done } = await this.#steps.next()
    return { more: done !== true, swept: this.#counts }
  }

  /**
   * All of it. After each piece it rests for as long as the piece took, so that concurrent appends need not queue
   * behind it.
   */
  async run(): Promise<SweepReport> {
    const { dryRun = false, signal } = this.#options
    let all: SweepReport = this.#nothing()
    for (;;) {
      const began = performance.now()
      const { more, swept } = await this.step()
      all = addReports(all, swept)
      if (!more) return all
      const took = performance.now() - began
      // Real time, whatever clock the store goes by: this is about a disk and its locks.
      if (!dryRun) await delay(Math.min(Math.max(took * REST_SHARE, 1), MOST_REST_MS), undefined, { signal, ref: true })
    }
  }

  #nothing(): Counts {
    const { dryRun = false } = this.#options
    return {
      dryRun,
      threads: 0,
      cut: 0,
      archived: 0,
      archives: 0,
      entries: 0,
      bytes: 0,
      blobs: { removed: 0, bytes: 0 },
      items: 0,
      used: 0,
      damaged: 0,
    }
  }

  async *#pass(): AsyncGenerator<void, undefined> {
    const now = this.#logs.clock.now()
    yield* this.#expire({ expiresBefore: now }, now)
    const ttl = existingTtl(this.#policy)
    if (ttl !== undefined) yield* this.#expire({ updatedBefore: now - ttl, status: RESTING }, now)
    yield* this.#cut(now)
    yield* this.#removeArchives(now)
    yield* this.#collect()
    if (!this.#options.dryRun && this.#options.metadata === undefined) yield* this.#sweepItems()
    return undefined
  }

  async *#expire(query: Partial<HeadQuery>, now: number): AsyncGenerator<void> {
    const seen = new Set<string>()
    for await (const heads of this.#pages(query)) {
      for (const head of heads) {
        const { tenant, thread } = head.log
        const name = JSON.stringify([tenant, thread])
        if (seen.has(name) || !isExpired(head, this.#policy, now)) continue
        seen.add(name)
        await this.#removeExpired(head, now).catch((error: unknown) => {
          // It stays, for somebody to look at; and it must not keep the sweep from what comes after it.
          if (!isHoldfastError(error, 'corrupt')) throw error
          this.#counts.damaged++
        })
        yield
      }
      // Only from one page to the next: a set of all threads of a store would outgrow the process.
      if (seen.size > 10 * PAGE) seen.clear()
    }
  }

  async *#pages(query: Partial<HeadQuery>): AsyncGenerator<readonly Head[]> {
    const { tenant, metadata, signal } = this.#options
    const whole: HeadQuery = {
      ...query,
      order: 'updated',
      direction: 'asc',
      limit: PAGE,
      ...(tenant === undefined ? {} : { tenant }),
      ...(metadata === undefined && query.metadata === undefined
        ? {}
        : { metadata: { ...metadata, ...query.metadata } }),
    }
    let cursor: string | undefined
    do {
      signal?.throwIfAborted()
      const page = await this.#logs.list(cursor === undefined ? whole : { ...whole, cursor })
      yield page.heads
      cursor = page.cursor
    } while (cursor !== undefined)
  }

  /** A thread is removed when all its branches have expired: a fork may still need the branch it came from. */
  async #removeExpired({ log: { tenant, thread } }: Head, now: number): Promise<void> {
    const heads = await this.#branches(tenant, thread)
    if (heads.length === 0 || !heads.every((head) => isExpired(head, this.#policy, now))) return
    let entries = 0
    let bytes = 0
    let hasBlobs = false
    for (const head of heads) {
      const measured = await measureEntries(this.#logs, head)
      entries += measured.entries
      bytes += measured.bytes
      hasBlobs ||= measured.hasBlobs
    }
    if (!this.#options.dryRun) {
      if (hasBlobs) await this.#notes.add(tenant)
      const expect = heads.map(({ log: { branch }, incarnation, seq }) => ({ branch, incarnation, seq }))
      const archive = this.#policy.archive ? this.#options.archive : undefined
      const takeBack = await archive?.writeThread(heads)
      const tombstone = { at: now, reason: archive ? EXPIRED_TO_ARCHIVE : EXPIRED }
      const result = await this.#logs.erase({ tenant, thread, expect, tombstone })
      if (result === 'conflict') {
        await takeBack?.()
        this.#counts.used++
        return
      }
      if (result.erased === 0) return
      if (archive) this.#counts.archived++
    }
    this.#counts.threads++
    this.#counts.entries += entries
    this.#counts.bytes += bytes
    this.#options.onSwept?.({ tenant, thread, why: 'expired', branches: heads.length, entries, bytes })
  }

  async #branches(tenant: TenantId, thread: Head['log']['thread']): Promise<readonly Head[]> {
    const heads: Head[] = []
    const found = allHeads((page) => this.#logs.list(page), { tenant, thread, limit: BRANCH_PAGE })
    for await (const head of found) heads.push(head)
    return heads
  }

  /** Branches with more checkpoints than are kept: those that changed since the last time, or all. */
  async *#cut(now: number): AsyncGenerator<void> {
    const { changedSince, metadata } = this.#options
    if (changedSince === 'never') return
    const caps = capsOf([this.#policy])
    const all: Partial<HeadQuery> =
      changedSince === undefined ? {} : { updatedAfter: changedSince - CLOCKS_MS - (caps?.forMs ?? 0) }
    const query = caps ? all : { metadata: { ...metadata, [CAPPED]: true } }
    for await (const heads of this.#pages(query)) {
      for (const head of heads) {
        const kept = capsFor(head, this.#policy)
        if (kept === undefined) continue
        await this.#cutBranch(head, kept, now).catch((error: unknown) => {
          // Another sweep trimmed or removed it first.
          if (isHoldfastError(error, 'not-found')) return
          if (!isHoldfastError(error, 'corrupt')) throw error
          this.#counts.damaged++
        })
      }
      yield
    }
  }

  async #cutBranch(head: Head, caps: Caps, now: number): Promise<void> {
    const cut = await findCut(this.#logs, head, caps, now)
    if (cut === undefined) return
    const { entries, bytes, hasBlobs } = await measureEntries(this.#logs, head, cut)
    const { tenant, thread, branch } = head.log
    let removed = entries
    if (!this.#options.dryRun) {
      if (hasBlobs) await this.#notes.add(tenant)
      const archive = this.#policy.archive ? this.#options.archive : undefined
      const before = archive && { beforeRemoval: archive.writePast(head.log) }
      removed = (await this.#logs.prune(head.log, cut, before)).removed
      if (removed === 0) return
      if (archive) this.#counts.archived++
    }
    this.#counts.cut++
    this.#counts.entries += removed
    this.#counts.bytes += bytes
    this.#options.onSwept?.({ tenant, thread, branch, why: 'capped', branches: 1, entries: removed, bytes })
  }

  /** As rarely as for large values: it looks at every file. */
  async *#removeArchives(now: number): AsyncGenerator<void> {
    const { tenant, dryRun = false, collect = true, archive } = this.#options
    const { archiveForMs } = this.#policy
    if (dryRun || !collect || archive === undefined || archiveForMs === undefined) return
    for (const one of tenant === undefined ? await this.#logs.tenants() : [tenant]) {
      for await (const removed of archive.removeOlder(one, now - archiveForMs)) {
        this.#counts.archives += removed
        yield
      }
    }
  }

  async *#collect(): AsyncGenerator<void> {
    const { tenant, dryRun = false, collect = true, graceMs = DEFAULT_GRACE_MS } = this.#options
    if (dryRun || !collect) return
    for (const one of tenant === undefined ? await this.#logs.tenants() : [tenant]) {
      // Not before what was noted is old enough to go: each collection reads the headers of all threads of its tenant.
      const note = await this.#notes.due(one, this.#logs.clock.now() - graceMs)
      if (note === undefined) continue
      const { removed, bytes } = await this.#logs.collectBlobs(note.tenant, { graceMs })
      this.#counts.blobs = { removed: this.#counts.blobs.removed + removed, bytes: this.#counts.blobs.bytes + bytes }
      await this.#notes.done(note)
      yield
    }
  }

  async *#sweepItems(): AsyncGenerator<void> {
    for (;;) {
      const removed = await this.#logs.items.sweep(ITEMS)
      this.#counts.items += removed
      if (removed < ITEMS) return
      yield
    }
  }
}
