import { ConflictError, NotFoundError } from '../core/errors.js'
import { parseBranchId } from '../core/ids.js'
import { nameLog } from '../core/log-name.js'
import { BlobShelf, patientBlobs } from './read/blob-shelf.js'
import { Claim } from './write/claim.js'
import { checkClaimOptions, type ClaimOptions, LeaseTime, momentOf } from './write/claim-options.js'
import { type BeforeRemoval, cutLog } from './write/cut-log.js'
import { formatCheckpointId } from './entry/checkpoint-id.js'
import type { BlobWriter, LogKey, PossibleLoss } from './contract.js'
import { type Draft, expiryFrom, prolong } from './entry/draft.js'
import { EntryCodec } from './entry/entry-codec.js'
import type { OpenedEntry } from './entry/entry-opening.js'
import type { Fold } from './entry/fold.js'
import type { Follower } from './news/follower.js'
import { type LogEnvironment, observeLoad } from './log-environment.js'
import { standingOf } from './read/catch-up.js'
import { KnownLog } from './read/known-log.js'
import { foldAt, type HistoryEntry, historyPage, readEntries } from './read/log-past.js'
import { LogReader } from './read/log-reader.js'
import { LogWriter } from './write/log-writer.js'
import { retry } from './write/retry.js'
import { transact } from './write/transact.js'
import type { Decide, Updated } from './write/update.js'

export type { BeforeRemoval } from './write/cut-log.js'
export type { HistoryEntry } from './read/log-past.js'

/** Where a branch of a log begins, and what is different in it. */
export interface ForkOptions {
  /** The name of the new branch. */
  readonly branch: string
  /** Where to fork, by seq or checkpoint id. Default: the newest entry. */
  readonly at?: number | string
  /** What the fork changes immediately. */
  readonly draft?: Omit<Draft, 'kind'>
}

/** The measured size of a handle itself: without it, very many small threads would count for nothing. */
const HANDLE_BYTES = 2048

/**
 * One branch of a thread. Holds the newest fold it knows; all writes go through `update`, which decides again whenever
 * another writer was first.
 */
export class Log {
  readonly key: LogKey
  readonly #environment: LogEnvironment
  readonly #reader: LogReader
  readonly #known: KnownLog
  readonly #writer: LogWriter
  readonly #shelf: BlobShelf
  /** What was known before a cache provided more. */
  #confirmed: Fold | undefined

  private constructor(environment: LogEnvironment, key: LogKey, shelf?: BlobShelf) {
    this.key = key
    this.#environment = environment
    const { driver, limits, blobThreshold, keys } = environment
    this.#shelf =
      shelf ??
      new BlobShelf(patientBlobs(environment), key.tenant, {
        threshold: blobThreshold,
        maxBytes: limits.maxBytes,
        keys,
      })
    const codec = this.#codec(this.#shelf)
    this.#reader = new LogReader(driver, key, codec, keys)
    this.#known = new KnownLog(environment, key, this.#reader)
    this.#writer = new LogWriter(environment, key, codec, this.#known)
  }

