import { showValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import { checkOptionNames } from '../../core/wording/option-names.js'
import { set } from '../../log/entry/ops.js'
import type { StoreWrite } from '../../log/items/store-write.js'
import { checkPolicy, STEP_OPTIONS } from '../program/step-policy.js'
import { DONE } from '../run/record/notes.js'
import type { StepRecord } from '../run/state/run-state.js'
import type { Run } from '../run/run.js'
import { never } from './call/activity.js'
import { afterThrow, type Thrown } from './attempt/after-throw.js'
import { attempt, type Backoff, parseRetry } from './attempt/attempt.js'
import { beforeAttempt, beforeEffect, checkInput } from './attempt/past-effects.js'
import { type Attempt, callWork } from './attempt/call-work.js'
import type { StepContext, StepOptions } from './context.js'
import { insideStep } from './here.js'
import { Ledger, recordAt } from './attempt/ledger.js'
import type { Call, Requested, Requests } from './call/requests.js'
import { doneRecord } from './record/step-records.js'
import type { Performed, Work } from './work.js'

export type StepArguments<Result> =
  | [work: (step: StepContext) => Result | Promise<Result>]
  | [options: StepOptions<Result>, work: (step: StepContext) => Result | Promise<Result>]

const NO_WRITES: readonly StoreWrite[] = []

/** `ctx.step`: returns what is recorded, or does the work, records its result and returns that. */
export async function performStep<Result>(
  requests: Requests,
  call: Call,
  requested: Requested,
  name: string,
  ...rest: StepArguments<Result>
): Promise<unknown> {
  const { run, records, defaults } = requests
  const [options, stepWork] = rest.length === 1 ? [{} as StepOptions<Result>, rest[0]] : rest
  checkOptionNames('ctx.step', options, STEP_OPTIONS)
  const isEffect = (options.effect ?? defaults.effect ?? 'read') !== 'read'
  const { path, isLive, after } = requests.arrive(requested, name, options.key, isEffect)
  checkPolicy(options, `step "${path}"`)
  const inputHash = run.hashInput(options.input)
  // Steps that are requested together are all known before the first of them begins.
  await (run.replay?.turn(path) ?? DONE)
  if (records.isDoubted(path)) await requests.settleDoubt(path, isEffect ? 'effect' : 'read')
  const found = records.find(path, inputHash, options.idempotencyKey)
  if (found) return showValue(found.result)
  if (run.replay) return requests.gap(path)
  requested.isLive = true
  const inside = (attempt: Attempt) => insideStep(run, path, () => stepWork(attempt.shown))
  const work = requests.work(path, options as StepOptions, inside, { inputHash, isLive, outer: call.outer, after })
  if (isEffect) await requests.hold(path)
  try {
    const performing = perform(run, work)
    const performed = performing instanceof Promise ? await performing : performing
    if (requests.isLeft(call)) return never()
    await recordDone(run, work, performed)
    // What the program did to it in the meantime would be in no record.
    return showValue(performed.result)
  } catch (error) {
    if (!requests.isLeft(call)) await records.threw(work, error)
    throw error
  }
}

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

/** Records what a step returned, with its events and what it wrote to the store. */
export function recordDone(run: Run, work: Work, { result, writes, attempts, ms }: Performed): Promise<void> {
  const event = { type: 'step', step: work.path, status: 'completed', attempt: attempts, ms }
  return run.record({
    kind: 'step',
    ops: [set(work.at, doneRecord(work, result))],
    data: { events: [event] },
    ...(writes.length > 0 ? { store: writes } : {}),
  })
}

/** A piece of work in progress, over all of its attempts. */
class Performance {
  readonly #run: Run
  readonly #work: Work
  readonly #ledger: Ledger
  readonly #backoff: Backoff
  readonly #begun: number

  constructor(run: Run, work: Work, ledger: Ledger) {
    this.#run = run
    this.#work = work
    this.#ledger = ledger
    this.#backoff = parseRetry(work.policy.retry)
    this.#begun = run.clock.monotonic()
  }

  begin(before: StepRecord | undefined): Performed | Promise<Performed> {
    if (this.#ledger.effect !== 'read') return this.#beginEffect(before)
    const work = this.#work
    const reads = this.#run.recordedReads
    const instead = reads?.find(work.path, work.inputHash(), work.sees, work.isSamePast ?? false)
    return instead ? this.#finish(instead.result, NO_WRITES, 0) : this.#try(1)
  }

  async #beginEffect(before: StepRecord | undefined): Promise<Performed> {
    const known = await beforeEffect(this.#run, this.#work, this.#ledger, before)
    return known ? this.#finish(known.result, known.writes, 0) : this.#tryEffect(1)
  }

  /** One attempt at something that reaches the outside world, and those that follow it. */
  async #tryEffect(tried: number): Promise<Performed> {
    const known = await beforeAttempt(this.#run, this.#ledger)
    return known ? this.#finish(known.result, known.writes, tried) : this.#try(tried)
  }

  /** One attempt, and those that follow it. */
  #try(tried: number): Performed | Promise<Performed> {
    const writes: StoreWrite[] = []
    const fail = (error: unknown) => this.#goOn({ error, tried, writes })
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

  /** After an attempt that threw. */
  async #goOn(thrown: Thrown): Promise<Performed> {
    const next = await afterThrow(this.#run, this.#work, this.#ledger, this.#backoff, thrown)
    if ('known' in next) return this.#finish(next.known.result, next.known.writes, thrown.tried)
    return this.#ledger.effect === 'read' ? this.#try(next.again) : this.#tryEffect(next.again)
  }

  #finish(result: unknown, writes: readonly StoreWrite[], attempts: number): Performed {
    this.#ledger.end()
    const { keep } = this.#work
    const kept = result === undefined ? undefined : keep ? (keep(result) as Value) : this.#run.keep(result)
    return { result: kept, writes, attempts, ms: Math.round(this.#run.clock.monotonic() - this.#begun) }
  }

  #runOnce(tried: number, writes: StoreWrite[]): unknown {
    const run = this.#run
    const work = this.#work
    const tryOnce = () =>
      attempt((abort) => callWork(run, work, this.#ledger, { tried, abort, writes }), {
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
}
