import type { Redactor } from '../../codec/secret/redactor.js'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue, type Value, writeValue } from '../../codec/value.js'
import type { LogKey } from '../../log/contract.js'
import type { StoreClock } from '../../log/store-clock.js'
import type { Store } from '../../store/store.js'
import { type RunObserver, UNWATCHED } from '../../telemetry/observer.js'
import type { Children } from '../child/run-with-children.js'
import type { LiveEvent } from '../events/events.js'
import type { ReplayScript } from '../history/replay-script.js'
import type { Attempts } from '../step/attempt/attempt.js'
import { hashKept } from '../step/record/hash-value.js'
import type { RuntimeEnvironment } from './environment.js'
import type { LazyAbort } from '../../core/async/lazy-abort.js'
import type { RecordedReads } from './record/recorded-reads.js'
import { type BegunSteps, begunBeyond } from './record/records.js'
import type { RunLog } from './record/run-log.js'
import type { RunState } from './state/run-state.js'
import type { Lease, RunTerms } from './run-terms.js'

/** What the steps of a run share, for as long as this process drives it. */
export class SharedRun {
  readonly key: LogKey
  readonly log: RunLog
  readonly clock: StoreClock
  readonly random: () => number
  readonly attempts: Attempts
  readonly redactor: Redactor | undefined
  readonly context: unknown
  readonly abort: LazyAbort
  readonly emit: (event: LiveEvent) => void
  readonly lease: Lease | undefined
  readonly openSince: number | undefined
  readonly inlineSleepMs: number
  readonly recordedReads: RecordedReads | undefined
  readonly replay: ReplayScript | undefined
  readonly children: Children | undefined
  readonly watch: RunObserver
  readonly #environment: RuntimeEnvironment
  readonly #isDraining: (() => boolean) | undefined
  readonly #epoch: number
  #store: Store | undefined
  #begunBeyond: Promise<BegunSteps> | undefined

  constructor(environment: RuntimeEnvironment, key: LogKey, log: RunLog, terms: RunTerms) {
    this.#environment = environment
    this.key = key
    this.log = log
    this.clock = environment.clock
    this.random = environment.random
    this.attempts = environment.attempts
    this.redactor = environment.redactor
    this.context = terms.context
    this.abort = terms.abort
    this.emit = terms.emit
    this.lease = terms.lease
    this.openSince = terms.openSince
    this.inlineSleepMs = terms.inlineSleepMs
    this.recordedReads = terms.recordedReads
    this.replay = terms.replay
    this.children = terms.children
    this.watch = terms.watch ?? UNWATCHED
    this.#isDraining = terms.isDraining
    this.#epoch = log.fold.epoch
  }

  get state(): RunState {
    return this.log.state
  }

  get store(): Store {
    this.#store ??= this.#environment.store(this.key.tenant)
    return this.#store
  }

  /** True when what runs may end but nothing new should start. */
  get draining(): boolean {
    return this.#isDraining?.() ?? false
  }

  /** How often this run was picked up, including this time. */
  get takes(): number {
    return this.state.run?.takes ?? 1
  }

  /** Somebody claimed the thread after us, as far as this process has read. */
  get isOvertaken(): boolean {
    return this.log.fold.epoch !== this.#epoch
  }

  /** A heartbeat that a step gives by itself. */
  async heartbeat(): Promise<void> {
    await this.lease?.beat()
  }

  throwIfAborted(): void {
    this.abort.throwIfAborted()
  }

  /** Whether the branch that this one came from began a step of this run after they parted. */
  async begunBeyond(
    from: { readonly branch: string; readonly seq: number },
    path: string,
  ): Promise<boolean | 'unknown'> {
    this.#begunBeyond ??= begunBeyond(this.#environment.logs, this.key, from, this.state.run?.id ?? '')
    const begun = await this.#begunBeyond
    if (begun.paths.has(path)) return true
    return begun.isAll ? false : 'unknown'
  }

  /**
   * The form in which a value is kept and handed out: a copy that nobody can change, without what must not be kept. A
   * resumed run and one that was never interrupted see the same.
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
}
