import { DEFAULT_LIMITS } from '../codec/limits.js'
import { copyValue, type Value } from '../codec/value.js'
import { InvalidOptionError, isHoldfastError, NotExecutedError } from '../core/errors.js'
import { type Path, set, valueAt } from '../log/ops.js'
import type { StoreWrite } from '../log/store-write.js'
import type { SpanPlan } from '../telemetry/observer.js'
import { type Backoff, attempt, parseRetry, pauseAfter } from './attempt.js'
import type { Effect, Reconciled, StepContext, StepPolicy } from './context.js'
import { EffectUnknownError, isNondeterministic, nondeterministic, recordError, StepFailedError } from './errors.js'
import type { Seen } from './records.js'
import type { ForkRecord, StepRecord } from './run-state.js'
import type { Session } from './session.js'
import { StepStore } from './step-store.js'

/** One piece of work with its policy, and where its record lies. */
export interface Work {
  readonly path: string
  readonly at: Path
  readonly policy: StepPolicy
  readonly input: unknown
  readonly inputHash: string
  readonly idempotencyKey?: string | undefined
  readonly run: (step: StepContext) => unknown
  /** For a node: what it is handed, which decides whether a recorded read still holds. */
  readonly sees?: Seen
  /** Since when someone before us may have begun it without a record; undefined if nobody can have. */
  readonly openSince: number | undefined
  /** Aborted when the activation was left hanging: the work is neither retried nor timed any more. */
  readonly left?: AbortSignal
  /**
   * Of a step inside of a node with a time limit: the node's attempt. When that ends the step does, as in a crash; the
   * node's next attempt finds out what became of it.
   */
  readonly outer?: AbortSignal | undefined
  /** Asks a person; never resolves while there is no answer. */
  readonly ask: (kind: 'unknown-effect' | 'permission', question: unknown, schema: Value) => Promise<unknown>
  /** The span of an attempt, where it is another than that of a step. */
  readonly span?: (() => SpanPlan | undefined) | undefined
  /** Takes the question what became of an effect back. */
  readonly unask: () => void
}

export interface Performed {
  readonly result: Value | undefined
  readonly writes: readonly StoreWrite[]
  readonly attempts: number
  readonly ms: number
}

/** What became of an effect, once somebody knows. */
interface Resolved {
  readonly result: unknown
  readonly writes: readonly StoreWrite[]
}

/** What a person may say of an effect that nobody knows about. */
export type UnknownAnswer =
  | { readonly outcome: 'succeeded'; readonly result?: unknown }
  | { readonly outcome: 'not-executed' }
  | { readonly outcome: 'failed'; readonly message?: string }

const UNKNOWN_ANSWER: Value = {
  type: 'object',
  properties: {
    outcome: { enum: ['succeeded', 'not-executed', 'failed'] },
    result: {},
    message: { type: 'string' },
  },
  required: ['outcome'],
  additionalProperties: false,
}

const PERMISSION_ANSWER: Value = {
  type: 'object',
  properties: { allowed: { type: 'boolean' }, result: {} },
  required: ['allowed'],
  additionalProperties: false,
}

const DEFAULT_KEY_TTL_MS = 24 * 60 * 60 * 1000
const RECONCILE: Backoff = parseRetry({ attempts: 4 })
const RECONCILED: readonly unknown[] = ['executed', 'not-executed', 'unknown'] satisfies Reconciled['outcome'][]

/**
 * Does a piece of work by the rules of its effect and returns its result, which the caller records. An effect that
 * reaches outside starts only when everything before it is acknowledged, and one that must not repeat also when its
 * intent is. An outcome that nobody knows is resolved before anything else sees it.
 */
