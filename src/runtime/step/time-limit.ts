import { type Context, createContext, Script } from 'node:vm'
import { HoldfastError } from '../../core/errors.js'

const LIMIT_MS = 1000
/** Where every character doubles the work, so many take a few milliseconds. */
const SHORT = 20

/**
 * Ends code that does not come to an end by itself, also in the middle of a regular expression: checks of a program's own
 * run on what models and strangers wrote, and `/^(a+)+$/` holds the event loop for hours with 35 characters. What is
 * short runs without it, which costs nothing.
 */
export class TimeLimit {
  #context: Context | undefined
  readonly #script = new Script('work()')

  /** Runs `work`, the part of it before its first `await`, for a second at most. `on` is what it works on. */
  run<Result>(on: unknown, work: () => Result): Result {
    if (!hasLongText(on)) return work()
    this.#context ??= createContext({})
    this.#context['work'] = work
    try {
      return this.#script.runInContext(this.#context, { timeout: LIMIT_MS }) as Result
    } catch (error) {
      if ((error as { readonly code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
      throw new HoldfastError('timeout', `The check of a value took longer than ${LIMIT_MS} ms.`, {
        data: { timeoutMs: LIMIT_MS },
        remedy: 'Send a shorter value, or fix the check: it may hold a regular expression that backtracks.',
      })
    } finally {
      this.#context['work'] = undefined
    }
  }
}

function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > SHORT
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return false
  return Object.entries(value).some(([name, part]) => name.length > SHORT || hasLongText(part))
}
