import { randomBytes } from 'node:crypto'
import { TooLargeError } from '../../core/errors.js'
import type { Limits } from '../limits.js'

/** Stands in for parts that are already written. Private to this process, so that no value can contain it. */
export const MARK = `written ${randomBytes(16).toString('hex')}`
const MARK_JSON = JSON.stringify(MARK)

/** The JSON with the parts that were written before in their places. */
export function joinWritten(json: string, written: readonly string[]): string {
  if (written.length === 0) return json
  const parts = json.split(MARK_JSON)
  return parts.reduce((whole, part, i) => whole + written[i - 1] + part)
}

export function stringify(body: unknown, limits: Limits): string {
  try {
    return JSON.stringify(body)
  } catch (cause) {
    // Longer than any string can be.
    if (cause instanceof RangeError) throw tooManyBytes(limits, undefined)
    throw cause
  }
}

export function tooManyBytes(limits: Limits, actual: number | undefined, path?: string): TooLargeError {
  const field = path === undefined ? 'The value' : `The value at ${path}`
  return new TooLargeError(
    field,
    'bytes',
    limits.maxBytes,
    actual,
    'Store large parts as separate values or raise limits.maxBytes.',
  )
}
