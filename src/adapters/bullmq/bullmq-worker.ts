import type { Job, Worker as BullWorker, WorkerOptions as BullWorkerOptions } from 'bullmq'
import type { Holdfast, WorkerOptions } from '../../index.js'
import { InvalidOptionError, isHoldfastError } from '../../errors.js'
import { onProcessSignal } from '../../internal.js'
import type { Dispatcher, Worked, WorkerStatus } from '../../types.js'
import type { BullmqEngine, BullmqTarget } from './engine.js'
import { type DueHint, type HoldfastJob, isStart, type StartInput } from './jobs.js'

/** As of `hf.worker`, but for how work is found. */
export interface BullmqWorkerOptions extends Omit<WorkerOptions, 'looks' | 'pollMs'> {
  /** Whether it also adds the jobs of what is due of its programs. At least one process has to. Default true. */
  readonly dispatch?: boolean
  /** Everything else that BullMQ's `Worker` takes: `limiter`, `metrics`, `lockDuration`, `stalledInterval`, `telemetry`. */
  readonly bull?: Omit<Partial<BullWorkerOptions>, 'connection' | 'concurrency' | 'autorun'>
}

type InnerWorker = ReturnType<Holdfast['worker']>
type ProgramList = WorkerOptions['programs']

/** A stalled job says that its worker was silent, and nothing of the thread: it is never the reason to fail one. */
const NEVER_STALLED_OUT = 1_000_000_000
/** How long a thread waits that has to make room for another in its process, or was lost to somebody. */
const AGAIN_MS = 1000
/** How long BullMQ may take to close: its threads are let go of by then. */
const CLOSING_MS = 5000

/** Runs the threads that the jobs of a queue name, as a worker of the store would that finds them itself. */
export class BullmqWorker {
  /** BullMQ's own: for its events, and for pausing. */
  readonly bull: BullWorker<HoldfastJob>
  readonly #engine: BullmqEngine
  readonly #hf: Holdfast
  readonly #programs: ProgramList
  readonly #inner: InnerWorker
  readonly #dispatcher: Dispatcher | undefined
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

  /** What it does now, for those who look after it: `serveHealth` takes it as a worker. */
  get status(): WorkerStatus {
    return this.#inner.status
  }

  /** How many threads run here now. */
  get active(): number {
    return this.#inner.active
  }

  /**
   * Takes no more jobs, lets steps end within the grace period, records them, lets go of all threads, and leaves a job for each that is
   * still due.
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
    // Not awaited: it would wait for jobs under way, which the inner worker ends.
    const paused = this.bull.pause(true).catch(() => {})
    await Promise.all([this.#dispatcher?.stop(), this.#inner.stop(), paused])
    await this.#close()
    this.#finish()
  }

  /** A Redis that is away must not keep a process from ending. */
  async #close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSING_MS)
    })
    const closed = this.bull.close().catch(() => {})
    await Promise.race([closed, patience])
    clearTimeout(timer)
  }

  /** What it returns is shown by dashboards: the kind of end, and nothing of what a thread holds. */
  async #process(job: Job<HoldfastJob>): Promise<{ readonly status: string }> {
    if (isStart(job.data)) return this.#start(job, job.data)
    // From here on another hint counts: what becomes due while the thread runs must not be taken for this one. If that fails, the next
    // reconcile finds the thread.
    await job.removeDeduplicationKey().catch(() => {})
    const worked = await this.#inner.work(job.data)
    if (worked.status === 'stopped') await this.#again(job.name, job.data)
    if (worked.status === 'error') throw describeError(worked)
    return { status: worked.status === 'ended' ? worked.outcome.status : worked.status }
  }

  /** Due as before: at once by another process where this one stops, else after a moment. */
  async #again(program: string, hint: DueHint): Promise<void> {
    const isDraining = this.#inner.status.state === 'draining'
    // The queue may be gone with the process; the reconcile of another brings the thread back then.
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
    // A job that is run again, because it stalled or was retried, brings the same input. Ids that the queue counted begin at 1
    // again when it is emptied: without their time, a new job would pass for one that was run long ago.
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
