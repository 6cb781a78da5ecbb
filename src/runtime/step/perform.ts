import type { Value } from '../../codec/value.js'
import { andThen, nowOrLater } from '../../core/at-once.js'
import { isHoldfastError } from '../../core/errors.js'
import type { Path } from '../../log/entry/ops.js'
import type { StoreWrite } from '../../log/items/store-write.js'
import type { SpanPlan } from '../../telemetry/observer.js'
import { attempt, type Backoff, parseRetry, retryDelayMs } from './attempt.js'
import type { StepContext, StepPolicy } from './context.js'
import { EffectUnknownError, isNondeterministic, recordError } from '../errors.js'
import { REPEAT } from './internals.js'
import { failed, Ledger, recordAt, sinceOf } from './ledger.js'
import { checkInput, findOut, mayHaveHappened, permit } from './past-effects.js'
import type { Seen } from '../run/records.js'
import type { StepRecord } from '../run/run-state.js'
import type { Run } from '../run/run.js'
import type { Abortable } from '../run/run-abort.js'
import { StepStore } from './step-store.js'
import { StepWrites } from './step-writes.js'

/** One piece of work with its policy, and where its record is. */
export interface Work {
  readonly path: string
  readonly at: Path
  readonly policy: StepPolicy
  readonly input: unknown
  readonly inputHash: string
  readonly idempotencyKey?: string | undefined
  readonly run: (step: StepContext) => unknown
  /** For a node: what it was given and has begun, which decides whether a recorded read is still valid. */
  readonly sees?: Seen & { isUnderWay(): boolean }
  /** On a fork: everything the function has received is the same as on the branch it came from. */
  readonly isSamePast?: boolean
  /** Where in its function it was asked for, for its record. */
  readonly after?: (() => string) | undefined
  /** Since when someone before us may have begun it without a record; undefined if nobody can have. */
  readonly openSince: number | undefined
  /** Aborted when the activation was left hanging: the work is neither retried nor timed anymore. */
  readonly left?: AbortSignal
  /**
   * For a step inside a node with a time limit: the node's attempt. When that ends the step does, as in a crash; the
   * node's next attempt resolves its outcome.
   */
  readonly outer?: AbortSignal | undefined
  /** Asks a person; never resolves while there is no answer. */
  readonly ask: (kind: 'unknown-effect' | 'permission', question: unknown, schema: Value) => Promise<unknown>
  /** The span of an attempt, where it is another than that of a step. */
  readonly span?: (() => SpanPlan | undefined) | undefined
  /** Takes back the question about an effect's outcome. */
  readonly unask: () => void
}

export interface Performed {
  readonly result: Value | undefined
  readonly writes: readonly StoreWrite[]
  readonly attempts: number
  readonly ms: number
}

const NO_WRITES: readonly StoreWrite[] = []

/**
 * Does a piece of work by the rules of its effect and returns its result, which the caller records. An effect that
 * reaches the outside world starts only when everything before it is acknowledged, and one that must not repeat also
 * when its intent is. An unknown outcome is resolved before anything else sees it. What only reads, and returns no
 * promise, costs none.
 */
export function perform(run: Run, work: Work): Performed | Promise<Performed> {
  const before = recordAt(run, work)
  checkInput(work, before)
  const performance = new Performance(run, work, new Ledger(run, work, before))
  return performance.begin(before)
}

/** A piece of work in progress, over all of its attempts. */
class Performance {
  readonly #run: Run
  readonly #work: Work
  readonly #ledger: Ledger
  readonly #backoff: Backoff
  readonly #begun: number
  /** A refusal is about one attempt: while another with the same key may have happened, the key must stay. */
  #unsure = false
  #trouble: string | null = null

  constructor(run: Run, work: Work, ledger: Ledger) {
    this.#run = run
    this.#work = work
    this.#ledger = ledger
    this.#backoff = parseRetry(work.policy.retry)
    this.#begun = run.clock.monotonic()
  }