export async function perform(session: Session, work: Work): Promise<Performed> {
  const effect = work.policy.effect ?? 'read'
  const backoff = parseRetry(work.policy.retry)
  const before = recordAt(session, work)
  checkInput(work, before)
  const ledger = new Ledger(session, work, effect, before)
  const begun = session.clock.monotonic()
  // A refusal speaks of one attempt: while another with the same key may have happened, the key must stay.
  let unsure = effect === 'idempotent' && (work.openSince !== undefined || before?.status === 'started')
  const finish = (result: unknown, writes: readonly StoreWrite[], attempts: number): Performed => ({
    result: storable(result),
    writes,
    attempts,
    ms: Math.round(session.clock.monotonic() - begun),
  })

  const instead =
    effect === 'read' ? session.recordedRead(work.path, work.inputHash, work.sees) : await permit(session, work, effect)
  if (instead) return finish(instead.result, [], 0)
  if (mayHaveHappened(session, work, effect, before)) {
    const known = await ledger.resolve(before?.error?.message ?? null)
    if (known) return finish(known.result, known.writes, 0)
    unsure = false
  }
  for (let tried = 1, trouble: string | null = null; ; tried++) {
    await ledger.announce()
    // A pause between attempts, or a machine that stood still, may outlast what the other side remembers.
    if (unsure && ledger.isForgotten) {
      const known = await ledger.resolve(trouble)
      if (known) return finish(known.result, known.writes, tried)
      unsure = false
      await ledger.announce()
    }
    const writes: StoreWrite[] = []
    try {
      const result = await runOnce(session, work, ledger.key, tried, writes)
      return finish(result, writes, tried)
    } catch (error) {
      if (session.abort.signal.aborted || work.outer?.aborted) ledger.leave(writes)
      session.throwIfAborted()
      work.outer?.throwIfAborted()
      // A step inside of this one is not what was recorded: that is said of the whole run.
      if (isNondeterministic(error)) throw error
      work.left?.throwIfAborted()
      const definite = isHoldfastError(error, 'not-executed')
      const last = tried >= backoff.attempts || !(definite || backoff.retryIf(error))
      if (!definite && (effect === 'once' || effect === 'reconcilable')) {
        ledger.note(writes, error)
        const known = await ledger.resolve(recordError(error).message)
        if (known) return finish(known.result, known.writes, tried)
        if (last && effect === 'reconcilable') throw failed(work, error)
      } else {
        if (!definite) {
          unsure = true
          trouble = recordError(error).message
          ledger.note(writes, error)
        } else if (effect !== 'read' && !unsure) ledger.raise()
        if (last) {
          if ((definite && !unsure) || effect === 'read') throw failed(work, error)
          if (definite) {
            // This attempt was refused, but an earlier one with the same key may have gone through.
            ledger.note(ledger.writes, error)
            const known = await ledger.resolve(recordError(error).message)
            if (known) return finish(known.result, known.writes, tried)
            unsure = false
            tried = 0
            continue
          }
          session.watch.count('holdfast.effects.unknown')
          throw new EffectUnknownError(
            work.path,
            work.at,
            { effect, idempotencyKey: ledger.key, error: trouble },
            error,
          )
        }
      }
      const inMs = pauseAfter(backoff, tried, session.random)
      session.emit({ type: 'retry', step: work.path, attempt: tried, inMs, error: recordError(error) })
      const { signal } = session.abort
      // A node's attempt ends with the run.
      await session.clock.sleep(inMs, work.left ? AbortSignal.any([signal, work.left]) : (work.outer ?? signal))
    }
  }
}

/**
 * On a branch that time travel made, an effect on the outside world needs permission: what happened on the branch it
 * came from has happened. Resolves to a result that stands in for the effect, or to undefined when it may run.
 */
export async function permit(
  session: Session,
  work: Work,
  effect: Effect,
): Promise<{ readonly result: unknown } | undefined> {
  const fork = forkOf(session)
  if (fork === undefined || fork.effects === 'allow') return undefined
  const begun = recordAt(session, work)
  // Begun on this very branch: permission was given, and what became of it is another question.
  if (begun && !begun.inherited && (begun.status === 'started' || begun.status === 'retry')) return undefined
  if (fork.effects === 'deny')
    throw failed(work, new NotExecutedError(`Branch "${session.log.branch}" allows no effects.`))
  const from = { branch: fork.branch, seq: fork.seq }
  const question = {
    effect,
    step: work.path,
    input: work.input ?? null,
    ...(fork.restarted
      ? { restartedBeside: from, begunThere: 'unknown' }
      : { forkedFrom: from, begunThere: begun?.inherited === true && begun.status === 'started' }),
  }
  const answer = (await work.ask('permission', question, PERMISSION_ANSWER)) as { allowed: boolean; result?: unknown }
  if (answer.allowed) return undefined
  if ('result' in answer) return { result: answer.result }
  throw failed(work, new NotExecutedError('Permission to run this effect on a fork was denied.'))
}

