import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import type { Redactor } from '../../codec/redactor.js'
import { copyValue, type Value, writeValue } from '../../codec/value.js'
import type { LogKey } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import { set } from '../../log/entry/ops.js'
import type { StoreClock } from '../../log/store-clock.js'
import type { Store } from '../../store/store.js'
import { type RunObserver, UNWATCHED } from '../../telemetry/observer.js'
import { Attempts } from '../step/attempts.js'
import type { LiveEvent } from '../events/events.js'
import { hashKept } from '../step/hash-value.js'
import type { Recorder } from './recorder.js'
import type { BegunSteps, RecordedReads, Seen } from './records.js'
import type { ReplayScript } from '../history/replay-script.js'
import type { RunState, StepRecord } from './run-state.js'

/** True in the work of a step: a thread that is run there is part of the run that the step is of. */
export function isInsideStep(): boolean {
  return RUNNING.getStore() !== undefined
}

interface RunningStep {
  readonly session: Session
  readonly path: string
  readonly outer: RunningStep | undefined
}

// One for all sessions: Node keeps every storage that was used, and each promise made from then on pays for all.
const RUNNING = new AsyncLocalStorage<RunningStep>()

/** The lease of a claim, as far as effects go by it. */
export interface Lease {
  readonly isSure: boolean
  secure(): Promise<void>
}

/** Where a branch parted from another. */
interface Origin {
  readonly branch: string
  readonly seq: number
}

export interface SessionOptions {
  readonly log: LogKey
  readonly recorder: Recorder
  readonly clock: StoreClock
  readonly store: Store
  readonly context: unknown
  readonly abort: AbortController
  readonly heartbeat: () => Promise<void>
  /** Undefined where there is no claim. */
  readonly lease?: Lease | undefined
  readonly attempts?: Attempts
  readonly emit: (event: LiveEvent) => void
  /** Since when something may have been under way that nobody recorded; undefined if the run was at rest before us. */
  readonly openSince: number | undefined
  readonly random: () => number
  readonly inlineSleepMs: number
  readonly isDraining: (() => boolean) | undefined
  /** Results of steps that only read, from the branch that this one was forked from. */
  readonly recordedReads?: RecordedReads
  /** What branches that this one came from began of a run after it parted from them. */
  readonly begunBeyond?: (from: Origin, run: string) => Promise<BegunSteps>
  /** Nothing runs: results come from here. */
  readonly replay?: ReplayScript
  /** Told what the run does. */
  readonly watch?: RunObserver
  /** Takes out of values what must not be kept. */
  readonly redactor?: Redactor | undefined
}

/** What the steps of one run share while one worker drives it. */
export class Session {
  readonly log: LogKey
  readonly recorder: Recorder
  readonly clock: StoreClock
  readonly store: Store
  readonly context: unknown
  readonly abort: AbortController
  readonly heartbeat: () => Promise<void>
  readonly lease: Lease | undefined
  readonly attempts: Attempts
  readonly emit: (event: LiveEvent) => void
  readonly openSince: number | undefined
  readonly random: () => number
  readonly inlineSleepMs: number
  readonly replay: ReplayScript | undefined
  readonly watch: RunObserver
  readonly redactor: Redactor | undefined
  readonly #isDraining: (() => boolean) | undefined
  readonly #recordedReads: RecordedReads | undefined
  readonly #readBegun: SessionOptions['begunBeyond']
  #begunBeyond: Promise<BegunSteps> | undefined
  /** The step whose work is running, to refuse steps inside of steps. */
  readonly inside = {
    run: <Result>(path: string, work: () => Result): Result =>
      RUNNING.run({ session: this, path, outer: RUNNING.getStore() }, work),
    getStore: (): string | undefined => {
      let running = RUNNING.getStore()
      // The work of a step may run another thread, whose steps are its own.
      while (running !== undefined && running.session !== this) running = running.outer
      return running?.path
    },
  }
  readonly #epoch: number
  #progressed = false

  constructor(options: SessionOptions) {
    this.log = options.log
    this.recorder = options.recorder
    this.#epoch = options.recorder.fold.epoch
    this.clock = options.clock
    this.store = options.store
    this.context = options.context
    this.abort = options.abort
    this.heartbeat = options.heartbeat
    this.lease = options.lease
    this.attempts = options.attempts ?? new Attempts()
    this.emit = options.emit
    this.redactor = options.redactor
    this.openSince = options.openSince
    this.random = options.random
    this.inlineSleepMs = options.inlineSleepMs
    this.#isDraining = options.isDraining
    this.#recordedReads = options.recordedReads
    this.#readBegun = options.begunBeyond
    this.replay = options.replay
    this.watch = options.watch ?? UNWATCHED
  }

