import type { Clock } from '../../../core/time/clock.js'
import { InvalidOptionError, isHoldfastError, ModelError, type ModelFailureKind } from '../../../core/errors.js'
import { type ModelFailure, readFailure } from './model-failure.js'

/** How often and for how long a model call is retried. */
export interface ModelRetryOptions {
  /** Attempts in total. Default 6; 1 never retries. */
  readonly attempts?: number
  /** The delay after the first failure; it doubles from there. Default 500 ms. */
  readonly initialMs?: number
  /** The longest delay of our own choosing; a provider's Retry-After may be longer. Default 30,000 ms. */
  readonly maxMs?: number
  /** No attempt starts later than this after the first failure. Default 120,000 ms. */
  readonly totalMs?: number
}

export interface RetryContext {
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** From 0 up to 1. Default: `Math.random`. */
  readonly random?: (() => number) | undefined
  /** Errors that are not the model's, to be thrown unchanged. */
  readonly isFinal?: (error: unknown) => boolean
  /** The attempt doesn't count, and is made again at once. */
  readonly isVoid?: (error: unknown) => boolean
  /** Which model, for messages. */
  readonly model: { readonly provider: string; readonly id: string }
  /** After an attempt failed and before the delay; `delayMs` is undefined if there is no further attempt. */
  readonly onFailure?: (attempt: number, failure: ModelFailure, delayMs: number | undefined) => void
}

const DEFAULTS = { attempts: 6, initialMs: 500, maxMs: 30_000, totalMs: 120_000 }

const REMEDIES: Readonly<Record<ModelFailureKind, string>> = {
  'rate-limit': 'Try again later, or ask the provider for a higher limit.',
  quota: "Check the account's plan and billing at the provider.",
  server: 'Try again later.',
  connection: 'Check the address and the network, and try again.',
  timeout: 'Try again, or allow more time with timeoutMs.',
  'broken-reply': 'Try again; if it keeps happening, the server does not speak the expected protocol.',
  'context-too-long': 'Shorten the conversation, for example by compaction.',
  auth: "Check the API key and the account's permissions.",
  'not-found': 'Check the model name and the base URL.',
  'invalid-request': 'Correct the request: see what the provider said.',
  unknown: 'See the cause.',
}

/**
 * Runs attempts until one succeeds. Waits between them twice as long each time, half of it random so that many clients
 * don't come back at once, and never less than the provider asked for. What waiting can't fix is thrown immediately; an
 * abort ends it immediately with the signal's reason.
 */
export async function retryModel<Result>(
  attempt: (attempt: number) => Promise<Result>,
  options: ModelRetryOptions,
  context: RetryContext,
): Promise<Result> {
  const settings = checkRetryOptions(options)
  const { clock, signal, random = Math.random } = context
  // From the first failure on: a reply that broke off after minutes of thinking is worth another attempt too.
  let failedAt: number | undefined
  for (let n = 1; ; n++) {
    signal?.throwIfAborted()
    try {
      return await attempt(n)
    } catch (error) {
      signal?.throwIfAborted()
      // Our own refusals, such as an invalid message, are not failures of the model.
      if (isHoldfastError(error) || context.isFinal?.(error)) throw error
      if (context.isVoid?.(error)) {
        n--
        continue
      }
      const failure = readFailure(error, clock.now())
      const delayMs = failure.retryable ? nextDelay(n, failure, settings, random) : undefined
      failedAt ??= clock.monotonic()
      const elapsed = clock.monotonic() - failedAt
      const again = delayMs !== undefined && n < settings.attempts && elapsed + delayMs <= settings.totalMs
      context.onFailure?.(n, failure, again ? delayMs : undefined)
      if (!again) throw toModelError(failure, n, context.model, error)
      await pause(clock, delayMs, signal)
    }
  }
}

function checkRetryOptions(options: ModelRetryOptions): Required<ModelRetryOptions> {
  const settings = { ...DEFAULTS, ...options }
  for (const field of ['attempts', 'initialMs', 'maxMs', 'totalMs'] as const) {
    const least = field === 'attempts' ? 1 : 0
    const value = settings[field]
    if (typeof value === 'number' && value >= least && (field !== 'attempts' || Number.isInteger(value))) continue
    throw new InvalidOptionError(
      `retry.${field}`,
      `must be ${least} or more, not ${String(value)}`,
      'Pass a number, or leave it out.',
    )
  }
  return settings
}

function nextDelay(
  attempt: number,
  failure: ModelFailure,
  settings: Required<ModelRetryOptions>,
  random: () => number,
): number {
  const full = Math.min(settings.maxMs, settings.initialMs * 2 ** (attempt - 1))
  const backoff = full / 2 + (full / 2) * random()
  if (failure.retryAfterMs === undefined) return backoff
  // A little later than requested, so that clients that were told the same time don't all arrive at the same moment.
  return Math.max(backoff, failure.retryAfterMs + Math.min(1000, failure.retryAfterMs * 0.1) * random())
}

async function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await clock.sleep(ms, signal)
  } catch (error) {
    // Timers reject with their own error around the reason.
    signal?.throwIfAborted()
    throw error
  }
}

function toModelError(
  failure: ModelFailure,
  attempts: number,
  model: RetryContext['model'],
  error: unknown,
): ModelError {
  const { kind, message, retryable, ...rest } = failure
  const tries = attempts === 1 ? '' : ` after ${attempts} attempts`
  const status = failure.status === undefined ? '' : ` (HTTP ${failure.status})`
  return new ModelError(`The call to ${model.provider} ${model.id} failed${tries}${status}: ${message}`, {
    kind,
    remedy: REMEDIES[kind],
    retryable,
    data: { provider: model.provider, model: model.id, attempts, ...rest, reason: message },
    cause: slimCause(error, message),
  })
}

// The provider's error holds the request, including the prompt, and the URL, perhaps with a key: none of it may reach a
// log.
function slimCause(error: unknown, message: string): Error {
  const slim = new Error(message)
  if (error instanceof Error) {
    slim.name = error.name
    const at = error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? []
    slim.stack = [`${error.name}: ${message}`, ...at].join('\n')
  }
  return slim
}