  #codec(shelf: BlobShelf): EntryCodec {
    const { limits, keys } = this.#environment
    return new EntryCodec({ log: this.key, limits, shelf, keys })
  }

  /** Reads and verifies the log. One that does not exist opens empty and is created by its first update. */
  static async open(environment: LogEnvironment, key: LogKey): Promise<Log> {
    const log = new Log(environment, key)
    const newest = await observeLoad(environment, log.#reader.newest())
    await environment.anchors?.checkLog(key, newest)
    log.#known.fold = newest ?? log.#known.fold
    if (newest) log.#known.standing = log.#reader.standing
    await log.#known.applied.catchUp(log.#known.fold, log.#reader.applied)
    return log
  }

  /**
   * As a cache has it, which may be an older state: see `isConfirmed`. Undefined if no cache has anything that verifies
   * and holds entry `atLeast`.
   */
  static async recent(environment: LogEnvironment, key: LogKey, atLeast: number): Promise<Log | undefined> {
    const log = new Log(environment, key)
    return (await log.readRecent(atLeast)) ? log : undefined
  }

  /** A handle that has read nothing yet, for walking entries that may be damaged. */
  static unread(environment: LogEnvironment, key: LogKey): Log {
    return new Log(environment, key)
  }

  /** The newest state this handle has seen or written. */
  get fold(): Fold {
    return this.#known.fold
  }

  get exists(): boolean {
    return this.fold.seq >= 0
  }

  /**
   * Present if the store came back and can't guarantee that it lost nothing, and nobody has claimed this log since:
   * entries after the one named here may have been acknowledged and be lost.
   */
  get loss(): PossibleLoss | undefined {
    return this.#known.standing?.loss
  }

  /**
   * False while everything this handle knows came from a cache: then only an append that lands proves that it was the
   * newest. Nothing else may be concluded from it, neither what the thread holds nor what it lacks.
   */
  get isConfirmed(): boolean {
    return !this.#known.isUnconfirmed
  }

  /** Roughly how much memory this handle takes, with its state counted as JSON. */
  get bytes(): number {
    return HANDLE_BYTES + this.fold.weight.liveBytes + this.#shelf.bytes
  }

  /** The checkpoint id of the newest entry this handle knows. */
  get checkpoint(): string | undefined {
    return this.exists ? formatCheckpointId(this.key.branch, this.fold.seq, this.fold.hash) : undefined
  }

  /**
   * Appends what `decide` returns for the newest state, if the log still ends there; otherwise reads on and decides
   * again. Returning nothing appends nothing. Without a claim, only inputs, answers, cancellations, signals and tags
   * may be appended to a log that is run by claims.
   */
  update(decide: Decide): Promise<Updated> {
    const { clock } = this.#environment
    return this.#writer.submit((fold) => prolong(decide(fold), fold, clock.now()), { kind: 'guest' })
  }

  /** Takes the log: raises its epoch, so that whoever held it before can't write anymore. */
  async claim(options: ClaimOptions): Promise<Claim> {
    checkClaimOptions(options)
    const { owner, ms, force = false, decide } = options
    const { clock } = this.#environment
    let sent = momentOf(clock)
    let drafts: readonly Draft[] = []
    const withDecided: Decide = (fold) => {
      sent = momentOf(clock)
      drafts = withOwner(decide?.(fold) ?? [], owner)
      return drafts
    }
    const { fold, entries } = await this.#writer.submit(withDecided, { kind: 'claim', owner, ms, force })
    return new Claim(this, fold.epoch, options, {
      made: entries.map((written, i) => ({ ...written, draft: drafts[i] as Draft })),
      lease: new LeaseTime(clock, ms, sent),
      post: (decide, release, settle) =>
        this.#writer.post(decide, { kind: 'owner', epoch: fold.epoch, ms, release }, settle),
      transact: (request) => {
        const codecFor = (blobs: BlobWriter) => this.#codec(this.#shelf.within(blobs))
        const writer = { kind: 'owner', epoch: fold.epoch, ms, release: false } as const
        return transact(
          { environment: this.#environment, log: this.key, writer: this.#writer, codecFor },
          writer,
          request,
        )
      },
      renew: async (forMs) => {
        const { driver, news } = this.#environment
        const isRenewed = await driver.renew(this.key, fold.incarnation, fold.epoch, forMs)
        if (isRenewed && forMs === 0) news.released(this.key, this.fold.seq, this.fold.index)
        return isRenewed
      },
    })
  }

  /**
   * Reads what others appended since, in one round trip, like `open`. False if that can't be determined from what is
   * known, as when the log was erased or pruned: then it must be opened.
   */
  async reopen(): Promise<boolean> {
    const known = this.fold
    if (known.seq < 0) return false
    const isStanding = this.#known.standing !== undefined
    const found = await observeLoad(this.#environment, this.#reader.newestAfter(known, isStanding))
    if (found === undefined) return false
    const { fold, head } = found
    this.#known.fold = fold
    if (head) this.#known.standing = standingOf(head)
    await this.#known.applied.catchUp(fold, head?.applied)
    return true
  }

  /** Reads on in a cache, if there is one. False if that has nothing useful; then nothing has changed. */
  async readRecent(atLeast: number): Promise<boolean> {
    const known = this.exists ? this.fold : undefined
    const fold = await observeLoad(this.#environment, this.#reader.recent(known))
    if (fold === undefined || fold.seq < atLeast) return false
    try {
      await this.#environment.anchors?.checkLog(this.key, fold)
    } catch {
      return false
    }
    this.#confirmed = known
    this.#known.fold = fold
    this.#known.isUnconfirmed = true
    return true
  }

  /** Back to what was known before a cache provided more, because that was wrong. False if nothing was known. */
  disbelieve(): boolean {
    const { driver } = this.#environment
    // A cache that is only behind catches up by itself, as soon as the writer has updated it.
    driver.forgetRecent?.(this.key, this.#known.isBehind)
    if (this.#confirmed === undefined) return false
    this.#known.fold = this.#confirmed
    this.#known.isUnconfirmed = false
    return true
  }

  /** Reads what others appended since. Retried while the backend does not answer, unless it is to be asked `once`. */
  async refresh({ once = false }: { readonly once?: boolean } = {}): Promise<Fold> {
    await (once ? this.#known.refresh() : retry(this.#environment, () => this.#known.refresh()))
    return this.#known.fold
  }

  /** Notifies listeners, in any process, of something that is not recorded. */
  liveTeller(): (event: unknown) => void {
    let name: string | undefined
    const { live } = this.#environment.news
    return (event) => {
      // Most runs have nothing to tell.
      name ??= nameLog(this.key)
      live.tell(name, event)
    }
  }

  /** Waits for new entries, through news where available. Must be closed. */
  follow(options: { readonly onlyGuests?: boolean } = {}): Follower {
    return this.#environment.news.follow(this.key, () => this.fold.seq, options)
  }

  /** The state at any kept entry, by seq or checkpoint id. */
  at(checkpoint: number | string): Promise<Fold> {
    return foldAt(this.#environment, this.key, this.#reader, checkpoint)
  }

  /** The seq of the oldest entry that was not pruned. */
  async firstKept(): Promise<number> {
    const head = await retry(this.#environment, () => this.#environment.driver.head(this.key))
    return head?.base.seq ?? 0
  }

  /** One page of entries without their bodies, newest first. */
  history(options: { readonly before?: number; readonly limit: number }): Promise<readonly HistoryEntry[]> {
    return historyPage(this.#environment, this.key, options)
  }

  /**
   * Verified entries with their bodies and the fold after each, oldest first. Given the fold right before `from`,
   * nothing before it is read again. A backend that does not answer is asked again, from where the reading was.
   */
  entries(from = 0, to: number = this.fold.seq, before?: Fold): AsyncGenerator<OpenedEntry> {
    return readEntries(this.#environment, this.#reader, from, to, before)
  }

  /**
   * Verified entries from the newest keyframe at or before an entry up to it, with the fold after each, oldest first,
   * in one round trip: how a branch is read backwards, part by part. Empty if that entry was pruned.
   */
  tail(upTo: number = this.fold.seq): Promise<readonly OpenedEntry[]> {
    return this.#reader.tail(upTo)
  }

  /**
   * Removes everything before an entry that this handle has read, and returns how many entries that were. The entry
   * itself stays, with a keyframe in its place; if the state is too large for one, what precedes the newest keyframe at
   * or before it is removed.
   */
  async cutBefore(seq: number, beforeRemoval?: BeforeRemoval): Promise<number> {
    const read = (upTo: number) => this.#reader.tail(upTo)
    return cutLog(this.#environment, this.key, this.fold, seq, read, this.#codec(this.#shelf), beforeRemoval)
  }

  /** Names a checkpoint: the newest, or an older one by seq. */
  async tag(name: string, seq?: number): Promise<Updated> {
    // An entry that another handle appended may be tagged as well.
    if (seq !== undefined && seq > this.fold.seq) await this.refresh()
    return this.update((fold) => [{ kind: 'tag', index: { tags: { [name]: seq ?? Math.max(fold.seq, 0) } } }])
  }

  untag(name: string): Promise<Updated> {
    return this.update((fold) =>
      Object.hasOwn(fold.index.tags, name) ? [{ kind: 'tag', index: { tags: { [name]: null } } }] : undefined,
    )
  }

  /**
   * Starts another branch from any kept entry. It begins with a keyframe of that state, so what happens to this branch
   * later, including pruning, does not affect it.
   */
  async fork(options: ForkOptions): Promise<Log> {
    const branch = parseBranchId(options.branch)
    const { at } = options
    const from = at === undefined ? await this.refresh() : await this.at(at)
    if (from.seq < 0)
      throw new NotFoundError(`There is no ${nameLog(this.key)} to fork.`, 'Write to it first.', { log: this.key })
    // With the same shelf, which knows the blobs of this state: the fork points to them and does not copy them.
    const fork = new Log(this.#environment, { ...this.key, branch }, this.#shelf)
    const base = { branch: this.key.branch, incarnation: from.incarnation, seq: from.seq, hash: from.hash }
    await fork.#writer.submit(
      (fold) => {
        if (fold.seq >= 0) throw new ConflictError(`${nameLog(fork.key)} exists already.`, { log: fork.key })
        return [{ ...options.draft, kind: 'fork' }]
      },
      {
        kind: 'fork',
        base,
        state: from.state,
        index: { ...from.index, tags: {}, expiresAt: expiryFrom(from, this.#environment.clock.now()) },
      },
    )
    return fork
  }
}

/**
 * The first of what was decided says whose claim it is. Where nothing was, or what it holds already is no place for that,
 * an entry of its own does: what the caller gave must be kept as it is.
 */
function withOwner(drafts: readonly Draft[], owner: string): readonly Draft[] {
  const [first, ...rest] = drafts
  if (first === undefined || !canName(first)) return [{ kind: 'claim', data: { owner } }, ...drafts]
  return [{ ...first, data: { ...(first.data as object | undefined), owner } }, ...rest]
}

function canName(draft: Draft): boolean {
  const { data } = (draft ?? {}) as Partial<Draft>
  if (data === undefined) return true
  if (typeof data !== 'object' || data === null || Object.hasOwn(data, 'owner')) return false
  const prototype: unknown = Object.getPrototypeOf(data)
  return prototype === null || prototype === Object.prototype
}
