import { nowOrLater } from '../../../core/async/at-once.js'
import type { Clock } from '../../../core/time/clock.js'
import { onAbort } from '../../../core/async/on-abort.js'
import { InvalidOptionError, isHoldfastError } from '../../../core/errors.js'
import { callAfter } from '../../../core/time/timer.js'
import type { RetryPolicy } from '../context.js'
import { StepTimeoutError } from '../../errors.js'
import type { Abortable } from '../../../core/async/lazy-abort.js'
import type { StoreWrite } from '../../../log/items/store-write.js'

interface AttemptOptions {
  readonly step: string
  readonly timeoutMs?: number | undefined
  readonly run: Abortable
  /** Aborted when the work is left hanging: nobody waits for it, so its time limit doesn't matter anymore. */
  readonly left?: Abortable | undefined
  /** Of the attempt that this work is a part of, which has a time limit. Aborted with the run, too. */
  readonly outer?: AbortSignal | undefined
  readonly clock: Clock
}

/**
 * Runs one attempt with a signal that a time limit or the end of the run aborts. Returns what the work returns, if that
 * is no promise and there is no time limit.
 */
export function attempt<Result>(
  work: (abort: Pick<Abortable, 'signal'>) => Result | Promise<Result>,
  options: AttemptOptions,
): Result | Promise<Result> {
  const { timeoutMs, run, outer } = options
  run.throwIfAborted()
  outer?.throwIfAborted()
  // Only a time limit needs a signal of its own; the run's serves the rest, at a fraction of the cost.
  if (timeoutMs !== undefined) return race(work, new AbortController(), options)
  const running = nowOrLater(work(outer === undefined ? run : { signal: outer }))
  return running instanceof Promise ? race(() => running, undefined, options) : running
}

/** The result of work, unless a signal is aborted first or the time is over. */
function race<Result>(
  work: (abort: Pick<Abortable, 'signal'>) => Result | Promise<Result>,
  own: AbortController | undefined,
  { step, timeoutMs, run, left, outer, clock }: AttemptOptions,
): Promise<Result> {
  // The first that settles it counts. The others may still reject, when nobody listens anymore.
  return new Promise<Result>((resolve, reject) => {
    const letGo: (() => void)[] = []
    let isOver = false
    const end = () => {
      isOver = true
      for (const each of letGo) each()
    }
    const fail = (error: unknown) => {
      end()
      reject(error)
    }
    const endWith = (reason: unknown) => {
      own?.abort(reason)
      fail(reason)
    }
    letGo.push(run.onAbort(() => endWith(run.reason)))
    if (left) letGo.push(left.onAbort(() => fail(left.reason)))
    // Any number of steps may run inside of one attempt.
    if (outer) letGo.push(onAbort(outer, () => endWith(outer.reason)))
    if (own && timeoutMs !== undefined) {
      const late = () => {
        const error = new StepTimeoutError(step, timeoutMs)
        own.abort(error)
        fail(error)
      }
      letGo.push(callAfter(clock, timeoutMs, late))
    }
    // One of the signals was aborted before: what was registered after it is not needed anymore.
    if (isOver) end()
    const succeed = (result: Result) => {
      end()
      resolve(result)
    }
    try {
      Promise.resolve(work(own ?? run)).then(succeed, fail)
    } catch (error) {
      fail(error)
    }
  })
}

export interface Backoff {
  readonly attempts: number
  readonly initialMs: number
  readonly factor: number
  readonly maxMs: number
  readonly jitter: number
  readonly retryIf: (error: unknown) => boolean
}

export function parseRetry(policy?: RetryPolicy): Backoff {
  return policy === undefined ? DEFAULT_BACKOFF : readRetry(policy)
}

function readRetry(policy: RetryPolicy): Backoff {
  const { attempts = 3, initialMs = 200, factor = 2, maxMs = 30_000, jitter = 0.5, retryIf = isWorthRetrying } = policy
  check('retry.attempts', Number.isSafeInteger(attempts) && attempts >= 1 && attempts <= 1000, 'be 1 to 1,000')
  check('retry.initialMs', isFinite(initialMs) && initialMs >= 0, 'be 0 or more milliseconds')
  check('retry.factor', isFinite(factor) && factor >= 1, 'be 1 or more')
  check('retry.maxMs', isFinite(maxMs) && maxMs >= 0, 'be 0 or more milliseconds')
  check('retry.jitter', jitter >= 0 && jitter <= 1, 'be 0 to 1')
  check('retry.retryIf', typeof retryIf === 'function', 'be a function')
  return { attempts, initialMs, factor, maxMs, jitter, retryIf }
}

const DEFAULT_BACKOFF = readRetry({})

/** The delay after this many failed attempts. The random part keeps many threads from coming back at once. */
export function retryDelayMs(backoff: Backoff, failed: number, random: () => number): number {
  const full = Math.min(backoff.maxMs, backoff.initialMs * backoff.factor ** (failed - 1))
  return full * (1 - backoff.jitter * random())
}

function isWorthRetrying(error: unknown): boolean {
  return !isHoldfastError(error) || error.retryable
}

function isFinite(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value)
}

function check(field: string, fits: boolean, rule: string): void {
  if (!fits) throw new InvalidOptionError(field, `must ${rule}`, 'Correct the retry policy.')
}

/** How an attempt ended, as far as that is known. */
export type Ended =
  | { readonly status: 'returned'; readonly result: unknown; readonly writes: readonly StoreWrite[] }
  | { readonly status: 'threw'; readonly error: unknown }
  | { readonly status: 'running' }

/**
 * Attempts of this process at effects, for as long as they run. One that timed out, or whose run was stopped, continues
 * until it is done: what it does then must not happen unknown to those who were told that it did nothing.
 */
export class Attempts {
  /** Of an idempotent effect several may run at once, with the same key. */
  readonly #running = new Map<string, Set<Promise<Ended>>>()

  track<Result>(effect: string, writes: readonly StoreWrite[], attempt: Promise<Result>): Promise<Result> {
    const ended = attempt.then(
      (result): Ended => ({ status: 'returned', result, writes }),
      (error: unknown): Ended => ({ status: 'threw', error }),
    )
    const all = this.#running.get(effect) ?? new Set()
    this.#running.set(effect, all.add(ended))
    void ended.then(() => all.delete(ended) && all.size === 0 && this.#running.delete(effect))
    return attempt
  }

  /** Undefined if none is running. Resolves when one has succeeded, all have ended, or `limit` does. */
  async ended(effect: string, limit: () => Promise<void>): Promise<Ended | undefined> {
    const running = this.#running.get(effect)
    if (running === undefined) return undefined
    const over = [landed([...running]), limit().then((): Ended => ({ status: 'running' }))]
    return Promise.race(over)
  }
}

/**
 * The first that brings a result. Otherwise all have thrown, and the first error that leaves the outcome open counts.
 */
async function landed(attempts: readonly Promise<Ended>[]): Promise<Ended> {
  try {
    return await Promise.any(attempts.map(async (attempt) => orThrow(await attempt)))
  } catch {
    const all = await Promise.all(attempts)
    return (
      all.find((ended) => ended.status === 'threw' && !isHoldfastError(ended.error, 'not-executed')) ??
      (all[0] as Ended)
    )
  }
}

function orThrow(ended: Ended): Ended {
  if (ended.status === 'threw') throw ended.error
  return ended
}
