import type { TypeEntry } from './value-types.js'

/** What was made of a value when it was written. */
export interface Written {
  readonly json: string
  /** With paths from the value itself. */
  readonly types: readonly TypeEntry[]
  readonly depth: number
  readonly size: number
  readonly keys: number
}

const WRITTEN = new WeakMap<object, Written>()

export function keepWritten(value: object, written: Written): void {
  WRITTEN.set(value, written)
}

/**
 * What was made of a value, if it was written and does not lie too deep here. Handed out once: kept longer, all that a
 * state holds would be in memory twice.
 */
export function takeWritten(value: object, maxDepth: number): Written | undefined {
  const written = WRITTEN.get(value)
  if (written === undefined || written.depth > maxDepth) return undefined
  WRITTEN.delete(value)
  return written
}
