import type { Job, Worker as BullWorker, WorkerOptions as BullWorkerOptions } from 'bullmq'
import type { Holdfast, WorkerOptions } from '../../index.js'
import { InvalidOptionError, isHoldfastError } from '../../errors.js'
import { onProcessSignal } from '../../internal.js'
import type { Dispatcher, Worked, WorkerStatus } from '../../types.js'
import type { BullmqEngine, BullmqTarget } from './engine.js'
import { type DueHint, type HoldfastJob, isStart, type StartInput } from './jobs.js'

/** Like the options of `hf.worker`, except for how work is found. */
export interface BullmqWorkerOptions extends Omit<WorkerOptions, 'looks' | 'pollMs'> {
  /** Whether it also adds jobs for due threads of its programs. At least one process must. Default true. */
  readonly dispatch?: boolean
  /** Everything else that BullMQ's `Worker` takes: `limiter`, `metrics`, `lockDuration`, `stalledInterval`, `telemetry`. */
  readonly bull?: Omit<Partial<BullWorkerOptions>, 'connection' | 'concurrency' | 'autorun'>
}

type InnerWorker = ReturnType<Holdfast['worker']>
type ProgramList = WorkerOptions['programs']

/** A stalled job says that its worker was silent, and nothing about the thread: it must never fail one. */
const NEVER_STALLED_OUT = 1_000_000_000
/** How long to wait with a thread that had to make room for another in its process, or that another worker took. */
const AGAIN_MS = 1000
/** How long BullMQ may take to close. The threads have been released by then. */
const CLOSING_MS = 5000

/** Runs the threads that the jobs of a queue name, as a worker that finds them itself would. */
export class BullmqWorker {
  /** BullMQ's own worker: for its events, and for pausing. */
  readonly bull: BullWorker<HoldfastJob>
  readonly #engine: BullmqEngine
  readonly #hf: Holdfast
  readonly #programs: ProgramList
  readonly #inner: InnerWorker
  readonly #dispatcher: Dispatcher | undefined
  readonly #ownsClient: boolean
  readonly #done: Promise<void>
  #finish: () => void = () => {}
  #leaveSignals: () => void = () => {}
  #stopping: Promise<void> | undefined

  constructor(
    engine: BullmqEngine,
    hf: Holdfast,
    target: BullmqTarget,
    options: BullmqWorkerOptions,
    onError: (error: unknown) => void,
  ) {
    const { dispatch = true, bull = {}, handleSignals = true, ...rest } = options
    this.#engine = engine
    this.#hf = hf
    this.#programs = options.programs
    this.#inner = hf.worker({ ...rest, looks: false, handleSignals: false })
    this.#done = new Promise((resolve) => {
      this.#finish = resolve
    })
    const { bullmq, name, connection, backend } = target
    this.#ownsClient = !isClient(connection)
    const settings = {
      maxStalledCount: NEVER_STALLED_OUT,
      ...(options.name === undefined ? {} : { name: options.name }),
      ...bull,
      connection,
      concurrency: this.#inner.status.places,
    }
    this.bull = new bullmq.Worker<HoldfastJob>(name, (job) => this.#process(job), settings, backend)
    this.bull.on('error', onError)
    if (dispatch) this.#dispatcher = engine.dispatch({ programs: options.programs })
    if (handleSignals) this.#leaveSignals = onProcessSignal(() => void this.stop())
    // `hf.close()` stops the inner one.
    void this.#inner.done().then(() => this.stop())
  }

  /** What it is doing now, for monitoring; `serveHealth` accepts this worker. */
  get status(): WorkerStatus {
    return this.#inner.status
  }

  /** How many threads run here now. */
  get active(): number {
    return this.#inner.active
  }

  /**
   * Takes no more jobs, lets steps finish within the grace period, records their results, releases all threads, and adds
   * a job for each that is still due.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  /** Resolves when the worker has stopped, by a signal or by `stop`. */
  done(): Promise<void> {
    return this.#done
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #stop(): Promise<void> {
    this.#leaveSignals()
    // Not awaited: it would wait for jobs in progress, which the inner worker ends.
    const paused = this.bull.pause(true).catch(() => {})
    await Promise.all([this.#dispatcher?.stop(), this.#inner.stop(), paused])
    await this.#close()
    this.#finish()
  }

  /** A Redis that is down must not keep a process from ending. */
  async #close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSING_MS)
    })
    const closed = this.bull.close().catch(() => {})
    await Promise.race([closed, patience])
    clearTimeout(timer)
    // What is still connected, or connected again in the meantime, would keep the process from ending as well. A client
    // that somebody passed is theirs.
    if (this.#ownsClient) void this.bull.disconnect().catch(() => {})
  }

  /** Dashboards show what it returns: how the run ended, and nothing that the thread holds. */
  async #process(job: Job<HoldfastJob>): Promise<{ readonly status: string }> {
    if (isStart(job.data)) return this.#start(job, job.data)
    // From here on another hint counts: a thread that becomes due while it runs must get its own job. If this fails, the
    // next reconcile finds the thread.
    await job.removeDeduplicationKey().catch(() => {})
    const worked = await this.#inner.work(job.data)
    if (worked.status === 'stopped') await this.#again(job.name, job.data)
    if (worked.status === 'error') throw describeError(worked)
    return { status: worked.status === 'ended' ? worked.outcome.status : worked.status }
  }

  /** The thread is due as before: at once in another process if this one stops, otherwise after a moment. */
  async #again(program: string, hint: DueHint): Promise<void> {
    const isDraining = this.#inner.status.state === 'draining'
    // The queue may be gone along with the process; then another process's reconcile brings the thread back.
    await this.#engine.hint([{ ...hint, program, priority: 0 }], isDraining ? {} : { delay: AGAIN_MS }).catch(() => {})
  }

  async #start(job: Job<HoldfastJob>, { start }: StartInput): Promise<{ readonly status: string }> {
    const program = this.#programs.find(({ plan }) => plan.name === start.program)
    if (program === undefined) {
      const known = this.#programs.map(({ plan }) => plan.name).join(', ')
      const remedy = `Add its jobs to the queue of workers that have it. This one has ${known}.`
      throw new InvalidOptionError('program', `is "${start.program}", which this worker does not have`, remedy)
    }
    const hf = start.tenant === undefined ? this.#hf : this.#hf.tenant(start.tenant)
    // A job that runs again, because it stalled or was retried, brings the same input. A queue that was emptied counts
    // its ids from 1 again: without the time, a new job would be mistaken for one that ran long ago.
    const isCounted = /^\d+$/.test(job.id ?? '')
    const id = isCounted ? `${job.id}-${job.timestamp}` : (job.id ?? '')
    await hf
      .thread(program as never, start.thread ?? id)
      .enqueue(start.input as never, { key: `${job.queueName}:${id}` })
    return { status: 'enqueued' }
  }
}

function describeError({ error }: Worked & { readonly status: 'error' }): Error {
  if (isHoldfastError(error)) return error
  return error instanceof Error ? error : new Error(String(error))
}

/** Whether BullMQ was given a client of whatever library, and not the options of one. */
function isClient(connection: object): boolean {
  return Object.getPrototypeOf(connection) !== Object.prototype
}