  begin(before: StepRecord | undefined): Performed | Promise<Performed> {
    if (this.#ledger.effect !== 'read') return this.#beginEffect(before)
    const { path, inputHash, sees, isSamePast = false } = this.#work
    const instead = this.#run.recordedReads?.find(path, inputHash, sees, isSamePast)
    return instead ? this.#finish(instead.result, NO_WRITES, 0) : this.#try(1)
  }

  async #beginEffect(before: StepRecord | undefined): Promise<Performed> {
    const run = this.#run
    const work = this.#work
    const ledger = this.#ledger
    const { effect } = ledger
    this.#unsure = effect === 'idempotent' && sinceOf(run, work, before) !== undefined
    const instead = await permit(run, work, effect)
    if (instead) return this.#finish(instead.result, NO_WRITES, 0)
    // A machine that slept takes the key for younger than it is.
    const woken = effect === 'idempotent' ? run.clock.catchUp() : undefined
    if (woken) await woken
    if (mayHaveHappened(run, work, ledger, before)) {
      const known = await findOut(run, ledger, before)
      if (known) return this.#finish(known.result, known.writes, 0)
      this.#unsure = false
    }
    return this.#tryEffect(1)
  }

  /** One attempt at something that reaches the outside world, and those that follow it. */
  async #tryEffect(tried: number): Promise<Performed> {
    const ledger = this.#ledger
    await ledger.announce()
    await this.#run.lease?.secure()
    const jump = this.#unsure ? this.#run.clock.catchUp() : undefined
    if (jump) await jump
    if (this.#unsure && ledger.isForgotten) {
      const late = await ledger.settle()
      if (late?.status === 'returned') return this.#finish(late.result, late.writes, tried)
      const known = await ledger.resolve(this.#trouble)
      if (known) return this.#finish(known.result, known.writes, tried)
      this.#unsure = false
      await ledger.announce()
    }
    return this.#try(tried)
  }

