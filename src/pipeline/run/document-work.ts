import type { Clock } from '../../core/time/clock.js'
import type { LoadedDocument } from '../document.js'
import type { RateLimit } from '../rate.js'
import type { AnyBatchStage } from '../stage.js'
import type { Seat } from './slots.js'

/**
 * The input of a document's thread. The content itself is not stored: it stays in its source, and the hash identifies
 * it.
 */
export interface DocumentInput {
  readonly document: string
  readonly hash: string
  /** What is asked for when the document is gone from its source. */
  readonly remove?: true
}

/** What the process that runs a document passes along. */
export interface DocumentWork {
  readonly document: LoadedDocument
  readonly clock: Clock
  /** Where the document waits until there is room for its next call. */
  readonly seat: Seat
  limitOf(stage: AnyBatchStage): RateLimit
  /** Told when the document is worked on, and not only its recorded outcome returned. */
  begun(): void
  /** Called for every batch that is committed, including those from before a crash. */
  committed(chunks: number): void
}

export interface DocumentResult {
  readonly chunks: number
  readonly tokens: number
  /** The run was begun before and interrupted. */
  readonly resumed: boolean
}
