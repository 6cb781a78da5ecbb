import { showValue } from '../../codec/clone.js'
import type { Redactor } from '../../codec/redactor.js'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue, type Value, writeValue } from '../../codec/value.js'
import type { LogKey } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import { set, type State } from '../../log/entry/ops.js'
import type { StoreClock } from '../../log/store-clock.js'
import type { Store } from '../../store/store.js'
import { type RunObserver, UNWATCHED } from '../../telemetry/observer.js'
import type { ChildDoor } from '../child/await-child.js'
import { GraphEngine } from '../engine/graph-engine.js'
import { GraphScope } from '../engine/graph-scope.js'
import type { LiveEvent } from '../events/events.js'
import type { ReplayScript } from '../history/replay-script.js'
import type { FlowPlan, ProgramPlan } from '../program/program.js'
import { Activation } from '../step/activation.js'
import type { Attempts } from '../step/attempts.js'
import { hashKept } from '../step/hash-value.js'
import type { RuntimeEnvironment } from './environment.js'
import type { RunAbort } from './run-abort.js'
import type { RecordedReads } from './recorded-reads.js'
import { type BegunSteps, begunBeyond } from './records.js'
import type { RunLog } from './run-log.js'
import type { RunState } from './run-state.js'
import type { Drive, Lease, RunTerms } from './run-terms.js'

/** One run of a thread, for as long as this process drives it: what its steps share. */
export class Run {
  readonly key: LogKey
  readonly log: RunLog
  readonly clock: StoreClock
  readonly random: () => number
  readonly attempts: Attempts
  readonly redactor: Redactor | undefined
  readonly context: unknown
  readonly abort: RunAbort
  readonly emit: (event: LiveEvent) => void
  readonly lease: Lease | undefined
  readonly openSince: number | undefined
  readonly inlineSleepMs: number
  readonly recordedReads: RecordedReads | undefined
  readonly replay: ReplayScript | undefined
  readonly children: ChildDoor | undefined
  readonly watch: RunObserver
  readonly #environment: RuntimeEnvironment
  readonly #isDraining: (() => boolean) | undefined
  readonly #epoch: number
  #store: Store | undefined
  #begunBeyond: Promise<BegunSteps> | undefined
  #progressed = false

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

  /** Calls the program, which continues from what is recorded. Never rejects. */
  async drive(plan: ProgramPlan): Promise<Drive> {
    const driven = await this.watch.within(() => this.#drive(plan))
    // What the program itself threw is recorded, too.
    return driven.status === 'failed' ? { ...driven, error: this.keepError(driven.error) } : driven
  }

  async #drive(plan: ProgramPlan): Promise<Drive> {
    try {
      this.throwIfAborted()
      if (plan.kind === 'flow') return await this.#driveFlow(plan)
      const driven = await new GraphEngine(new GraphScope(this, plan)).drive()
      if (driven.status !== 'completed') return driven
      return { ...driven, limit: plan.limit?.(driven.output as State) }
    } catch (error) {
      return { status: 'failed', error }
    }
  }

  /** Calls a flow's function from the beginning; everything that is recorded returns at once. */
  async #driveFlow(plan: FlowPlan): Promise<Drive> {
    const activation = new Activation(this, '', [], '', { defaults: plan.policy })
    const done = await activation.run(async () => {
      const input = showValue(this.state.run?.input)
      const value = await plan.run(activation.context(input), input)
      activation.checkRevisited()
      const checking = plan.checkOutput(value)
      const output = checking instanceof Promise ? await checking : checking
      return output === undefined ? undefined : this.keep(output)
    })
    if (done.status === 'failed') return { ...done, error: activation.explainFailure(done.error) }
    if (done.status !== 'done') return done
    if (done.writes.length > 0) this.log.add({ kind: 'step', store: done.writes })
    return { status: 'completed', output: done.value }
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

  /** Records the end of a step. The first of a claim also shows that the thread does not kill its workers. */
  record(draft: Draft): Promise<void> {
    const recorded = this.progress(draft)
    this.#progressed = true
    return this.log.record(recorded)
  }

  /** The draft, and that there was progress unless that is known. */
  progress(draft: Draft): Draft {
    if (this.#progressed || !this.log.durable) return draft
    const { alone } = this.log.acknowledged
    return { ...draft, ops: [...(draft.ops ?? []), set('claims', 0), ...(alone ? [set('alone', 0)] : [])] }
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
