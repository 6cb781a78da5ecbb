import type { Limits } from '../../codec/limits.js'
import type { Encoded } from '../../codec/value.js'
import { TooLargeError } from '../../core/errors.js'
import type { EntryBody, Weight } from './fold.js'

/**
 * A value is nested deeper in the state than in the entry that brings it, by the length of its path. Refused here,
 * where it is written; otherwise the next keyframe could not be written, and an innocent entry would be refused.
 */
export function checkDepth({ value, depth }: Encoded, limits: Limits): void {
  const longest = ((value as EntryBody).ops ?? []).reduce((most, [, path]) => Math.max(most, path.length), 1)
  const inState = depth + longest - 1
  if (inState <= limits.maxDepth) return
  const field = 'An operation, with its path and its value,'
  throw new TooLargeError(
    field,
    'levels of nesting',
    limits.maxDepth,
    inState,
    'Flatten the state, or raise limits.maxDepth.',
  )
}

/** Refused here, where it is written: otherwise none of it could be read anymore. */
export function checkReadable({ keyframeBytes, deltaBytes }: Weight, bytes: number, { maxReadBytes }: Limits): void {
  const all = keyframeBytes + deltaBytes + bytes
  if (all <= maxReadBytes) return
  const remedy = 'Keep less in the state of one thread, or raise limits.maxReadBytes.'
  throw new TooLargeError('What a read of this thread takes', 'bytes', maxReadBytes, all, remedy)
}