  /** One attempt, and those that follow it. */
  #try(tried: number): Performed | Promise<Performed> {
    const writes: StoreWrite[] = []
    const fail = (thrown: unknown) => this.#failed(thrown, tried, writes)
    const succeed = (result: unknown) => {
      try {
        return this.#finish(result, writes, tried)
      } catch (error) {
        return fail(error)
      }
    }
    try {
      const running = this.#runOnce(tried, writes)
      return running instanceof Promise ? running.then(succeed, fail) : succeed(running)
    } catch (thrown) {
      return fail(thrown)
    }
  }

  #finish(result: unknown, writes: readonly StoreWrite[], attempts: number): Performed {
    this.#ledger.end()
    const kept = result === undefined ? undefined : this.#run.keep(result)
    return { result: kept, writes, attempts, ms: Math.round(this.#run.clock.monotonic() - this.#begun) }
  }

  /** What an attempt that threw means: the outcome after all, another attempt, or a failure. */
  async #failed(thrown: unknown, tried: number, writes: readonly StoreWrite[]): Promise<Performed> {
    const run = this.#run
    const work = this.#work
    const ledger = this.#ledger
    const { effect } = ledger
    if (run.abort.aborted || work.outer?.aborted) ledger.leave(writes)
    run.throwIfAborted()
    work.outer?.throwIfAborted()
    if (thrown instanceof NotStarted) return this.#tryEffect(tried)
    // A step inside this one is not what was recorded: that concerns the whole run.
    if (isNondeterministic(thrown)) throw thrown
    work.left?.throwIfAborted()
    let error = thrown
    let isRunning = false
    if (ledger.mustNotRepeat && !isHoldfastError(thrown, 'not-executed')) {
      ledger.note(writes, thrown)
      const late = await ledger.settle()
      if (late?.status === 'returned') return this.#finish(late.result, late.writes, tried)
      if (late?.status === 'threw' && isHoldfastError(late.error, 'not-executed')) error = late.error
      isRunning = late?.status === 'running'
    }
    const definite = isHoldfastError(error, 'not-executed')
    const last = tried >= this.#backoff.attempts || !(definite || this.#backoff.retryIf(error))
    if (!definite && ledger.mustNotRepeat) {
      const known = await ledger.resolve(recordError(error).message, isRunning)
      if (known) return this.#finish(known.result, known.writes, tried)
      if (last && effect === 'reconcilable') throw failed(work, error)
    } else {
      if (!definite) {
        this.#unsure = true
        this.#trouble = recordError(error).message
        ledger.note(writes, error)
      } else if (effect !== 'read' && !this.#unsure) ledger.raise()
      if (last) {
        if ((definite && !this.#unsure) || effect === 'read') throw failed(work, error)
        return this.#giveUp(error, tried, definite)
      }
    }
    const inMs = retryDelayMs(this.#backoff, tried, run.random)
    run.emit({ type: 'retry', step: work.path, attempt: tried, inMs, error: recordError(error) })
    const { signal } = run.abort
    // A node's attempt ends with the run.
    await run.clock.sleep(inMs, work.left ? AbortSignal.any([signal, work.left]) : (work.outer ?? signal))
    return effect === 'read' ? this.#try(tried + 1) : this.#tryEffect(tried + 1)
  }

  /** After the last attempt at an idempotent effect, of which one may have happened. */
  async #giveUp(error: unknown, tried: number, definite: boolean): Promise<Performed> {
    const ledger = this.#ledger
    // An attempt that timed out may still bring its result; and nobody can be asked about it before it has ended.
    const late = await ledger.settle()
    if (late?.status === 'returned') return this.#finish(late.result, late.writes, tried)
    if (definite) {
      // This attempt was refused, but an earlier one with the same key may have gone through.
      ledger.note(ledger.writes, error)
      const known = await ledger.resolve(recordError(error).message)
      if (known) return this.#finish(known.result, known.writes, tried)
      this.#unsure = false
      return this.#tryEffect(1)
    }
    this.#run.watch.count('holdfast.effects.unknown')
    const about = { effect: ledger.effect, idempotencyKey: ledger.key, error: this.#trouble }
    throw new EffectUnknownError(this.#work.path, this.#work.at, about, error)
  }

  #runOnce(tried: number, writes: StoreWrite[]): unknown {
    const run = this.#run
    const work = this.#work
    const tryOnce = () =>
      attempt((abort) => this.#call(abort, tried, writes), {
        step: work.path,
        timeoutMs: work.policy.timeoutMs,
        run: run.abort,
        left: work.left,
        outer: work.outer,
        clock: run.clock,
      })
    // Before anybody sees it: the program, the record, and whoever traces.
    const redacted = async () => {
      try {
        return await tryOnce()
      } catch (error) {
        throw run.keepError(error)
      }
    }
    const once = run.redactor ? redacted : tryOnce
    const isLeft = () => run.abort.aborted || work.left?.aborted === true
    return run.watch.step(work.path, tried, once, work.span, isLeft)
  }

  #call(abort: Pick<Abortable, 'signal'>, tried: number, writes: StoreWrite[]): unknown {
    const run = this.#run
    const ledger = this.#ledger
    const { path } = this.#work
    // Immediately before the call itself: after any wait, another worker may have the thread.
    if (!this.#mayStart()) throw new NotStarted()
    const key = ledger.keyMaker()
    const stored = new StepWrites(writes)
    const step: StepContext & { [REPEAT]?: true } = {
      get idempotencyKey() {
        return key()
      },
      attempt: tried,
      get abortSignal() {
        return abort.signal
      },
      store: new StepStore(() => run.store, stored),
      heartbeat: () => run.heartbeat(),
      emit: (value) => run.emit({ type: 'custom', step: path, value }),
    }
    if (this.#unsure) step[REPEAT] = true
    const ending = withWrites(this.#work.run(step), stored)
    return ledger.effect === 'read' ? ending : ledger.track(writes, Promise.resolve(ending))
  }

  // A delay between attempts, or a machine that stood still, may outlast the lease, and what the service remembers.
  #mayStart(): boolean {
    const ledger = this.#ledger
    if (ledger.effect === 'read') return true
    return (this.#run.lease?.isSure ?? true) && !(this.#unsure && ledger.isForgotten)
  }
}

/** Something came between the decision to start and the start: it is decided again. */
class NotStarted extends Error {}

/** The result, once it is known what the work wrote to the store. */
function withWrites(running: unknown, stored: StepWrites): unknown {
  const after = (result: unknown) => {
    const writing = stored.settled()
    return writing ? writing.then(() => result) : result
  }
  // A query builder begins its work, and may write, only when it is waited for.
  return andThen(nowOrLater(running), after)
}
