import type { Clock } from '../../../core/time/clock.js'
import { onAbort } from '../../../core/async/on-abort.js'
import { lazyFields, withLazyFields } from '../../../core/lazy-fields.js'
import { callAfter } from '../../../core/time/timer.js'
import { AttemptFailure } from './model-failure.js'
import type { LanguageModel } from '../model-types.js'
import { type CollectedReply, ReplyCollector, type ReplyDelta } from './reply-collector.js'

export interface AttemptLimits {
  readonly clock: Clock
  readonly signal: AbortSignal | undefined
  readonly timeoutMs: number
  readonly idleTimeoutMs: number | undefined
  readonly stream: boolean
}

type Call = (options: Readonly<Record<string, unknown>>) => PromiseLike<unknown>

/** One attempt at a reply: complete, or an error. Ends within its limits even if the provider ignores the signal. */
export async function runAttempt(
  model: LanguageModel,
  options: Readonly<Record<string, unknown>>,
  prompt: readonly unknown[],
  limits: AttemptLimits,
  emit: (delta: ReplyDelta) => void,
): Promise<CollectedReply> {
  const control = new AttemptControl()
  const letGo = onAbort(limits.signal, () => control.abort(limits.signal?.reason))
  // Only who limits the silence of a stream looks at the time of each part.
  const isTimed = limits.idleTimeoutMs !== undefined
  let lastPart = isTimed ? limits.clock.monotonic() : 0
  const touch = () => {
    if (isTimed) lastPart = limits.clock.monotonic()
  }
  const unwatch = watch(limits, control, () => lastPart)
  const collector = new ReplyCollector(emit)
  try {
    const call = callOptions(options, prompt, control)
    const isWhole = !limits.stream || model.doStream === undefined
    if (isWhole || !(await readStream(model, call, control, collector, touch))) {
      collector.addResult(await control.orAbort((model.doGenerate as Call).call(model, call)))
    }
    return collector.finish()
  } finally {
    letGo()
    unwatch()
  }
}

/** What a model is called with. Its signal is made when it is asked for: that costs more than all the rest. */
function callOptions(options: Readonly<Record<string, unknown>>, prompt: readonly unknown[], control: AttemptControl) {
  return withLazyFields({ ...options, prompt }, control, SIGNAL)
}

// Middleware may replace it.
const SIGNAL = lazyFields(['abortSignal'], true)

/** False where the model has no stream. */
async function readStream(
  model: LanguageModel,
  call: Readonly<Record<string, unknown>>,
  control: AttemptControl,
  collector: ReplyCollector,
  touch: () => void,
): Promise<boolean> {
  const result = (await control.orAbort(askStream(model, call))) as { readonly stream?: ReadableStream<unknown> } | null
  if (result === NO_STREAM) return false
  if (typeof result?.stream?.getReader !== 'function') {
    throw new AttemptFailure('broken-reply', 'The model gave no stream.')
  }
  const reader = result.stream.getReader()
  try {
    for (;;) {
      const { done, value } = await control.orAbort(reader.read())
      if (done) return true
      touch()
      collector.add(value)
    }
  } catch (error) {
    // A stream that is given up must not keep filling memory, nor keep its connection.
    reader.cancel().catch(() => {})
    throw error
  }
}

const NO_STREAM = {}

/** Mocks of the AI SDK that were given only `doGenerate` have a `doStream` that says so. */
async function askStream(model: LanguageModel, call: Readonly<Record<string, unknown>>): Promise<unknown> {
  try {
    return await (model.doStream as Call).call(model, call)
  } catch (error) {
    const isMissing = error instanceof Error && error.message === 'Not implemented'
    if (isMissing && typeof model.doGenerate === 'function') return NO_STREAM
    throw error
  }
}

/** Aborts the attempt when its time is up, or when nothing has come for too long, until the returned function is called. */
function watch(limits: AttemptLimits, control: AttemptControl, lastPart: () => number): () => void {
  const { clock, timeoutMs, idleTimeoutMs } = limits
  // Timers set for longer fire immediately.
  const longest = 2 ** 31 - 1
  const expire = (ms: number, what: string) =>
    control.abort(new AttemptFailure('timeout', `The model ${what} within ${ms} ms.`))
  const unwatch = callAfter(clock, Math.min(timeoutMs, longest), () => expire(timeoutMs, 'did not finish'))
  if (idleTimeoutMs === undefined) return unwatch
  let stopWaiting = () => {}
  const waitForSilence = () => {
    const left = lastPart() + idleTimeoutMs - clock.monotonic()
    if (left <= 0) return expire(idleTimeoutMs, 'sent nothing')
    stopWaiting = callAfter(clock, Math.min(left, longest), waitForSilence)
  }
  waitForSilence()
  return () => {
    unwatch()
    stopWaiting()
  }
}

/** Aborts an attempt: what waits for the provider ends at once, even if the provider ignores the signal. */
class AttemptControl {
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined
  #leave: ((reason: unknown) => void) | undefined

  get abortSignal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = { reason }
    this.#controller?.abort(reason)
    this.#leave?.(reason)
  }

  /** A promise that also ends when the attempt does. One at a time. */
  orAbort<Result>(promise: Result | PromiseLike<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      // The provider's AbortError hides the cause; the reason states it.
      const failed = (error: unknown) => reject(this.#aborted ? this.#aborted.reason : error)
      Promise.resolve(promise).then(resolve, failed)
      if (this.#aborted) reject(this.#aborted.reason)
      this.#leave = reject
    })
  }
}
