import type { TypeEntry } from '../value-types.js'

/** The result of encoding a value when it was written. */
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
 * The result of encoding a value, if it was written and is not nested too deep here. Handed out once: kept longer,
 * everything in a state would be in memory twice.
 */
export function takeWritten(value: object, maxDepth: number): Written | undefined {
  const written = WRITTEN.get(value)
  if (written === undefined || written.depth > maxDepth) return undefined
  WRITTEN.delete(value)
  return written
}
