import { InvalidOptionError } from '../core/errors.js'
import { suggestName } from '../core/wording/option-names.js'

/** Limits for one stored value. Checked while writing, and again on the raw bytes before anything is parsed. */
export interface Limits {
  /** Bytes of JSON, before compression. */
  readonly maxBytes: number
  /** Arrays and objects inside each other. */
  readonly maxDepth: number
  /** Array items and object properties, in total. */
  readonly maxKeys: number
  /**
   * Bytes of JSON and of large values that one read may unpack, for all its entries together: a few stored kilobytes
   * can claim to be gigabytes.
   */
  readonly maxReadBytes: number
}

const MB = 1024 * 1024

export const DEFAULT_LIMITS: Limits = {
  maxBytes: 64 * MB,
  maxDepth: 128,
  maxKeys: 2_000_000,
  maxReadBytes: 512 * MB,
}

/** A limit that is not a number would be no limit at all, noticed only when there is harm. */
export function parseLimits(given: Partial<Limits> = {}): Limits {
  const limits: Record<keyof Limits, number> = { ...DEFAULT_LIMITS }
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) {
      throw new InvalidOptionError(`limits.${name}`, 'is not a limit', suggestName(name, Object.keys(DEFAULT_LIMITS)))
    }
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new InvalidOptionError(`limits.${name}`, `is ${String(value)}`, 'Pass a whole number, 1 or more.')
    }
    limits[name as keyof Limits] = value
  }
  // A value that may be written must be readable; raising one limit alone raises the other with it.
  if (limits.maxReadBytes < limits.maxBytes) {
    if (given.maxReadBytes !== undefined) {
      const remedy = 'Pass at least as much as limits.maxBytes.'
      throw new InvalidOptionError('limits.maxReadBytes', `is below limits.maxBytes (${limits.maxBytes})`, remedy)
    }
    limits.maxReadBytes = limits.maxBytes
  }
  return limits
}
