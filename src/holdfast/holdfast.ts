import { ThreadArchive } from '../archive/thread-archive.js'
import type { Value } from '../codec/value.js'
import { InvalidOptionError } from '../core/errors.js'
import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import {
  DEFAULT_TENANT,
  MAIN_BRANCH,
  parseBranchId,
  parseTenantId,
  parseThreadId,
  type TenantId,
  type ThreadIdInput,
} from '../core/ids.js'
import { describePolicy, type Retention, type SweepReport } from '../core/retention.js'
import { nameLog } from '../core/log-name.js'
import { type Capabilities, type Driver, type Survives, type LogKey, type Tombstone } from '../log/contract.js'
import type { Anchor, Anchors } from '../log/anchors/anchors.js'
import type { ForkOptions, Log } from '../log/log.js'
import type { LogStore } from '../log/log-store.js'
import type { TenantKeys } from '../log/keys/tenant-keys.js'
import type { Verification } from '../log/read/verify.js'
import type { AnchorReport } from '../log/anchors/verify-anchors.js'
import type { ExportOptions } from '../fixture/export-thread.js'
import type { ImportedThread } from '../fixture/import-thread.js'
import { makeEnvironment } from './make-environment.js'
import { listMetrics } from './metrics-store.js'
import { type HoldfastPlaces, missingArchive } from './places.js'
import { listWorkers, type WorkerInfo } from './worker-store.js'
import { ANSWER_OPTIONS, type AnswerOptions } from '../runtime/pause/answer.js'
import {
  answerAll,
  type BulkAnswer,
  type BulkRun,
  type BulkRunOptions,
  listPauses,
  type MigrationReport,
  migrateAll,
  type PausePage,
  resumeAll,
} from '../runtime/pause/bulk.js'
import { findErrors } from '../runtime/history/branches.js'
import { listenLive } from '../runtime/events/follow-events.js'
import type { RunEvent } from '../runtime/events/events.js'
import { planOf } from '../runtime/program/check-program.js'
import type { FlowProgram } from '../runtime/program/flow.js'
import type { GraphProgram } from '../runtime/program/graph/graph.js'
import type { ProgramPlan, TypedProgram } from '../runtime/program/program.js'
import {
  type BulkEnqueued,
  type BulkEnqueueOptions,
  type BulkInput,
  enqueueAll,
} from '../runtime/run/input/bulk-enqueue.js'
import type { RuntimeEnvironment } from '../runtime/run/environment.js'
import { Schedules } from '../runtime/schedule/schedules.js'
import type { Shape, StateOf, UpdateOf } from '../runtime/program/state/state-key.js'
import { Thread } from '../runtime/thread.js'
import { ThreadView } from '../runtime/thread-view.js'
import { type DispatchOptions, Dispatcher } from '../runtime/worker/dispatcher.js'
import { measureQueue, type QueueAge } from '../runtime/worker/queue-age.js'
import { Worker } from '../runtime/worker/worker.js'
import type { WorkerOptions } from '../runtime/worker/worker-options.js'
import {
  eraseTenant,
  eraseThread,
  type ErasedTenant,
  type EraseOptions,
  type ScrubReport,
  scrubStore,
} from '../retention/erase.js'
import { Store } from '../store/store.js'
import { SWEEP_OPTIONS, sweepNow, type SweepThreadsOptions } from './sweeps.js'
import type { ProcessMetrics } from '../telemetry/process-metrics.js'
import { headQuery, summarize, type ThreadPage, type ThreadQuery } from './thread-list.js'
import { relativesOf, tellParentOf } from './thread-relatives.js'

/** Which branch of a thread to use, and settings for it alone. */
export interface ThreadOptions {
  /** Default `main`. */
  readonly branch?: string
  /**
   * How long this thread is kept, and which parts of it, regardless of its program and the store. Recorded by its next
   * run.
   */
  readonly retention?: Retention
}

const BRANCH: OptionNames<{ branch?: string }> = { branch: true }
const ERASE: OptionNames<EraseOptions> = { reason: true, tombstone: true }

/** How old an object without a note must be before it counts as left behind. */
const OBJECT_GRACE_MS = 60 * 60 * 1000