  /** True when what runs may end but nothing new should start. */
  get draining(): boolean {
    return this.#isDraining?.() ?? false
  }

  /** How often this run was taken up, with us. */
  get attempt(): number {
    return this.state.run?.takes ?? 1
  }

  get state(): RunState {
    return this.recorder.state
  }

  /** Somebody claimed the thread after us, as far as this process has read. */
  get isOvertaken(): boolean {
    return this.recorder.fold.epoch !== this.#epoch
  }

  /** Records the end of a step. The first of a claim also says that the thread does not kill its workers. */
  record(draft: Draft): Promise<void> {
    const recorded = this.progress(draft)
    this.#progressed = true
    return this.recorder.record(recorded)
  }

  /** The draft, and that there was progress unless that is known. */
  progress(draft: Draft): Draft {
    if (this.#progressed || !this.recorder.durable) return draft
    const { alone } = this.recorder.seen
    return { ...draft, ops: [...(draft.ops ?? []), set('claims', 0), ...(alone ? [set('alone', 0)] : [])] }
  }

  /**
   * What the branch that this one was forked from recorded for the same step with the same input. A step that names no
   * input may depend on all that its function has heard of: `isSamePast` says whether that is the same as there.
   */
  recordedRead(
    path: string,
    inputHash: string,
    sees: (Seen & { isUnderWay(): boolean }) | undefined,
    isSamePast: boolean,
  ): { readonly result: unknown } | undefined {
    const record = this.#recordedReads?.beyond.get(path)
    if (record === undefined) return undefined
    const { seen, result } = record
    // A node reads the state: after an edit its recorded result says nothing. One that the fork has begun goes on from there.
    const same = sees
      ? seen && !sees.isUnderWay() && isDeepStrictEqual([sees.state, sees.input], [seen.state, seen.input])
      : record.inputHash === inputHash && (inputHash !== 'none' || isSamePast)
    return same ? { result } : undefined
  }

  /** Whether the branch that this one came from began a step of this run after they parted. */
  async begunBeyond(from: Origin, path: string): Promise<boolean | 'unknown'> {
    this.#begunBeyond ??= this.#readBegun?.(from, this.state.run?.id ?? '')
    const begun = await this.#begunBeyond
    if (begun === undefined || begun.paths.has(path)) return begun !== undefined
    return begun.isAll ? false : 'unknown'
  }

  /** Whether a step ended on the branch that this one was forked from as it did here. */
  isAsThere(path: string, record: StepRecord | undefined): boolean {
    if (this.#recordedReads === undefined || this.#recordedReads.shared.has(path)) return true
    const there = this.#recordedReads.beyond.get(path)
    return there !== undefined && record?.status === 'done' && isDeepStrictEqual(there.result, record.result)
  }

  /**
   * The form in which a value is kept and handed out: a copy that nobody can change, without what must not be kept. A resumed run and
   * one that was never interrupted see the same.
   */
  keep(value: unknown): Value {
    const kept = this.redactor ? this.redactor.value(copyValue(value, DEFAULT_LIMITS)) : value
    return writeValue(kept, DEFAULT_LIMITS)
  }

  /** The hash of a step's input, as far as it would be kept. */
  hashInput(input: unknown): string {
    return hashKept(input, this.redactor)
  }

  /** What a step threw, without what must not be kept. */
  keepError<E>(error: E): E {
    return this.redactor ? this.redactor.error(error) : error
  }

  throwIfAborted(): void {
    this.abort.signal.throwIfAborted()
  }

  /** The key a service sees: the same over crashes and retries, another on every branch and after a definite failure. */
  idempotencyKey(path: string, generation: number): string {
    return this.keyMaker(path, generation)()
  }

  /** That key, made when it is asked for, of the run that is under way now: most steps never look at theirs. */
  keyMaker(path: string, generation: number): () => string {
    const { run } = this.state
    const { tenant, thread, branch } = this.log
    const parts = [tenant, thread, branch, run?.key ?? run?.id ?? '', path, `${generation}`]
    // An id that was erased and used again would meet the charges of its former life.
    if (run?.incarnation !== undefined) parts.push(run.incarnation)
    let made: string | undefined
    return () => {
      made ??= createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)
      return made
    }
  }
}