// A branch that was made below the runtime says nothing of effects, or has what its parent said: then a person decides.
function forkOf({ state, recorder }: Session): ForkRecord | undefined {
  const { origin } = recorder.fold
  const { fork } = state
  if (origin === null) return fork
  if (fork?.branch === origin.branch && fork.seq === origin.seq) return fork
  return { branch: origin.branch, seq: origin.seq, effects: 'ask', reads: 'live' }
}

/** What is durably known of an effect, and how that knowledge changes. */
class Ledger {
  readonly #session: Session
  readonly #work: Work
  readonly #effect: Effect
  #generation: number
  /** When the first attempt of this generation began, or may have begun at the earliest. */
  #startedAt: number | undefined
  #writes: readonly StoreWrite[]

  constructor(session: Session, work: Work, effect: Effect, before: StepRecord | undefined) {
    this.#session = session
    this.#work = work
    this.#effect = effect
    this.#generation = before?.generation ?? 0
    this.#writes = (before?.inherited ? undefined : before?.writes) ?? []
    this.#startedAt = before?.startedAt ?? (effect === 'idempotent' ? work.openSince : undefined)
  }

  get key(): string {
    return this.#work.idempotencyKey ?? this.#session.idempotencyKey(this.#work.path, this.#generation)
  }

  /** Whether the other side may have forgotten the key of an idempotent effect. */
  get isForgotten(): boolean {
    if (this.#effect !== 'idempotent' || this.#startedAt === undefined) return false
    return this.#session.clock.now() - this.#startedAt > (this.#work.policy.keyTtlMs ?? DEFAULT_KEY_TTL_MS)
  }

  /** Makes durable what must be before the attempt starts. */
  async announce(): Promise<void> {
    if (this.#effect === 'read') return
    const { recorder, clock } = this.#session
    this.#startedAt ??= clock.now()
    if (this.#effect === 'once' || this.#effect === 'reconcilable') {
      if (!recorder.durable) throw needsRecord(this.#work.path, this.#effect)
      const events = [{ type: 'step' as const, step: this.#work.path, status: 'started' as const }]
      recorder.add({ kind: 'effect', ops: [this.#set({})], data: { events } })
    }
    await recorder.barrier()
  }

  /** What the last attempt whose outcome is open wrote to the store. */
  get writes(): readonly StoreWrite[] {
    return this.#writes
  }

  /**
   * Keeps the error beside the intent, so that the same question is asked again after a crash, and what the attempt
   * wrote to the store: if it turns out to have happened, so do its writes. An idempotent effect has no intent: this
   * also says how old its key will be when the run is taken up again.
   */
  note(writes: readonly StoreWrite[], error?: unknown): void {
    this.#writes = writes
    if (this.#effect === 'read' || !this.#session.recorder.durable) return
    const change = {
      ...(error === undefined ? {} : { error: recordError(error) }),
      ...(writes.length === 0 ? {} : { writes: [...writes] }),
    }
    this.#session.recorder.add({ kind: 'effect', ops: [this.#set(change)] })
  }

  /** The run is stopped while an attempt is under way, whose intent says the rest. */
  leave(writes: readonly StoreWrite[]): void {
    if (this.#effect === 'idempotent' || writes.length > 0) this.note(writes)
  }

  /** After a definite failure: the other side may have remembered the key together with the failure. */
  raise(): void {
    this.#generation++
    this.#startedAt = undefined
    this.#writes = []
    if (this.#session.recorder.durable) {
      this.#session.recorder.add({ kind: 'effect', ops: [this.#set({ status: 'retry' })] })
    }
  }

  /**
   * Finds out what became of the effect: its result and what it wrote to the store, or undefined if it did not happen
   * and may be tried again. Of a process that died only the intent is known, not what it would have written.
   */
  async resolve(error: string | null): Promise<Resolved | undefined> {
    const { path, at, policy, input } = this.#work
    if (this.#effect === 'reconcilable' && policy.reconcile) {
      const answer = await this.#reconcile(policy.reconcile)
      if (answer.outcome !== 'unknown') this.#work.unask()
      if (answer.outcome === 'executed') return { result: answer.result, writes: this.#writes }
      if (answer.outcome === 'not-executed') return undefined
    }
    const about = { effect: this.#effect, idempotencyKey: this.key, error }
    // Without a record this would be forgotten: the next claim would see nothing that may have happened.
    if (this.#session.recorder.durable && recordAt(this.#session, this.#work)?.status !== 'started') {
      this.note(this.#writes)
    }
    if (policy.onUnknown === 'fail') {
      this.#session.watch.count('holdfast.effects.unknown')
      throw new EffectUnknownError(path, at, about)
    }
    if (!this.#session.recorder.durable) throw needsRecord(path, this.#effect)
    const question = { ...about, step: path, input: input ?? null, generation: this.#generation }
    const answer = (await this.#work.ask('unknown-effect', question, UNKNOWN_ANSWER)) as UnknownAnswer
    if (answer.outcome === 'succeeded') return { result: answer.result, writes: this.#writes }
    this.raise()
    if (answer.outcome === 'not-executed') return undefined
    throw failed(this.#work, new Error(answer.message ?? 'a person said that it failed'))
  }

  async #reconcile(ask: NonNullable<StepPolicy['reconcile']>): Promise<Reconciled> {
    const { clock, abort, random } = this.#session
    for (let tried = 1; ; tried++) {
      try {
        const answer = await attempt(() => ask(this.key, this.#work.input), {
          step: this.#work.path,
          timeoutMs: this.#work.policy.timeoutMs,
          run: abort.signal,
          clock,
        })
        // What says nothing that is known must not be taken for a yes or a no.
        return RECONCILED.includes(answer?.outcome) ? answer : { outcome: 'unknown' }
      } catch {
        this.#session.throwIfAborted()
        if (tried >= RECONCILE.attempts) return { outcome: 'unknown' }
        await clock.sleep(pauseAfter(RECONCILE, tried, random), abort.signal)
      }
    }
  }

  #set(change: Partial<StepRecord>): ReturnType<typeof set> {
    const { inputHash, at } = this.#work
    return set(at, {
      status: 'started',
      effect: this.#effect,
      input: inputHash,
      ...(this.#generation > 0 ? { generation: this.#generation } : {}),
      ...(this.#startedAt === undefined ? {} : { startedAt: this.#startedAt }),
      ...change,
    })
  }
}

async function runOnce(session: Session, work: Work, key: string, tried: number, writes: StoreWrite[]) {
  const once = () =>
    attempt(
      (abort) =>
        work.run({
          idempotencyKey: key,
          attempt: tried,
          abort,
          store: new StepStore(session.store, writes),
          heartbeat: session.heartbeat,
          emit: (value) => session.emit({ type: 'custom', step: work.path, value }),
        }),
      {
        step: work.path,
        timeoutMs: work.policy.timeoutMs,
        run: session.abort.signal,
        left: work.left,
        outer: work.outer,
        clock: session.clock,
      },
    )
  const isLeft = () => session.abort.signal.aborted || work.left?.aborted === true
  return session.watch.step(work.path, tried, once, work.span, isLeft)
}

// An intent without an end is an effect that may have happened. One with the other side's key needs none: it is
// repeated, as long as the other side still knows the key.
function mayHaveHappened(session: Session, work: Work, effect: Effect, before: StepRecord | undefined): boolean {
  const isOpen = before?.status === 'started' && !before.inherited
  if (effect !== 'idempotent') return isOpen && effect !== 'read'
  const since = isOpen ? (before.startedAt ?? Number.NEGATIVE_INFINITY) : work.openSince
  return since !== undefined && session.clock.now() - since > (work.policy.keyTtlMs ?? DEFAULT_KEY_TTL_MS)
}

function checkInput(work: Work, before: StepRecord | undefined): void {
  if (before?.input === undefined || before.input === work.inputHash) return
  throw nondeterministic(`Step "${work.path}" was begun with another input than it has now.`, work.path)
}

function recordAt(session: Session, work: Work): StepRecord | undefined {
  return valueAt(session.state as never, work.at) as StepRecord | undefined
}

/** The form in which a result is read back later, so that the first run and a resumed one see the same. */
function storable(result: unknown): Value | undefined {
  return result === undefined ? undefined : copyValue(result, DEFAULT_LIMITS)
}

function failed(work: Work, error: unknown): StepFailedError {
  return error instanceof StepFailedError
    ? error
    : new StepFailedError(work.path, work.at, recordError(error, work.path), error)
}

function needsRecord(path: string, effect: Effect): InvalidOptionError {
  return new InvalidOptionError(
    'frequency',
    `is 'none', but step "${path}" has the effect '${effect}', which needs a record`,
    "Use 'step', { every: n } or 'boundary'.",
  )
}
