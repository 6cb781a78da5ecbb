import type { BranchId, TenantId, ThreadId } from '../core/ids.js'
import type { CopyDriver } from './copy-contract.js'
import type { CarriedWrite, ItemDriver } from './store-contract.js'

/** The name of one log: a branch of a thread of a tenant. */
export interface LogKey {
  readonly tenant: TenantId
  readonly thread: ThreadId
  readonly branch: BranchId
}

/** SHA-256 or HMAC-SHA-256, as 64 lower-case hex digits. */
export type Hash = string

/** One row of a log. Header and body are bytes that a driver stores and returns unchanged and never inspects. */
export interface StoredEntry {
  /** Without gaps in its log, from 0. */
  readonly seq: number
  /** The seq of the keyframe this entry's fold starts from; its own seq if it is a keyframe itself. */
  readonly keyframe: number
  readonly hash: Hash
  readonly header: Uint8Array
  readonly body: Uint8Array
}

/** An entry without its body. `size` is the body's length in bytes. */
export interface StoredHeader {
  readonly seq: number
  readonly keyframe: number
  readonly hash: Hash
  readonly header: Uint8Array
  readonly size: number
}

/** Where a branch was forked from. */
export interface Origin {
  readonly branch: BranchId
  readonly incarnation: string
  readonly seq: number
  readonly hash: Hash
}

/** What a thread can be filtered by: kept in the index, readable without keys. */
export type MetadataValue = string | number | boolean

/** What the thread index knows about a log. Can always be rebuilt from the log itself (`verify` with `repair`). */
export interface IndexFields {
  readonly status: string
  /** Wall-clock times in milliseconds since 1970, by the store's clock if it has one. */
  readonly createdAt: number
  readonly updatedAt: number
  readonly expiresAt: number | null
  /** When somebody should look at it. `DUE`: immediately, whatever any clock says. */
  readonly wakeAt: number | null
  /** Tag names, sorted, without duplicates. */
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, MetadataValue>>
  readonly origin: Origin | null
}

/** A wake time that has passed on every clock: what is due now is marked as due, not dated. */
export const DUE = 0

/** Who holds a log, and for how long. */
export interface Lease {
  readonly owner: string
  /** Milliseconds left by the store's clock, always above 0: an expired lease is reported as none. */
  readonly remainingMs: number
}

/** A store came back and can't guarantee that it lost nothing: what that means for one log. */
export interface PossibleLoss {
  /** When it came back, by its own clock. */
  readonly at: number
  /** The newest entry that was there then. Entries after it may have been acknowledged and be lost. */
  readonly after: number
}

/** The head row of a log. */
export interface Head {
  readonly log: LogKey
  /** Random, new each time a log of this name is created: an id that was erased and reused is another log. */
  readonly incarnation: string
  readonly seq: number
  readonly hash: Hash
  /** Raised by every claim. 0 means that nobody ever claimed this log. */
  readonly epoch: number
  /** The first entry that is kept, with its own hash; moved by `prune`. */
  readonly base: { readonly seq: number; readonly hash: Hash }
  readonly lease: Lease | null
  readonly index: IndexFields
  /** The seq up to which `applyWrites` applied what entries carry. Absent: nothing yet, or `capabilities.storeAtomic`. */
  readonly applied?: number
  /**
   * How often the store came back without being able to guarantee that it lost nothing. Absent where an acknowledged
   * append can't be lost, or where losing one would be the end of the store.
   */
  readonly generation?: number
  /** Present after such a comeback of the store, until somebody claims the log. */
  readonly loss?: PossibleLoss
}

/** Where a log ends. */
export interface Position {
  readonly incarnation: string
  readonly seq: number
}

/** The maximum size of a message for `publish`, in bytes. */
export const MESSAGE_BYTES = 7800

/** What a log must still look like for an append to land. */
export interface Expect {
  readonly incarnation: string
  readonly seq: number
  readonly hash: Hash
  readonly epoch: number
}

