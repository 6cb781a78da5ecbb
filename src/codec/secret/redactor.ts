import { InvalidOptionError } from '../../core/errors.js'
import { setOwn, type Value } from '../value.js'

/**
 * Removes from a text what must not be kept. `key` is the name of the property that holds it, if one does. Must return
 * its own results unchanged, and the same for the same text: what it returns is also what programs see.
 */
export type Redact = (text: string, key: string | undefined) => string

/** A number with at least this many digits is shown to the hook as text: it may be a card number. */
const LONG_NUMBER = 10 ** 11

/** Applies a hook to everything in a value that is text. */
export class Redactor {
  readonly #hook: Redact

  constructor(hook: unknown) {
    if (typeof hook !== 'function') {
      const remedy = 'Pass redactCommon(), or a function of a text that returns it without what must not be kept.'
      throw new InvalidOptionError('redact', 'is not a function', remedy)
    }
    this.#hook = hook as Redact
  }

  text(text: string, key?: string): string {
    const redacted: unknown = this.#hook(text, key)
    if (typeof redacted === 'string') return redacted.toWellFormed()
    // Never written as it was: that is what the hook is there to prevent.
    throw new InvalidOptionError('redact', `returned ${typeof redacted}`, 'Return a text for every text.')
  }

  /** The same value if nothing was removed, otherwise a copy. Names of properties, dates and bytes stay. */
  value<V extends Value>(value: V, key?: string): V {
    return this.#walk(value, key) as V
  }

  #walk(value: Value, key: string | undefined): Value {
    if (typeof value === 'string') return this.text(value, key)
    if (typeof value === 'number' || typeof value === 'bigint') return this.#number(value, key)
    if (typeof value !== 'object' || value === null || value instanceof Date || value instanceof Uint8Array)
      return value
    return Array.isArray(value) ? this.#list(value, key) : this.#record(value as { readonly [key: string]: Value })
  }

  #number(value: number | bigint, key: string | undefined): Value {
    if (typeof value === 'number' ? !(value >= LONG_NUMBER && Number.isSafeInteger(value)) : value < LONG_NUMBER)
      return value
    const text = String(value)
    const redacted = this.text(text, key)
    return redacted === text ? value : redacted
  }

  #list(list: readonly Value[], key: string | undefined): Value {
    let copy: Value[] | undefined
    for (const [i, item] of list.entries()) {
      const redacted = this.#walk(item, key)
      if (redacted === item) continue
      copy ??= [...list]
      copy[i] = redacted
    }
    return copy ?? list
  }

  #record(record: { readonly [key: string]: Value }): Value {
    let copy: Record<string, Value> | undefined
    for (const name of Object.keys(record)) {
      const redacted = this.#walk(record[name] as Value, name)
      if (redacted === record[name]) continue
      copy ??= { ...record }
      setOwn(copy, name, redacted)
    }
    return copy ?? record
  }

  /** What was thrown, with its message and stack redacted, in place: it stays the error that it is. */
  error<E>(error: E): E {
    if (typeof error === 'string') return this.text(error) as E
    if (!(error instanceof Error)) return error
    const { message, stack } = error
    const clean = this.text(message)
    if (clean === message) return error
    try {
      error.message = clean
      if (stack !== undefined) error.stack = stack.replace(message, clean)
      if (error.message === clean) return error
    } catch {}
    // Its fields can't be changed, so only what was recorded of it is passed on.
    return Object.assign(new Error(clean), { name: error.name }) as E
  }
}
