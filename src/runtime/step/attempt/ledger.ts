import type { Value } from '../../../codec/value.js'
import { InvalidOptionError } from '../../../core/errors.js'
import { set, valueAt } from '../../../log/entry/ops.js'
import type { StoreWrite } from '../../../log/items/store-write.js'
import { attempt, type Backoff, type Ended, parseRetry, retryDelayMs } from './attempt.js'
import type { Effect, Reconciled, StepPolicy } from '../context.js'
import { EffectUnknownError, recordError, StepFailedError } from '../../errors.js'
import { gapOf } from '../../run/request/gap.js'
import { keyMaker } from '../record/hash-value.js'
import type { Work } from '../work.js'
import { isBegun } from '../../run/state/read-run-state.js'
import type { StepRecord } from '../../run/state/run-state.js'
import type { Run } from '../../run/run.js'

/** The outcome of an effect, once somebody knows. */
export interface Resolved {
  readonly result: unknown
  readonly writes: readonly StoreWrite[]
}

/** What a person may say about an effect with an unknown outcome. */
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

const DEFAULT_KEY_TTL_MS = 24 * 60 * 60 * 1000
const DEFAULT_SETTLE_MS = 10_000
const RECONCILE: Backoff = parseRetry({ attempts: 4 })
const RECONCILED: readonly unknown[] = ['executed', 'not-executed', 'unknown'] satisfies Reconciled['outcome'][]
/** From the laxest to the strictest. */
const KINDS: readonly Effect[] = ['read', 'idempotent', 'reconcilable', 'once']

/** What is durably known of an effect, and how that knowledge changes. */
export class Ledger {
  /**
   * The kind of the effect: the stricter of what it began as and what the program calls it now. A program that was
   * fixed between a crash and the resume must not repeat what it said must never be repeated.
   */
  readonly effect: Effect
  /** A refusal is about one attempt: while another with the same key may have happened, the key must stay. */
  unsure = false
  /** What the attempt threw whose outcome is not known. */
  trouble: string | null = null
  readonly #run: Run
  readonly #work: Work
  readonly #keyTtlMs: number
  #generation: number
  /** The key that an attempt before us used. It stays until that attempt is known to have failed. */
  #key: string | undefined
  /** When the first attempt of this generation began, or may have begun at the earliest. */
  #startedAt: number | undefined
  #writes: readonly StoreWrite[]

  constructor(run: Run, work: Work, before: StepRecord | undefined) {
    const own = before?.inherited ? undefined : before
    this.#run = run
    this.#work = work
    this.effect = strictest(work.policy, own)
    this.#generation = before?.generation ?? 0
    this.#key = isBegun(own) ? own.key : undefined
    const { keyTtlMs = DEFAULT_KEY_TTL_MS } = work.policy
    this.#keyTtlMs = Math.min(keyTtlMs, (isBegun(own) ? own.keyTtlMs : undefined) ?? keyTtlMs)
    this.#writes = own?.writes ?? []
    this.#startedAt = own?.startedAt ?? (this.effect === 'idempotent' ? sinceOf(run, work, own) : undefined)
  }

  /** Whether it is repeated only when it is known not to have happened. */
  get mustNotRepeat(): boolean {
    return this.effect === 'once' || this.effect === 'reconcilable'
  }

  get key(): string {
    return this.keyMaker()()
  }

