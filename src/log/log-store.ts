import { Redactor } from '../codec/secret/redactor.js'
import { ClosedError } from '../core/errors.js'
import { checkWhole } from '../core/wording/choices.js'
import type { TenantId, ThreadId } from '../core/ids.js'
import { randomIds } from '../core/random-id.js'
import { parseStoreRetention, type StoreRetentionPolicy } from '../core/retention.js'
import { systemClock } from '../core/time/system-clock.js'
import { NO_OBSERVER, type Observer } from '../telemetry/observer.js'
import { AnchorBook } from './anchors/anchor-book.js'
import type { Anchor } from './anchors/anchors.js'
import { dueHeads } from './read/heads.js'
import { collectBlobs } from './read/collect-blobs.js'
import type {
  Capabilities,
  Driver,
  DuePage,
  DueQuery,
  Head,
  Survives,
  EraseRequest,
  HeadPage,
  HeadQuery,
  Lease,
  LogKey,
  Scrubbed,
  Tombstone,
} from './contract.js'
import { GroupCommit } from './write/group-commit.js'
import { ItemSealer } from './items/item-sealer.js'
import { ItemStore } from './items/item-store.js'
import { parseKeyOptions } from './keys/key-options.js'
import { KeyRing } from './keys/key-ring.js'
import { KeptLogs } from './kept-logs.js'
import { isReservedThread, refuseReservedThread } from './keys/keys.js'
import { type BeforeRemoval, type ForkOptions, Log } from './log.js'
import type { LogEnvironment } from './log-environment.js'
import { type LogStoreOptions, readOptions } from './log-store-options.js'
import { StoreClock } from './store-clock.js'
import { News } from './news/news.js'
import { PlainTenants } from './keys/plain-tenants.js'
import { type ImportedLog, importLog, type PlainEntry } from './write/import-log.js'
import { retry } from './write/retry.js'
import { TenantKeys } from './keys/tenant-keys.js'
import { type Verification, verifyLog } from './read/verify.js'
import { type AnchorReport, verifyAnchors } from './anchors/verify-anchors.js'

/** All logs of one backend: opens them, lists them, removes them, and groups their appends into commits. */
export class LogStore {
  /** Memory that outlives threads, as the driver keeps it. */
  readonly items: ItemStore
  /** Removes what must not be kept; undefined if everything may be. */
  readonly redactor: Redactor | undefined
  /** How long threads are kept. */
  readonly retention: StoreRetentionPolicy
  readonly #environment: LogEnvironment
  readonly #keyRing: KeyRing | undefined
  readonly #plainTenants: PlainTenants
  readonly #kept: KeptLogs
  #closed: Promise<void> | undefined

