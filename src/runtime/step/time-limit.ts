import { type Context, createContext, Script } from 'node:vm'
import { HoldfastError } from '../../core/errors.js'

const LIMIT_MS = 1000
/** Where every character doubles the work, this many take a few milliseconds. */
const SHORT = 20

/**
 * Ends code that does not end by itself, even in the middle of a regular expression: a program's own checks run on what
 * models and strangers wrote, and `/^(a+)+$/` blocks the event loop for hours on 35 characters. Short input runs
 * without it, which costs nothing.
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
