import type { ConnectionOptions, JobsOptions, PostgresConnectionOptions, Queue, QueueOptions } from 'bullmq'
import type { Holdfast } from '../../index.js'
import { InvalidOptionError, UnavailableError } from '../../errors.js'
import type { Dispatcher, DispatchOptions, DueThread } from '../../types.js'
import { hintJob, type HoldfastJob } from './jobs.js'
import { type BullmqModule, loadBullmq } from './load-bullmq.js'
import { BullmqWorker, type BullmqWorkerOptions } from './bullmq-worker.js'

/** Which queue of BullMQ, and how jobs get there. */
export interface BullmqOptions {
  /**
   * Where BullMQ keeps its jobs: `redis://…`, `postgres://…?schema=bullmq` (its own tables are made and brought up to date), or what
   * BullMQ takes as `connection`. It need not be where threads are.
   */
  readonly connection: string | ConnectionOptions | PostgresConnectionOptions
  /** Which of its backends BullMQ uses where `connection` is no address. Default `redis`. */
  readonly backend?: 'redis' | 'postgres'
  /** The name of the queue. All its workers must have the same programs. Default `holdfast`. */
  readonly queue?: string
  /** Everything else that BullMQ's `Queue` takes: `prefix`, `defaultJobOptions`, `telemetry`. */
  readonly queueOptions?: Omit<QueueOptions, 'connection'>
  /** Options of the job of a due thread: `priority`, `lifo`, `delay`. Deduplication is not among them: it is by thread. */
  readonly jobOptions?: (due: DueThread) => JobsOptions
  /**
   * How soon a thread gets another job that is still due and that nobody runs, in milliseconds: after the queue lost it, such as by
   * FLUSHALL. Default 15,000.
   */
  readonly reconcileMs?: number
  /** Told of errors of BullMQ's connections, and of jobs that could not be added. Both go on by themselves. */
  readonly onError?: (error: unknown) => void
}

/** How BullMQ reaches its store: what all its objects are made with. */
export interface BullmqTarget {
  readonly bullmq: BullmqModule
  readonly name: string
  readonly connection: ConnectionOptions
  /**
   * Makes BullMQ's Postgres backend. Its types bind every object to one kind of connection; what is the same for both is all that
   * is used here, so it passes for the absence of one, which means Redis.
   */
  readonly backend: undefined
}

/**
 * BullMQ as the engine that brings due threads to workers. A job is only a hint: the log's claim decides who runs a thread, so jobs
 * may be lost, doubled, reordered or stalled.
 */
export class BullmqEngine {
  /** BullMQ's own: for dashboards, schedulers, pausing, counts. */
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
    // Without a listener an error of the connection would end the process.
    this.queue.on('error', (error) => this.#tell(error))
  }

  static async open(hf: Holdfast, options: BullmqOptions): Promise<BullmqEngine> {
    const engine = new BullmqEngine(hf, readTarget(await loadBullmq(), options), options)
    try {
      await inTime(engine.queue.waitUntilReady())
    } catch (error) {
      // Not awaited: a connection that never came about may never end either.
      engine.queue.close().catch(() => {})
      throw error
    }
    return engine
  }

  /** Runs jobs of the queue, and adds those of what is due of its programs, unless `dispatch` is false. Starts at once. */
  worker(options: BullmqWorkerOptions): BullmqWorker {
    const worker = new BullmqWorker(this, this.#hf, this.#target, options, (error) => this.#tell(error))
    this.#open.add(worker)
    void worker.done().then(() => this.#open.delete(worker))
    return worker
  }

  /** Only adds jobs of what is due of these programs: where workers have `dispatch: false`. Starts at once. */
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

  /** Adds the jobs of threads that are due, or may be: too many do no harm. */
  async hint(due: readonly DueThread[], options: JobsOptions = {}): Promise<void> {
    const { jobOptions } = this.#options
    await this.queue.addBulk(due.map((one) => hintJob(one, { ...jobOptions?.(one), ...options })))
  }

  /** Stops its workers, and closes the queue. What it holds stays there; the store stays open. */
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

/** Opens a queue of BullMQ as the engine of a store. Throws `missing-dependency` where `bullmq` is not installed. */
export function openBullmq(hf: Holdfast, options: BullmqOptions): Promise<BullmqEngine> {
  return BullmqEngine.open(hf, options)
}

/** BullMQ tries to connect for ever, which a service that starts would take for a hang. */
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