/** What an append does to the lease, which lives in the head row and not in the entries. */
export type LeaseChange =
  /** Leaves the lease as it is: appends by anyone but the owner never extend it. */
  | { readonly kind: 'keep' }
  /**
   * Takes the log: the result is 'held' while another owner's lease runs by the store's clock, unless forced. The
   * owner's name does not matter: a worker that restarted under its old name is another worker.
   */
  | { readonly kind: 'claim'; readonly owner: string; readonly ms: number; readonly force: boolean }
  /** The owner continues: the lease ends `ms` from now. */
  | { readonly kind: 'extend'; readonly ms: number }
  /** The owner releases the log: the lease ends now. */
  | { readonly kind: 'release' }

/** What one writer adds to one log, if the log still ends where it last saw it. */
export interface Append {
  readonly log: LogKey
  /** `null` creates the log, and conflicts if it exists. */
  readonly expect: Expect | null
  /** Consecutive: the first seq is `expect.seq + 1` (0 when creating). At least one. */
  readonly entries: readonly StoredEntry[]
  /** The log's incarnation: equal to `expect.incarnation`, or new when creating. */
  readonly incarnation: string
  /** The epoch after this append: equal to `expect.epoch`, or one more for a claim (0 or 1 when creating). */
  readonly epoch: number
  readonly lease: LeaseChange
  /** The whole index row after this append. */
  readonly index: IndexFields
  /** For a claim: the head's `generation` that it was based on. If the store came back since, the claim conflicts. */
  readonly generation?: number
  /** False when tags and metadata are unchanged, so that a driver can leave its label rows alone. */
  readonly labelsChanged: boolean
  /**
   * For a fork: the branch of the same thread that must exist with this incarnation when the append lands. Otherwise
   * the result is a conflict with the head of `log` itself.
   */
  readonly requires?: { readonly branch: BranchId; readonly incarnation: string }
  /**
   * Only where `capabilities.storeAtomic`: writes to the store that land in the same atomic step, or not at all. In
   * order, at most one per space and key.
   */
  readonly carried?: readonly CarriedWrite[]
  /**
   * Entries of another store, copied unchanged, with their incarnation. Such an append may create a log that begins at
   * any keyframe, where the original was pruned to, and may raise the epoch by any number, because it stands for many
   * appends, including claims. It leaves the lease as it is: nobody holds a log just because it was copied.
   */
  readonly copied?: boolean
}

/** The outcome of an append. */
export type AppendResult =
  | { readonly status: 'appended' }
  /** The log does not end where the writer last saw it; `head` is its current head, undefined if it is gone. */
  | { readonly status: 'conflict'; readonly head: Head | undefined }
  /**
   * Only for claims that are otherwise as expected: another owner's lease is still running (`head.lease`). Nothing was
   * written. A claim with a stale expectation gets 'conflict', so one that lost its reply finds itself.
   */
  | { readonly status: 'held'; readonly head: Head }

/** The user's own SQL inside a transaction. Placeholders are the database's (`?` or `$1`). */
export interface SqlSession {
  /**
   * One statement. `changes` counts the rows that it inserted, updated or deleted. After a statement fails, none of the
   * transaction can be kept. Rejects with TransactionError once the transaction is over.
   */
  query<Row = Record<string, unknown>>(
    sql: string,
    params?: readonly unknown[],
  ): Promise<{ readonly rows: readonly Row[]; readonly changes: number }>
}

/** How entries store their blobs. */
export type BlobWriter = Pick<Driver, 'touchBlobs' | 'putBlobs'>

/** A head and a run of entries that end at `upTo` and begin with a keyframe, from one consistent snapshot. */
export interface Tail {
  readonly head: Head
  /** Empty if `upTo` is before the base or after the head. */
  readonly entries: readonly StoredEntry[]
}