  constructor(driver: Driver, options: LogStoreOptions = {}) {
    const { retryMs, blobThreshold, cacheBytes, limits } = readOptions(options)
    this.retention = parseStoreRetention(options.retention)
    this.redactor = options.redact === undefined ? undefined : new Redactor(options.redact)
    const masters = options.keys === undefined ? undefined : parseKeyOptions(options.keys)
    const clock = new StoreClock(options.clock ?? systemClock(), driver)
    const news = new News(driver, clock)
    const environment: LogEnvironment = {
      driver,
      commit: new GroupCommit(driver, (batch, results) => news.appended(batch, results)),
      news,
      clock,
      limits,
      blobThreshold,
      keys: undefined,
      items: new ItemSealer(limits, undefined),
      retryMs,
      randomId: options.randomId ?? randomIds(),
      anchors: options.anchors && new AnchorBook(options.anchors),
      observer: options.observer ?? NO_OBSERVER,
    }
    // What is encrypted in the store must not pass through it in plain text.
    if (masters !== undefined) news.live.crosses = false
    this.#keyRing = masters && new KeyRing(environment, masters)
    this.#plainTenants = new PlainTenants(driver, environment.clock)
    this.#kept = new KeptLogs(cacheBytes, environment.clock)
    this.#environment = { ...environment, keys: this.#keyRing, items: new ItemSealer(limits, this.#keyRing) }
    this.items = new ItemStore(this.#environment, this.redactor, (tenant) => this.#admit(tenant))
  }

  get capabilities(): Capabilities {
    return this.#environment.driver.capabilities
  }

  get survives(): Survives {
    return this.#environment.driver.survives
  }

  get clock(): StoreClock {
    return this.#environment.clock
  }

  get randomId(): () => string {
    return this.#environment.randomId
  }

  /** True if what is stored is authenticated by keys. */
  get hasKeys(): boolean {
    return this.#keyRing !== undefined
  }

  /** What happens on logs, for those who wait. */
  get news(): News {
    return this.#environment.news
  }

  get observer(): Observer {
    return this.#environment.observer
  }

  /** Learns the time of the store's own clock, if it has one, before anybody asks for it. */
  async syncClock(): Promise<void> {
    await this.#environment.clock.sync()
  }

  /** What the store's own clock says; undefined if it has none. */
  async now(): Promise<number | undefined> {
    return this.#live.driver.now?.()
  }

  /** What the index knows of a log. */
  async head(key: LogKey): Promise<Head | undefined> {
    return this.#live.driver.head(key)
  }

  /** Who holds a log now, by the store's clock. */
  async lease(key: LogKey): Promise<Lease | null> {
    return (await this.#live.driver.head(key))?.lease ?? null
  }

  /** Reads and verifies a log, which need not exist yet. */
  async open(key: LogKey): Promise<Log> {
    const environment = this.#liveFor(key.thread)
    // Retried like the writes that follow: a connection that breaks in between must not fail what is sent to a thread.
    // The tenant and the clock come first: in parallel, the first read of a process would wait for a second connection.
    if (!this.#isAdmitted(key.tenant)) {
      await retry(environment, () => this.#admit(key.tenant))
      await environment.clock.sync()
    }
    return retry(environment, () => this.#alongSync(Log.open(environment, key)))
  }

  /** Looks at the store's clock alongside, if that is due. */
  #alongSync<Read>(reading: Promise<Read>): Promise<Read> {
    const syncing = this.#environment.clock.sync()
    return syncing === undefined ? reading : Promise.all([reading, syncing]).then(([read]) => read)
  }

  /**
   * Which of these logs did not exist a moment ago, found with few round trips; none where that would cost as much as to
   * open them.
   */
  async findNew(keys: readonly LogKey[]): Promise<ReadonlySet<LogKey>> {
    const { driver, anchors } = this.#live
    // Whether a log that is not there was once is for `open` to find out.
    if (driver.positions === undefined || anchors !== undefined) return new Set()
    const found = await retry(this.#environment, async () => driver.positions?.(keys))
    return new Set(keys.filter((_, i) => found?.[i] === undefined))
  }

  /** As `borrow`, for a log that `findNew` named. If it exists by now, its first update finds out. */
  async begin(key: LogKey): Promise<Log> {
    const environment = this.#liveFor(key.thread)
    this.#kept.take(key)
    await retry(environment, () => this.#admit(key.tenant))
    await environment.clock.sync()
    return Log.unread(environment, key)
  }

  /**
   * As `open`, for someone who gives the log back: what this process has read and verified before is not read again.
   * Nobody else has it until then. A cache may tell an older state that holds entry `atLeast`: then the log is not confirmed
   * until an append to it lands, and is given back by `disbelieve` if none does. `Infinity`: it must be the newest.
   */
  async borrow(key: LogKey, { atLeast = 0 }: { readonly atLeast?: number } = {}): Promise<Log> {
    const kept = this.#kept.take(key)
    const isCached = this.#live.driver.recent !== undefined && atLeast !== Infinity
    const recent = isCached ? await this.#recent(key, kept, atLeast) : undefined
    if (recent) return recent
    if (kept === undefined) return this.open(key)
    const isSame = await retry(this.#environment, () => this.#alongSync(kept.reopen()))
    return isSame ? kept : this.open(key)
  }

  /** After `borrow`, when none of its operations are in progress anymore. */
  giveBack(log: Log): void {
    if (this.#closed) return
    this.#kept.keep(log)
    this.#environment.driver.keepRecent?.(log.key)
  }

  /** After `borrow`, when what a cache returned for it was wrong: the next to borrow it asks the store itself. */
  disbelieve(log: Log): void {
    this.#environment.observer.count('holdfast.cache.outdated')
    if (log.disbelieve()) this.giveBack(log)
  }

  /** A log that is not read or verified as a whole, for looking at older entries of one that may be damaged. */
  unread(key: LogKey): Log {
    return Log.unread(this.#liveFor(key.thread), key)
  }

  /**
   * Starts another branch from an entry without reading what follows it: the way out of a log whose newest entries are
   * damaged.
   */
  async fork(key: LogKey, options: ForkOptions & { readonly at: number | string }): Promise<Log> {
    const environment = this.#liveFor(key.thread)
    await retry(environment, () => this.#admit(key.tenant))
    return Log.unread(environment, key).fork(options)
  }

  /** The keys of a tenant: rotation and status. */
  keys(tenant: TenantId): TenantKeys {
    return new TenantKeys(tenant, this.#keyRing, this.#live, () => this.#kept.forget({ tenant }))
  }

  /** One page of the thread index. */
  async list(query: HeadQuery): Promise<HeadPage> {
    checkWhole('limit', query.limit, 10_000, 'Ask for pages and follow the cursor.')
    const page = await this.#live.driver.heads(query)
    return { ...page, heads: page.heads.filter(({ log }) => !isReservedThread(log.thread)) }
  }

  /** Whether logs that `takeDue` returns are kept from others for a while. */
  get reservesDue(): boolean {
    return this.#environment.driver.takeDue !== undefined
  }

  /** The next logs of some programs that are due, for a worker that is about to claim them. */
  async takeDue(query: DueQuery): Promise<DuePage> {
    const { driver } = this.#live
    return driver.takeDue?.(query) ?? dueHeads(driver, query)
  }

  /**
   * Removes what is before an entry, which stays readable: if it is not a keyframe, one takes its place. Tagged entries
   * are kept with everything that follows them, unless told otherwise.
   */
  async prune(
    key: LogKey,
    seq: number,
    options: {
      readonly evenTagged?: boolean
      /** Told where the branch is trimmed, while everything is still there; if it rejects, nothing is removed. */
      readonly beforeRemoval?: BeforeRemoval
    } = {},
  ): Promise<{ readonly removed: number }> {
    const log = await this.open(key)
    const tagged = options.evenTagged ? [] : Object.values(log.fold.index.tags)
    const removed = await log.cutBefore(Math.min(seq, ...tagged), options.beforeRemoval)
    // What this process keeps of it would continue from entries that are gone.
    if (removed > 0) this.#kept.forget(key)
    return { removed }
  }

  /** Removes a thread or one of its branches. The tombstone tells later runs that it existed. */
  async erase(request: EraseRequest): Promise<{ readonly erased: number } | 'conflict'> {
    const environment = this.#liveFor(request.thread)
    this.#kept.forget(request)
    const result = await environment.driver.erase(request)
    if (result !== 'conflict') environment.anchors?.noteErased(request)
    return result
  }

  /** Removes deleted data from the backend's own files, as far as it can. */
  async scrub(): Promise<Scrubbed> {
    const { driver } = this.#live
    return (
      (await driver.scrub?.()) ?? { complete: true, note: 'What is removed is gone from the files of this backend.' }
    )
  }

  async tombstone(tenant: TenantId, thread: ThreadId): Promise<Tombstone | undefined> {
    return retry(this.#live, () => this.#environment.driver.tombstone(tenant, thread))
  }

  /** Walks a whole log and says what is wrong with it; undefined if there is no such log. */
  async verify(key: LogKey, options: { readonly repair?: boolean } = {}): Promise<Verification | undefined> {
    return verifyLog(this.#live, key, options)
  }

  /** Compares what the store holds with its anchors, for all tenants. */
  async verifyAnchors(anchors: Iterable<Anchor>): Promise<AnchorReport> {
    return verifyAnchors(this.#live, anchors)
  }

  /**
   * Creates a log from entries that come from elsewhere, sealed again under this name. Throws ConflictError if it
   * exists.
   */
  async importLog(key: LogKey, entries: readonly PlainEntry[]): Promise<ImportedLog> {
    const environment = this.#liveFor(key.thread)
    await this.#admit(key.tenant)
    return importLog(environment, key, entries)
  }

  /** Every tenant of the store. May walk through everything stored. */
  async tenants(): Promise<readonly TenantId[]> {
    const tenants = await retry(this.#live, async () => this.#environment.driver.listTenants?.())
    return tenants ?? []
  }

  /** Removes the blobs of a tenant that nothing points to. */
  async collectBlobs(tenant: TenantId, options: { readonly graceMs?: number } = {}) {
    return collectBlobs(this.#live, tenant, options)
  }

  /** Waits for what is in progress and closes the backend. Closing twice is fine: both calls wait for the same end. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#kept.clear()
    await this.#environment.observer.close()
    await this.#environment.commit.close()
    await this.#environment.news.close()
    try {
      await this.#environment.anchors?.close()
    } finally {
      await this.#environment.driver.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #recent(key: LogKey, kept: Log | undefined, atLeast: number): Promise<Log | undefined> {
    const { observer } = this.#environment
    refuseReservedThread(key.thread)
    await retry(this.#environment, () => this.#admit(key.tenant))
    const reading = kept
      ? kept.readRecent(atLeast).then((isRead) => (isRead ? kept : undefined))
      : Log.recent(this.#environment, key, atLeast)
    const log = await this.#alongSync(reading)
    observer.count(log ? 'holdfast.cache.hits' : 'holdfast.cache.misses')
    return log
  }

  #isAdmitted(tenant: TenantId): boolean {
    return this.#keyRing !== undefined || this.#plainTenants.isAdmitted(tenant)
  }

  async #admit(tenant: TenantId): Promise<void> {
    if (!this.#keyRing) await this.#plainTenants.admit(tenant)
  }

  /** What logs share, for as long as the store is open. */
  get #live(): LogEnvironment {
    if (this.#closed) throw new ClosedError('This Holdfast')
    return this.#environment
  }

  #liveFor(thread: ThreadId): LogEnvironment {
    refuseReservedThread(thread)
    return this.#live
  }
}
