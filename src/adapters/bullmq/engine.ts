import type { ConnectionOptions, JobsOptions, PostgresConnectionOptions, Queue, QueueOptions } from 'bullmq'
import type { Holdfast } from '../../index.js'
import { InvalidOptionError, UnavailableError } from '../../errors.js'
import { checkOptionNames, type OptionNames } from '../../internal.js'
import type { Dispatcher, DispatchOptions, DueThread } from '../../types.js'
import { hintJob, type HoldfastJob } from './jobs.js'
import { type BullmqModule, loadBullmq } from './load-bullmq.js'
import { BullmqWorker, type BullmqWorkerOptions } from './bullmq-worker.js'

/** Which queue of BullMQ, and how jobs get there. */
export interface BullmqOptions {
  /**
   * Where BullMQ keeps its jobs: `redis://…`, `postgres://…?schema=bullmq` (BullMQ's tables are created and updated), or
   * whatever BullMQ takes as `connection`. It need not be where the threads are.
   */
  readonly connection: string | ConnectionOptions | PostgresConnectionOptions
  /** Which of its backends BullMQ uses if `connection` is not a URL. Default `redis`. */
  readonly backend?: 'redis' | 'postgres'
  /** The name of the queue. All its workers must have the same programs. Default `holdfast`. */
  readonly queue?: string
  /** Everything else that BullMQ's `Queue` takes: `prefix`, `defaultJobOptions`, `telemetry`. */
  readonly queueOptions?: Omit<QueueOptions, 'connection'>
  /** Options for the job of a due thread: `priority`, `lifo`, `delay`. `deduplication` can't be set: it is by thread. */
  readonly jobOptions?: (due: DueThread) => JobsOptions
  /**
   * How soon a thread that is still due and that nobody runs gets another job, in milliseconds, in case the queue lost
   * the first, for example through FLUSHALL. Default 15,000.
   */
  readonly reconcileMs?: number
  /** Called with connection errors of BullMQ, and with jobs that could not be added. Both are retried automatically. */
  readonly onError?: (error: unknown) => void
}

const OPTIONS: OptionNames<BullmqOptions> = {
  connection: true,
  backend: true,
  queue: true,
  queueOptions: true,
  jobOptions: true,
  reconcileMs: true,
  onError: true,
}

/** How BullMQ reaches its store: what all its objects are created with. */
export interface BullmqTarget {
  readonly bullmq: BullmqModule
  readonly name: string
  readonly connection: ConnectionOptions
  /**
   * Creates BullMQ's Postgres backend. BullMQ's types bind every object to one kind of connection; only what both kinds
   * have in common is used here, so it is typed like its absence, which means Redis.
   */
  readonly backend: undefined
}

/**
 * BullMQ as the engine that brings due threads to workers. A job is only a hint: the log's claim decides who runs a
 * thread, so jobs may be lost, duplicated, reordered or stalled.
 */
export class BullmqEngine {
  /** BullMQ's own queue: for dashboards, schedulers, pausing, counts. */
  readonly queue: Queue<HoldfastJob>
  readonly #hf: Holdfast
  readonly #target: BullmqTarget
  readonly #options: BullmqOptions
  readonly #open = new Set<{ stop(): Promise<void> }>()

  private constructor(hf: Holdfast, target: BullmqTarget, options: BullmqOptions) {
    const { bullmq, name, connection, backend } = target
    this.#hf = hf
    this.#target = target
    this.#options = options
    this.queue = new bullmq.Queue<HoldfastJob>(name, { ...options.queueOptions, connection }, backend)
    // Without a listener, a connection error would end the process.
    this.queue.on('error', (error) => this.#tell(error))
  }

  static async open(hf: Holdfast, options: BullmqOptions): Promise<BullmqEngine> {
    checkOptionNames('openBullmq()', options, OPTIONS)
    const engine = new BullmqEngine(hf, readTarget(await loadBullmq(), options), options)
    try {
      await inTime(engine.queue.waitUntilReady())
    } catch (error) {
      // Not awaited: a connection that was never established may never close either.
      engine.queue.close().catch(() => {})
      throw error
    }
    return engine
  }

  /** Runs jobs of the queue, and adds jobs for due threads of its programs unless `dispatch` is false. Starts at once. */
  worker(options: BullmqWorkerOptions): BullmqWorker {
    const worker = new BullmqWorker(this, this.#hf, this.#target, options, (error) => this.#tell(error))
    this.#open.add(worker)
    void worker.done().then(() => this.#open.delete(worker))
    return worker
  }

  /** Only adds jobs for due threads of these programs, for workers with `dispatch: false`. Starts at once. */
  dispatch(options: Pick<DispatchOptions, 'programs'>): Dispatcher {
    const { reconcileMs } = this.#options
    const dispatcher = this.#hf.dispatch({
      ...options,
      hand: (due) => this.hint(due),
      onError: (error) => this.#tell(error),
      ...(reconcileMs === undefined ? {} : { everyMs: reconcileMs }),
    })
    this.#open.add(dispatcher)
    return dispatcher
  }

  /** Adds jobs for threads that are due, or may be: too many do no harm. */
  async hint(due: readonly DueThread[], options: JobsOptions = {}): Promise<void> {
    const { jobOptions } = this.#options
    await this.queue.addBulk(due.map((one) => hintJob(one, { ...jobOptions?.(one), ...options })))
  }

  /** Stops its workers and closes the queue. Its jobs stay where they are; the store stays open. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((one) => one.stop()))
    await this.queue.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  // A listener that throws must not end the process.
  #tell(error: unknown): void {
    try {
      this.#options.onError?.(error)
    } catch {}
  }
}

/** Opens a BullMQ queue as the engine of a store. Throws `missing-dependency` if `bullmq` is not installed. */
export function openBullmq(hf: Holdfast, options: BullmqOptions): Promise<BullmqEngine> {
  return BullmqEngine.open(hf, options)
}

/** BullMQ tries to connect forever, which would look like a hang to a service that starts. */
const OPENING_MS = 10_000

async function inTime(ready: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const message = `BullMQ's store did not answer within ${OPENING_MS / 1000} seconds. Check \`connection\`, and that it runs.`
    timer = setTimeout(() => reject(new UnavailableError(message, { written: 'nothing' })), OPENING_MS)
  })
  try {
    await Promise.race([ready, late])
  } finally {
    clearTimeout(timer)
  }
}

function readTarget(bullmq: BullmqModule, options: BullmqOptions): BullmqTarget {
  const { connection, queue: name = 'holdfast' } = options
  const redis = { bullmq, name, backend: undefined }
  const postgres = { bullmq, name, backend: bullmq.createPostgresBackend as never }
  if (typeof connection !== 'string') {
    return { ...(options.backend === 'postgres' ? postgres : redis), connection: connection as ConnectionOptions }
  }
  if (/^rediss?:\/\//.test(connection)) return { ...redis, connection: { url: connection } }
  if (/^postgres(ql)?:\/\//.test(connection)) {
    const url = new URL(connection)
    const schema = url.searchParams.get('schema')
    url.searchParams.delete('schema')
    const given = { connectionString: url.href, migrate: true, ...(schema === null ? {} : { schema }) }
    return { ...postgres, connection: given }
  }
  const given = connection.replace(/:\/\/.*$/s, '://…')
  throw new InvalidOptionError(
    'connection',
    `is "${given}"`,
    'Pass redis://…, postgres://…, or the options of a connection.',
  )
}