/** The end of a log as it was a while ago: a keyframe and what followed it then, or what followed a known entry. */
export interface RecentTail {
  readonly incarnation: string
  /** Ascending without gaps; empty if what is there can't be entries. */
  readonly entries: readonly StoredEntry[]
}

/** Which logs of the index to list, and in which order. */
export interface HeadQuery {
  /** Absent: all tenants. For workers and maintenance only; the layers above always set it for users. */
  readonly tenant?: TenantId
  readonly thread?: ThreadId
  /**
   * All of these parts of structured ids, each as `encodeParts` writes it: `user=user-42`. An empty list doesn't
   * filter.
   */
  readonly parts?: readonly string[]
  readonly branch?: BranchId
  /** Any of these; an empty list matches nothing. */
  readonly status?: readonly string[]
  /** All of these; an empty list doesn't filter. */
  readonly tags?: readonly string[]
  /** All of these, by type and value. */
  readonly metadata?: Readonly<Record<string, MetadataValue>>
  /** Neither bound is included. */
  readonly updatedBefore?: number
  readonly updatedAfter?: number
  /** Only logs with a wake time at or before this; 'now': by the store's own clock. */
  readonly wakeBefore?: number | 'now'
  /** Only logs with an expiry at or before this. */
  readonly expiresBefore?: number
  /** 'held': a lease is running by the store's clock; 'free': none is. */
  readonly lease?: 'free' | 'held'
  /** Default 'created'. Ties are broken by tenant, thread, branch (by code unit or UTF-8 byte, the driver's choice). */
  readonly order?: 'created' | 'updated'
  /** Default 'desc' (newest first). */
  readonly direction?: 'asc' | 'desc'
  readonly limit: number
  /** From the previous page, with the same query. */
  readonly cursor?: string
}

/** One page of the index. */
export interface HeadPage {
  readonly heads: readonly Head[]
  /** Present exactly when more may follow. */
  readonly cursor?: string
}

/** The label in which logs name the program that they run. Drivers use it to find what is due. */
export const PROGRAM_LABEL = 'holdfast.program'
/** The label of a log's priority, a whole number; absent: 0. */
export const PRIORITY_LABEL = 'holdfast.priority'
/** The label of what a log's limits are counted by, besides its program and tenant. Holds no `]`. */
export const LIMIT_LABEL = 'holdfast.limit'

/** What a worker asks for: logs of its programs that are due and that nobody holds. */
export interface DueQuery {
  /** By `PROGRAM_LABEL`. */
  readonly programs: readonly string[]
  /** Absent: all tenants. */
  readonly tenant?: TenantId
  /** The time up to which wake times have passed; 'now': by the store's own clock. */
  readonly now: number | 'now'
  readonly limit: number
  /** For this long, nobody else who asks gets them, unless something is written to them first. */
  readonly reserveMs: number
  /** Whose turn was last: the tenants behind this one come first. */
  readonly after?: TenantId
  /** Groups that are passed over. */
  readonly except?: readonly DueGroup[]
  /** Absent: nobody is preferred. */
  readonly warm?: WarmQuery
}

/**
 * A log is left for a moment to whoever held it last, whose state of it is warm. Only one that became due after it was
 * released: whoever gave up or lost a log that was due as before does not come for it.
 */
export interface WarmQuery {
  /** Who asks, by the name under which it claims. */
  readonly owner: string
  /** For how many milliseconds after they became due it gets nothing that others held last. */
  readonly ms: number
}

/** Logs of a program and a tenant: all of them, or those with a limit key (`LIMIT_LABEL`). */
export interface DueGroup {
  readonly program: string
  readonly tenant: TenantId
  readonly key?: string
}