  /** The key as it is now, made when it is asked for. */
  keyMaker(): () => string {
    const known = this.#key ?? this.#work.idempotencyKey
    return known === undefined ? keyMaker(this.#run, this.#work.path, this.#generation) : () => known
  }

  /** Whether the service may have forgotten the key of an idempotent effect. */
  get isForgotten(): boolean {
    if (this.effect !== 'idempotent' || this.#startedAt === undefined) return false
    return this.isOlderThanKey(this.#startedAt)
  }

  isOlderThanKey(at: number): boolean {
    return this.#run.clock.latest() - at > this.#keyTtlMs
  }

  /** Makes durable what must be before the attempt starts. */
  async announce(): Promise<void> {
    if (this.effect === 'read') return
    const { log, clock } = this.#run
    this.#startedAt ??= clock.now()
    if (this.mustNotRepeat) {
      if (!log.durable) throw needsRecord(this.#work.path, this.effect)
      const events = [{ type: 'step' as const, step: this.#work.path, status: 'started' as const }]
      log.add({ kind: 'effect', ops: [this.#set({})], data: { events } })
    } else if (!isBegun(recordAt(this.#run, this.#work))) {
      log.along(this.#work.path, { kind: 'step', ops: [this.#set({})] })
    }
    await log.barrier()
  }

  /** The attempt has ended: an intent that has not been written yet is useless now. */
  end(): void {
    if (this.effect === 'idempotent') this.#run.log.drop(this.#work.path)
  }

  /** What the last attempt whose outcome is open wrote to the store. */
  get writes(): readonly StoreWrite[] {
    return this.#writes
  }

  /**
   * Keeps the error with the intent, so that the same question is asked again after a crash, and what the attempt wrote
   * to the store: if it turns out to have happened, so do its writes. The intent of an idempotent effect may not be
   * written yet: this also says how old its key will be when the run is resumed.
   */
  note(writes: readonly StoreWrite[], error?: unknown): void {
    this.#writes = writes
    if (this.effect === 'read' || !this.#run.log.durable) return
    this.end()
    const change = {
      ...(error === undefined ? {} : { error: recordError(error) }),
      ...(writes.length === 0 ? {} : { writes: [...writes] }),
    }
    this.#run.log.add({ kind: 'effect', ops: [this.#set(change)] })
  }

  /** The store may have lost the record of its beginning: until it is known, it counts as begun. */
  miss(cause: Error): void {
    this.#run.log.add({ kind: 'effect', ops: [this.#set({ error: recordError(cause), missing: true })] })
  }

  /** The run is stopped while an attempt is in progress, whose intent says the rest. */
  leave(writes: readonly StoreWrite[]): void {
    if (this.effect === 'idempotent' || writes.length > 0) this.note(writes)
  }

  /** After a definite failure: the service may have remembered the key together with the failure. */
  raise(): void {
    this.#generation++
    this.#key = undefined
    this.#startedAt = undefined
    this.#writes = []
    this.end()
    if (this.#run.log.durable) {
      this.#run.log.add({ kind: 'effect', ops: [this.#set({ status: 'retry' })] })
    }
  }

  /** Waits until all attempts of this process at this effect have ended, or one has succeeded, but not forever. */
  async settle(): Promise<Ended | undefined> {
    const { attempts, clock, abort } = this.#run
    const { policy, outer } = this.#work
    const stop = new AbortController()
    const signals = [stop.signal, abort.signal, ...(outer ? [outer] : [])]
    try {
      const limit = () => clock.sleep(policy.settleMs ?? DEFAULT_SETTLE_MS, AbortSignal.any(signals))
      const ended = await attempts.ended(this.#name, limit)
      if (ended?.status === 'returned') this.#work.unask()
      return ended
    } finally {
      stop.abort()
    }
  }

  /** Lets an attempt be found while it runs. */
  track<Result>(writes: readonly StoreWrite[], running: Promise<Result>): Promise<Result> {
    return this.#run.attempts.track(this.#name, writes, running)
  }

  /** Names the effect among all of the process. */
  get #name(): string {
    const { key, state } = this.#run
    return JSON.stringify([key.tenant, key.thread, key.branch, state.run?.id, this.#work.path])
  }

  /**
   * Resolves the outcome of the effect: its result and what it wrote to the store, or undefined if it did not happen
   * and may be retried. For a process that died, only the intent is known, not what it would have written. `isRunning`:
   * an attempt of our own has not ended, so that only a person can say what happens with it.
   */
  async resolve(error: string | null, isRunning = false): Promise<Resolved | undefined> {
    const { path, at, policy, input } = this.#work
    // The service can't know about a request that is yet to be sent.
    if (this.effect === 'reconcilable' && policy.reconcile && !isRunning) {
      const answer = await this.#reconcile(policy.reconcile)
      if (answer.outcome !== 'unknown') this.#work.unask()
      if (answer.outcome === 'executed') return { result: answer.result, writes: this.#writes }
      if (answer.outcome === 'not-executed') return undefined
    }
    const about = { effect: this.effect, idempotencyKey: this.key, error }
    // Without a record this would be forgotten: the next claim would see nothing that may have happened.
    if (this.#run.log.durable && recordAt(this.#run, this.#work)?.status !== 'started') {
      this.note(this.#writes)
    }
    if (policy.onUnknown === 'fail') {
      this.#run.watch.count('holdfast.effects.unknown')
      throw new EffectUnknownError(path, at, about)
    }
    if (!this.#run.log.durable) throw needsRecord(path, this.effect)
    const question = { ...about, step: path, input: input ?? null, generation: this.#generation }
    const answer = (await this.#work.ask('unknown-effect', question, UNKNOWN_ANSWER)) as UnknownAnswer
    if (answer.outcome === 'succeeded') return { result: answer.result, writes: this.#writes }
    this.raise()
    if (answer.outcome === 'not-executed') return undefined
    throw failed(this.#work, new Error(answer.message ?? 'a person said that it failed'))
  }

  async #reconcile(ask: NonNullable<StepPolicy['reconcile']>): Promise<Reconciled> {
    const { clock, abort, random } = this.#run
    for (let tried = 1; ; tried++) {
      try {
        const answer = await attempt(() => ask(this.key, this.#work.input), {
          step: this.#work.path,
          timeoutMs: this.#work.policy.timeoutMs,
          run: abort,
          clock,
        })
        // An answer that says nothing known must not be taken for a yes or a no.
        return RECONCILED.includes(answer?.outcome) ? answer : { outcome: 'unknown' }
      } catch {
        this.#run.throwIfAborted()
        if (tried >= RECONCILE.attempts) return { outcome: 'unknown' }
        await clock.sleep(retryDelayMs(RECONCILE, tried, random), abort.signal)
      }
    }
  }

  #set(change: Partial<StepRecord>): ReturnType<typeof set> {
    const { inputHash, at } = this.#work
    const since = gapOf(this.#run.state)
    return set(at, {
      status: 'started',
      effect: this.effect,
      input: inputHash(),
      ...(change.status === 'retry' ? {} : { key: this.key }),
      ...(this.effect === 'idempotent' && change.status !== 'retry' ? { keyTtlMs: this.#keyTtlMs } : {}),
      ...(this.#generation > 0 ? { generation: this.#generation } : {}),
      ...(this.#startedAt === undefined ? {} : { startedAt: this.#startedAt }),
      ...(since === undefined ? {} : { clear: since }),
      ...change,
    })
  }
}

function strictest({ effect = 'read', reconcile }: StepPolicy, before: StepRecord | undefined): Effect {
  const isOpen = before?.status === 'started' || before?.status === 'retry'
  const level = Math.max(KINDS.indexOf(effect), isOpen ? KINDS.indexOf(before.effect ?? 'read') : 0)
  const kind = KINDS[level] as Effect
  // It began as reconcilable in a program that could ask: only a person can tell now.
  return kind === 'reconcilable' && reconcile === undefined ? 'once' : kind
}

/** Since when an effect may have been begun whose outcome is unknown. */
export function sinceOf(run: Run, { openSince }: Work, before: StepRecord | undefined): number | undefined {
  if (isBegun(before)) return before.startedAt ?? Number.NEGATIVE_INFINITY
  // It failed for certain when the run was last at rest, and nobody has reached it since.
  const isClear = before?.clearIn === run.takes && gapOf(run.state) === undefined
  return isClear ? undefined : openSince
}

export function recordAt(run: Run, work: Work): StepRecord | undefined {
  return valueAt(run.state as never, work.at) as StepRecord | undefined
}

export function failed(work: Work, error: unknown): StepFailedError {
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
