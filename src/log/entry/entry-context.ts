import type { DataKey } from '../../codec/secret/data-key.js'
import type { ChainBase } from '../../codec/header.js'
import type { Limits } from '../../codec/limits.js'
import type { Encoded } from '../../codec/value.js'
import type { LogKey, StoredEntry } from '../contract.js'
import type { KeySource } from '../keys/keys.js'
import type { BlobShelf } from '../read/blob-shelf.js'
import type { Draft } from './draft.js'
import type { Applied, EntryBody, Fold, Weight } from './fold.js'
import { TooLargeError } from '../../core/errors.js'

/** Circumstances of an entry that its writer knows. */
export interface Sealing {
  readonly appendId: string
  readonly epoch: number
  readonly at: number
  /** For the first entry of a fork: the entry it continues. */
  readonly base?: ChainBase
}

/** What reading and writing the entries of one log needs. */
export interface EntryContext {
  readonly log: LogKey
  readonly limits: Limits
  readonly shelf: BlobShelf
  readonly keys: KeySource | undefined
}

/** An entry as it is stored, and the fold it leads to. */
export interface SealedEntry {
  readonly entry: StoredEntry
  readonly fold: Fold
}

/** An entry on its way to being sealed. One object that is filled in: copies of it would cost more than the sealing. */
export interface Drafted {
  readonly before: Fold
  readonly draft: Draft
  readonly sealing: Sealing
  readonly encoded: Encoded
  readonly applied: Applied
  key: DataKey | null
  /** The names of the blobs that it points to. */
  blobs: readonly string[]
  json: string
  isKeyframe: boolean
  holdsWholeFold: boolean
}

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