/** What is due. */
export interface DuePage {
  /**
   * Higher priorities first; of the same priority tenants by turns, beginning behind `after`; of a tenant about in the order
   * in which they became due.
   */
  readonly heads: readonly Head[]
  /** Whether more may be due now. */
  readonly more: boolean
  /**
   * In how many milliseconds the next log of these programs may become due: a wake time, or the end of a lease or a
   * reservation. `null`: none is known. Meaningless if there is more now.
   */
  readonly nextMs: number | null
}

/** What is left of an erased thread: when and why. */
export interface Tombstone {
  readonly at: number
  readonly reason: string
}

/** Which thread, or branch of one, to remove. */
export interface EraseRequest {
  readonly tenant: TenantId
  readonly thread: ThreadId
  /** Only this branch; absent: the whole thread. */
  readonly branch?: BranchId
  /**
   * If given, these must be exactly the logs that would be erased; otherwise nothing is erased and the result is
   * 'conflict'.
   */
  readonly expect?: readonly { readonly branch: BranchId; readonly incarnation: string; readonly seq: number }[]
  /**
   * Left behind for the thread when its last branch is removed; `null` leaves nothing and removes an older tombstone. A
   * thread that did not exist leaves none, and keeps an older one.
   */
  readonly tombstone: Tombstone | null
}

/** Whether what was removed can still be found in a store's own files. */
export interface Scrubbed {
  /** True when it can't, as far as the backend can tell. */
  readonly complete: boolean
  /** One or two sentences for people: what was done, or what is left and how to remove it. */
  readonly note: string
}

/** A large value as the collector sees it. */
export interface BlobInfo {
  readonly hash: Hash
  readonly size: number
  readonly touchedAt: number
}

/** Whether an acknowledged append outlives a fault. */
export type Survival =
  | 'yes'
  | 'no'
  /** The newest entries may be lost, up to `lossWindowMs`, and the loss is detected. */
  | 'recent-loss'
  | 'not-applicable'

/** What an acknowledged append survives. Probed from the real server or file at open, never assumed. */
export interface Survives {
  readonly processKill: Survival
  readonly osCrash: Survival
  readonly powerLoss: Survival
  readonly failover: Survival
  readonly lossWindowMs?: number
  /** The settings that determine it, as found. */
  readonly settings: Readonly<Record<string, string>>
  /** One sentence for people. */
  readonly note: string
}

/** What a driver can do beyond the contract. Differences are declared here and never guessed from a driver's name. */
export interface Capabilities {
  /** Several processes may open the same store at once. */
  readonly multiProcess: boolean
  /** The store outlives the process. */
  readonly persistent: boolean
  /** The store's keys can be written in the same atomic operation as an entry. */
  readonly storeAtomic: boolean
  /** A user's own SQL can commit in the same transaction as an entry. */
  readonly transactions: boolean
  /** What other processes append is noticed without polling over and over: through `subscribe` or `watchChanges`. */
  readonly watch: boolean
  /** Messages reach other processes, through `subscribe`: live events, such as tokens, too. */
  readonly messages: boolean
  /** How many batches may be in flight at once. */
  readonly parallelBatches: number
  /** The most appends in one batch. */
  readonly maxBatch: number
}

/**
 * A durable, ordered log per branch, and nothing more. All meaning lives above.
 *
 * Failure: a method rejects when the store does not answer or refuses; it never turns failure into absence. A rejected
 * `append` may have landed unless the error's `data.written` is 'nothing'; the log layer finds out by looking for its
 * appendId. Every method rejects with ClosedError after `close`.
 */
export interface Driver extends Partial<ItemDriver>, Partial<CopyDriver> {
  /** For messages: 'memory', 'sqlite', … */
  readonly name: string
  readonly capabilities: Capabilities
  readonly survives: Survives

  /**
   * At most one Append per log in a batch; each is all-or-nothing; results by index; one round trip. An Append lands
   * only if incarnation, last seq, last hash and epoch are all as expected at that moment, in one atomic step with the
   * entries, the index row and the lease. Resolves only when it is as durable as `durability` says. Appends to
   * different logs in a batch are independent: a conflict in one does not affect another.
   */
  append(batch: readonly Append[]): Promise<readonly AppendResult[]>