/** An open store, as one tenant sees it. Everything it reads and writes belongs to that tenant. */
export class Holdfast {
  readonly #store: LogStore
  readonly #tenant: TenantId
  readonly #runtime: RuntimeEnvironment
  readonly #narrowed: boolean
  readonly #places: HoldfastPlaces

  constructor(
    store: LogStore,
    tenant: TenantId = DEFAULT_TENANT,
    runtime?: RuntimeEnvironment,
    places: HoldfastPlaces = {},
  ) {
    this.#store = store
    this.#places = places
    this.#tenant = tenant
    this.#narrowed = runtime !== undefined
    this.#runtime = runtime ?? makeEnvironment(store, places)
  }

  /** What an acknowledged append survives on this backend, as probed when it was opened. */
  get survives(): Survives {
    return this.#store.survives
  }

  get capabilities(): Capabilities {
    return this.#store.capabilities
  }

  /** What the server's own clock says; undefined on backends that use this machine's clock. */
  async serverTime(): Promise<Date | undefined> {
    const now = await this.#store.now()
    return now === undefined ? undefined : new Date(now)
  }

  /** How long threads are kept, in one line for people. */
  get retention(): string {
    return describePolicy(this.#store.retention)
  }

  /** The keys of this tenant: rotation and status. Needs the option `keys`. */
  get keys(): TenantKeys {
    return this.#store.keys(this.#tenant)
  }

  /** Memory that outlives threads, always inside a scope of this tenant. */
  get store(): Store {
    return new Store(this.#store.items, this.#tenant)
  }

  /** Programs that run by themselves, at set times or intervals. Workers that have the program start them. */
  get schedules(): Schedules {
    return new Schedules(this.#runtime, this.#tenant, (thread) => this.erase(thread, { tombstone: false }))
  }

  /** The same store, restricted to another tenant. */
  tenant(id: string): Holdfast {
    return new Holdfast(this.#store, parseTenantId(id), this.#runtime, this.#places)
  }

  /** Every tenant of the store, whichever this is restricted to. May walk through everything stored. */
  tenants(): Promise<readonly string[]> {
    return this.#store.tenants()
  }

  /** A thread of this program. It need not exist: its first run creates it. */
  thread<S extends Shape, Input>(
    program: GraphProgram<S, Input>,
    id: ThreadIdInput,
    options?: ThreadOptions,
  ): Thread<Input, StateOf<S>, StateOf<S>, UpdateOf<S>>
  thread<Input, Output>(
    program: FlowProgram<Input, Output>,
    id: ThreadIdInput,
    options?: ThreadOptions,
  ): Thread<Input, Readonly<Record<string, Value>>, Output>
  thread<Input, State, Output>(
    program: TypedProgram<Input, State, Output>,
    id: ThreadIdInput,
    options?: ThreadOptions,
  ): Thread<Input, State, Output>
  thread(
    program: { readonly plan: ProgramPlan },
    id: ThreadIdInput,
    options: ThreadOptions = {},
  ): Thread<never, never, never> {
    checkOptionNames('hf.thread()', options, { branch: true, retention: true })
    const plan = planOf('program', program)
    const { branch, retention } = options
    return new Thread<never, never, never>(this.#runtime, this.#key(id, branch), plan, retention)
  }

  /** A thread without its program: to look at it, answer its questions, signal or cancel it. */
  inspect(id: ThreadIdInput, options: { readonly branch?: string } = {}): ThreadView {
    checkOptionNames('hf.inspect()', options, BRANCH)
    return new ThreadView(this.#runtime, this.#key(id, options.branch))
  }

  /**
   * Runs whatever is due for these programs: for this tenant if restricted to one, otherwise for all. Starts
   * immediately.
   */
  worker(options: WorkerOptions): Worker {
    return new Worker(this.#runtime, this.#narrowed ? this.#tenant : undefined, options)
  }

  /**
   * For other engines: hands out threads of these programs as they become due. Bring them to `worker.work` of a worker
   * with `looks: false`. For this tenant if restricted to one, otherwise for all. Starts at once. `holdfast/bullmq` is
   * built on it.
   */
  dispatch(options: DispatchOptions): Dispatcher {
    return new Dispatcher(this.#runtime, this.#narrowed ? this.#tenant : undefined, options)
  }

  /**
   * The workers of the store that were seen in the last hour, whichever tenant this is restricted to: what each runs,
   * and whether it still seems to be there. Not those of a store that was opened with `telemetry: false`.
   */
  workers(): Promise<readonly WorkerInfo[]> {
    return listWorkers(this.#store)
  }

  /**
   * How many threads are waiting for a worker, and how long the oldest has waited: for this tenant if restricted to
   * one, otherwise for all. For some programs by name, or for all.
   */
  queueAge(options: { readonly programs?: readonly string[] } = {}): Promise<QueueAge> {
    checkOptionNames('hf.queueAge()', options, { programs: true })
    return measureQueue(this.#store, { ...options, tenant: this.#narrowed ? this.#tenant : undefined })
  }

  /**
   * For servers: calls back with tokens and other events of a thread's runs that are never recorded, named as workers
   * name them in their events, and says whether another process runs it. `thread.events({ live: true })` yields them
   * between the records.
   */
  onLive(log: string, heard: (event: RunEvent, isElsewhere: boolean) => void): () => void {
    return listenLive(this.#store, log, heard)
  }

  /** Opens one branch of a thread, verified. A thread that does not exist is created by its first update. */
  async log(thread: ThreadIdInput, options: { readonly branch?: string } = {}): Promise<Log> {
    checkOptionNames('hf.log()', options, BRANCH)
    return this.#store.open(this.#key(thread, options.branch))
  }

  /**
   * Starts another branch from a checkpoint without reading what follows it: the way out of a thread whose newest
   * entries are damaged. `from` is the branch of the checkpoint, `main` by default.
   */
  async fork(
    thread: ThreadIdInput,
    options: ForkOptions & { readonly at: number | string; readonly from?: string },
  ): Promise<Log> {
    checkOptionNames('hf.fork()', options, { at: true, branch: true, draft: true, from: true })
    return this.#store.fork(this.#key(thread, options.from), options)
  }

  /** One page of the threads of this tenant. */
  async threads(query: ThreadQuery = {}): Promise<ThreadPage> {
    const { errors = false } = query
    const page = await this.#store.list(headQuery('hf.threads()', this.#tenant, query))
    const found = errors ? await findErrors(this.#runtime, page.heads) : []
    const threads = page.heads.map((head, i) => ({ ...summarize(head), ...(found[i] ? { error: found[i] } : {}) }))
    return { threads, ...(page.cursor === undefined ? {} : { cursor: page.cursor }) }
  }

  /**
   * One page of the open questions of this tenant's threads, with where each is asked. `limit` counts threads. With
   * `deferred: false`, those that someone postponed are left out.
   */
  async pauses(query: Omit<ThreadQuery, 'status'> & { readonly deferred?: boolean } = {}): Promise<PausePage> {
    const { deferred, ...rest } = query
    return listPauses(
      this.#runtime,
      headQuery('hf.pauses()', this.#tenant, rest),
      deferred === undefined ? {} : { deferred },
    )
  }

  /** Answers many questions. Each is accepted or refused on its own, and the results say which, in the same order. */
  async answer(
    answers: readonly {
      readonly thread: ThreadIdInput
      readonly branch?: string
      readonly pause: string
      readonly value: unknown
    }[],
    options: AnswerOptions = {},
  ): Promise<readonly BulkAnswer[]> {
    checkOptionNames('hf.answer()', options, ANSWER_OPTIONS)
    const viewOf = ({ thread, branch }: { readonly thread: ThreadIdInput; readonly branch?: string }) =>
      this.inspect(thread, branch === undefined ? {} : { branch })
    return answerAll(
      answers,
      (answer) => nameLog(viewOf(answer).key),
      async (some) => viewOf(some[0] as (typeof some)[number]).answerSeveral(some, options),
    )
  }

  /**
   * Leaves input for many threads of this tenant, with few round trips. Each item is queued or refused on its own, and
   * the results say which, in the same order. An invalid item is named (`items[3].thread`) before anything is written.
   */
  async enqueue(items: readonly BulkInput[], options: BulkEnqueueOptions = {}): Promise<readonly BulkEnqueued[]> {
    checkOptionNames('hf.enqueue()', options, { onEnqueued: true })
    return enqueueAll(this.#runtime, items, ({ thread, branch }) => this.#key(thread, branch), options)
  }

  /** Resumes all threads of a program that match the query, several at a time. */
  async resume(
    program: { readonly plan: ProgramPlan },
    query: ThreadQuery = {},
    options: BulkRunOptions = {},
  ): Promise<readonly BulkRun[]> {
    checkOptionNames('hf.resume()', options, { concurrency: true, context: true, signal: true, onRun: true })
    return resumeAll(
      this.#runtime,
      planOf('program', program),
      headQuery('the query of hf.resume()', this.#tenant, query),
      options,
    )
  }

  /** Migrates the states of a program's threads now, instead of when each is next run. */
  async migrate(
    program: { readonly plan: ProgramPlan },
    options: { readonly dryRun?: boolean; readonly query?: ThreadQuery } = {},
  ): Promise<MigrationReport> {
    checkOptionNames('hf.migrate()', options, { dryRun: true, query: true })
    const query = headQuery('the query of hf.migrate()', this.#tenant, options.query ?? {})
    return migrateAll(this.#runtime, planOf('program', program), query, options)
  }

  /** Walks a whole branch and says what is wrong with it; undefined if there is no such branch. */
  async verify(
    thread: ThreadIdInput,
    options: { readonly branch?: string; readonly repair?: boolean } = {},
  ): Promise<Verification | undefined> {
    checkOptionNames('hf.verify()', options, { branch: true, repair: true })
    return this.#store.verify(this.#key(thread, options.branch), { repair: options.repair ?? false })
  }

  /**
   * Compares what the store holds with its anchors, for all tenants: whether a branch or an item was rolled back to an
   * older state, or removed. Pass the anchors of all processes that write.
   */
  async verifyAnchors(...places: readonly Anchors[]): Promise<AnchorReport> {
    const anchors: Anchor[] = []
    for (const place of places) {
      if (place.read === undefined) throw new InvalidOptionError('anchors', "can't be read", 'Pass places with `read`.')
      anchors.push(...(await place.read()))
    }
    return this.#store.verifyAnchors(anchors)
  }

  /** Removes what comes before an entry of a branch. The entry itself, tagged ones and what follows stay readable. */
  async prune(
    thread: ThreadIdInput,
    seq: number,
    options: { readonly branch?: string; readonly evenTagged?: boolean } = {},
  ) {
    checkOptionNames('hf.prune()', options, { branch: true, evenTagged: true })
    return this.#store.prune(this.#key(thread, options.branch), seq, { evenTagged: options.evenTagged ?? false })
  }

  /**
   * Removes a thread with all its branches. A tombstone with the reason stays behind, unless `tombstone` is false. Its
   * large values are removed by the next sweep, or immediately by `scrub`. Threads that its runs started with `ctx.run`
   * are removed with it, and so are the states of a hosted LangGraph graph; a run that awaits it is told that it was
   * cancelled. What it wrote to the store stays: `hf.store.scope(…).erase()` removes that.
   */
  async erase(thread: ThreadIdInput, options: EraseOptions = {}): Promise<{ readonly erased: number }> {
    checkOptionNames('hf.erase()', options, ERASE)
    const id = parseThreadId(thread)
    const ids = await relativesOf(this.#store, this.#tenant, thread, id)
    await tellParentOf(this.#runtime, this.#tenant, id)
    let erased = 0
    for (const one of [...ids, id]) {
      erased = (await eraseThread(this.#store, this.#tenant, one, options)).erased
      await this.#places.archive?.archive.remove(this.#tenant, one)
    }
    return { erased }
  }

  /**
   * Removes everything of this tenant: threads, memory and large values. Its data keys stay; `keys.destroy()` makes
   * copies and backups unreadable too. What is written in the meantime may stay.
   */
  async eraseTenant(options: EraseOptions = {}): Promise<ErasedTenant> {
    checkOptionNames('hf.eraseTenant()', options, ERASE)
    const erased = await eraseTenant(this.#store, this.#tenant, this.store, options)
    await this.#places.archive?.archive.remove(this.#tenant)
    return erased
  }

  /**
   * After `erase`, when nothing may be found anymore: removes the large values that nothing points to, expired items,
   * and what was deleted from the backend's own files. The result says how far that went: not every backend can do it
   * completely.
   */
  async scrub(options: { readonly graceMs?: number } = {}): Promise<ScrubReport> {
    checkOptionNames('hf.scrub()', options, { graceMs: true })
    return scrubStore(this.#store, this.#tenant, options)
  }

  /**
   * Removes what the retention policy no longer keeps, as workers do every minute: expired threads, checkpoints beyond
   * what is kept of a branch, large values that nothing points to and expired items. For this tenant if restricted to
   * one, otherwise for all. Safe alongside everything else, from any number of processes; what was used in the meantime
   * stays.
   */
  async sweep(options: SweepThreadsOptions = {}): Promise<SweepReport> {
    checkOptionNames('hf.sweep()', options, SWEEP_OPTIONS)
    return sweepNow(this.#store, this.#places, this.#narrowed ? this.#tenant : undefined, options)
  }

  /** What an erased thread left behind. */
  tombstone(thread: ThreadIdInput): Promise<Tombstone | undefined> {
    return this.#store.tombstone(this.#tenant, parseThreadId(thread))
  }

  /**
   * A thread as one portable text, with all branches and large values, decrypted: for a test, a report, another store.
   * `redact` removes what must not leave. What it wrote to the store is not included.
   */
  async export(thread: ThreadIdInput, options: ExportOptions = {}): Promise<string> {
    checkOptionNames('hf.export()', options, { branch: true, redact: true })
    const { exportThread } = await import('../fixture/export-thread.js')
    return exportThread(this.#store, this.#tenant, parseThreadId(thread), options)
  }

  /**
   * Creates a thread from what `export` returned, under its own name or another. Throws ConflictError if there already
   * is one with that name. Workers do not pick it up by themselves: it continues when it is run.
   */
  async import(
    fixture: string,
    options: { readonly thread?: ThreadIdInput } = {},
  ): Promise<ImportedThread & { readonly thread: ThreadIdInput }> {
    checkOptionNames('hf.import()', options, { thread: true })
    const { readFixture } = await import('../fixture/fixture-file.js')
    const { importThread } = await import('../fixture/import-thread.js')
    const read = readFixture(fixture)
    const thread = options.thread ?? read.thread
    return { thread, ...(await importThread(this.#store, this.#tenant, parseThreadId(thread), read)) }
  }

  /** Removes the blobs of this tenant that nothing points to anymore. */
  async collectBlobs(options: { readonly graceMs?: number } = {}) {
    checkOptionNames('hf.collectBlobs()', options, { graceMs: true })
    const collected = await this.#store.collectBlobs(this.#tenant, options)
    await this.#places.collectObjects?.(this.#tenant, options.graceMs ?? OBJECT_GRACE_MS)
    return collected
  }

  /** The archive that the store was opened with (option `archive`), for this tenant. */
  get archive(): ThreadArchive<Holdfast> {
    if (this.#places.archive) {
      const { view, ...parts } = this.#places.archive
      const narrowed = (memory: Driver): Holdfast => view(memory).tenant(this.#tenant)
      return new ThreadArchive({ ...parts, view: narrowed }, this.#store, this.#tenant)
    }
    throw missingArchive('archive')
  }

  /** Whether it was opened with one. */
  get hasArchive(): boolean {
    return this.#places.archive !== undefined
  }

  /**
   * What processes have counted on this store in the last day, including this one: one item for each that opened it.
   * Metrics belong to the store as a whole, whichever tenant this is restricted to. `mergeMetrics` adds them up.
   */
  metrics(): Promise<readonly ProcessMetrics[]> {
    return listMetrics(this.#store)
  }

  /** What this process has counted since it opened the store; undefined with `telemetry: false`. */
  get counted(): Pick<ProcessMetrics, 'counters' | 'histograms' | 'models'> | undefined {
    return this.#store.observer.snapshot?.()
  }

  /**
   * Stops the workers, waits for what is in progress and closes the backend, for all tenants. Steps of workers may
   * finish within their `graceMs`. Closing twice is fine.
   */
  async close(): Promise<void> {
    const { workers } = this.#runtime
    workers.closing = true
    await Promise.all([...workers.running].map((worker) => worker.stop()))
    await this.#store.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #key(thread: ThreadIdInput, branch: string | undefined): LogKey {
    return {
      tenant: this.#tenant,
      thread: parseThreadId(thread),
      branch: branch === undefined ? MAIN_BRANCH : parseBranchId(branch),
    }
  }
}
