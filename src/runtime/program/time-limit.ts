import { type Context, createContext, Script } from 'node:vm'
import { HoldfastError } from '../../core/errors.js'

const LIMIT_MS = 1000
/** Where every character doubles the work, this many take a few milliseconds. */
const SHORT = 20
/** How many values, and how long ones, are remembered for each check. */
const MAX_KNOWN = 16
const MAX_TEXT = 4096

/**
 * Ends code that does not end by itself, even in the middle of a regular expression: a program's own checks run on what
 * models and strangers wrote, and `/^(a+)+$/` blocks the event loop for hours on 35 characters. Short input runs
 * without it, which costs nothing. So does what the same check took in time before: setting the limit starts a thread,
 * and the arguments of a tool are checked when a model asks for the call, and again when it is made.
 */
export class TimeLimit {
  #context: Context | undefined
  readonly #script = new Script('work()')
  /** By check: the JSON of values that it ended with in time. */
  readonly #known = new WeakMap<object, Set<string>>()

  /**
   * Runs `work`, the part of it before its first `await`, for a second at most. `on` is what it works on, and `check`
   * what it does, if that depends on nothing else.
   */
  run<Result>(on: unknown, work: () => Result, check?: object): Result {
    if (!hasLongText(on)) return work()
    const text = check && shortJson(on)
    if (check === undefined || text === undefined) return this.#runInTime(work)
    const known = this.#known.get(check) ?? new Set()
    if (known.has(text)) return work()
    const result = this.#runInTime(work)
    if (known.size >= MAX_KNOWN) known.clear()
    this.#known.set(check, known.add(text))
    return result
  }

  #runInTime<Result>(work: () => Result): Result {
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

function shortJson(value: unknown): string | undefined {
  try {
    const text = JSON.stringify(value)
    return text.length <= MAX_TEXT ? text : undefined
  } catch {
    // A bigint has no JSON.
    return undefined
  }
}

function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > SHORT
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return false
  return Object.entries(value).some(([name, part]) => name.length > SHORT || hasLongText(part))
}