  /**
   * The newest keyframe at or before `upTo` (default: the head) and every entry after it up to there, as of one moment:
   * in one round trip, or two where that costs the server less. Undefined for a log that does not exist.
   */
  tail(log: LogKey, upTo?: number): Promise<Tail | undefined>

  /**
   * What a nearby cache holds of the end of a log: possibly older than the log, of an earlier incarnation, or damaged.
   * Only for callers that append next, because an append compares. Starts at entry `from` if the cache holds that one,
   * otherwise at its keyframe. Undefined if it has nothing, for whatever reason; never rejects, and never waits long.
   * Absent where there is no cache; only where `capabilities.storeAtomic`, because it says nothing about the head row.
   */
  recent?(log: LogKey, from?: number): Promise<RecentTail | undefined>

  /**
   * What `recent` returned for a log was useless, and is not returned again; if it was merely an earlier state, until
   * somebody puts a later one into the cache. Present exactly when `recent` is.
   */
  forgetRecent?(log: LogKey, isOnlyBehind?: boolean): void

  /**
   * Nobody is working on the log for now: if `recent` had nothing for it, now is the time to load it. Present exactly
   * when `recent` is.
   */
  keepRecent?(log: LogKey): void

  /** Up to `limit` entries from `from` on, ascending; fewer than `limit` only at the end. */
  read(log: LogKey, from: number, limit: number): Promise<readonly StoredEntry[]>

  /**
   * Resolves when what `read` shows of a log is as durable as an acknowledged append, and rejects if that can't be
   * achieved: for a writer whose append was rejected and yet is there. Absent where whatever can be read is that
   * durable.
   */
  confirm?(log: LogKey): Promise<void>

  /** Up to `limit` headers before `before` (default: from the head), newest first. Bodies are not read. */
  headers(log: LogKey, options: { readonly before?: number; readonly limit: number }): Promise<readonly StoredHeader[]>

  /** The head alone. Undefined for a log that does not exist. */
  head(log: LogKey): Promise<Head | undefined>

  /**
   * Ends the lease `ms` from now (0: now) if incarnation and epoch are still these, even if it ran out and nobody else
   * came. The epoch alone is not enough: a log that is erased and created again counts from 0 again.
   */
  renew(log: LogKey, incarnation: string, epoch: number, ms: number): Promise<boolean>

  /**
   * One page of the thread index. A log that does not change while its pages are read is returned exactly once; in
   * 'created' order so is every log that exists throughout.
   */
  heads(query: HeadQuery): Promise<HeadPage>

  /**
   * Removes every entry before `seq`, which must be a keyframe, and moves the base there, in one atomic step.
   * 'conflict' if the incarnation differs, `seq` is not a keyframe of the log, or the log is gone. Pruning again to the
   * same or an older seq removes nothing. The head, its hash and its epoch are untouched.
   *
   * With `standIn`, a keyframe with that seq and the same hash as the entry there, which need not be a keyframe itself:
   * it replaces the entry in the same step, and the result is 'conflict' if the entry has another hash. Entries after
   * it keep their `keyframe`, which this may remove: `tail` then begins at the base.
   */
  prune(
    log: LogKey,
    incarnation: string,
    seq: number,
    standIn?: StoredEntry,
  ): Promise<{ readonly removed: number } | 'conflict'>

  /**
   * Removes logs with everything they hold except blobs, in one atomic step. Erasing what doesn't exist is no error.
   */
  erase(request: EraseRequest): Promise<{ readonly erased: number } | 'conflict'>

  /**
   * Removes what was deleted so far from the store's own files: write-ahead logs, append-only files, free pages. Says
   * how far that went. Absent where a removal itself does it.
   */
  scrub?(): Promise<Scrubbed>

  /** What an erased thread left behind, until a log of that thread is created again. */
  tombstone(tenant: TenantId, thread: ThreadId): Promise<Tombstone | undefined>

  /** Replaces the index row (not the lease) if the log still ends at `expect`. False if it does not. */
  reindex(log: LogKey, expect: Expect, index: IndexFields): Promise<boolean>

  /**
   * Refreshes `touchedAt` of the blobs that exist and returns the hashes of those that don't. Every refresh makes it
   * strictly later than before, even within one millisecond: `removeBlob` relies on it.
   */
  touchBlobs(tenant: TenantId, hashes: readonly Hash[]): Promise<readonly Hash[]>

  /** Stores blobs under their hashes, as durably as appends; one that exists only gets a new `touchedAt`. */
  putBlobs(tenant: TenantId, blobs: readonly { readonly hash: Hash; readonly bytes: Uint8Array }[]): Promise<void>

  /** The blobs that exist, in any order; a missing one is simply not in the map. */
  getBlobs(tenant: TenantId, hashes: readonly Hash[]): Promise<ReadonlyMap<Hash, Uint8Array>>

  /** Up to `limit` blobs of a tenant with a hash above `after`, in the order of their hashes. */
  listBlobs(tenant: TenantId, options: { readonly after?: Hash; readonly limit: number }): Promise<readonly BlobInfo[]>

  /** Removes a blob if its `touchedAt` is still exactly this. A blob that was put again in the meantime stays. */
  removeBlob(tenant: TenantId, hash: Hash, touchedAt: number): Promise<boolean>

  /**
   * The next logs that are due, reserved for the caller. Workers that ask at the same moment get different ones, and do
   * not wait for each other. Logs of other programs cost nothing. A reservation is not a claim: it only keeps others
   * from trying. Absent where only a walk over all heads would find them.
   */
  takeDue?(query: DueQuery): Promise<DuePage>

  /**
   * Where logs end, by index; undefined for one that does not exist. One round trip for many. Absent: ask for each head.
   */
  positions?(logs: readonly LogKey[]): Promise<readonly (Position | undefined)[]>

  /**
   * Notifies the processes that subscribed to a topic. Never waits and never fails: what can't be sent is lost, and
   * listeners also poll now and then. Topics are short and plain; a message is at most `MESSAGE_BYTES` long.
   */
  publish?(topic: string, message: string): void

  /**
   * Whether somebody may be listening to a topic, as far as is known here: if not, there is no need to prepare a
   * message.
   */
  hasSubscribers?(topic: string): boolean

  /**
   * Calls `heard` with what other processes (and possibly this one) publish on a topic from then on, and with undefined
   * when messages may have been missed, as after a lost connection. Resolves to a function that ends the subscription.
   */
  subscribe?(topic: string, heard: (message: string | undefined) => void): Promise<() => Promise<void>>

  /**
   * Calls `changed` after others wrote to the store, for a store that can't tell what changed. Returns a function that
   * ends it.
   */
  watchChanges?(changed: () => void): () => void

  /**
   * Runs `work` in a transaction, then makes the append that it resolves to as the last thing in the same transaction,
   * and commits. None of it is kept if `work` rejects, the append conflicts, or `timeoutMs` runs out, counted from the
   * beginning of the transaction. `work` gets the user's SQL, and a way to store blobs in the transaction too: every
   * other write through this driver may have to wait for its end. Rejects with what `work` rejected with. Present
   * exactly when `capabilities.transactions`.
   */
  transact?(
    work: (sql: SqlSession, blobs: BlobWriter) => Promise<Append>,
    options: { readonly timeoutMs: number },
  ): Promise<AppendResult>

  /** The wall-clock time of the server, in milliseconds since 1970. Absent where the clock is this machine's. */
  now?(): Promise<number>

  /** Waits for what is in progress, then releases everything. Closing twice is no error. */
  close(): Promise<void>
}
