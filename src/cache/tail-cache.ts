import type { LogKey, RecentTail, Scrubbed, StoredEntry } from '../log/contract.js'

/** What an append added to a log. */
export interface NewTail {
  readonly incarnation: string
  /** The entry that these follow; null when they begin with a keyframe, and so need nothing before them. */
  readonly after: { readonly seq: number; readonly hash: string } | null
  /** At least one, consecutive. */
  readonly entries: readonly StoredEntry[]
}

/** One life of a log: a name that is erased and used again is another one. */
export interface LogLife {
  readonly log: LogKey
  readonly incarnation: string
}

/**
 * The ends of logs, nearby and for a while: limited, expiring, and free to forget. Nothing rejects, and nothing waits
 * long: a cache that is down, slow or wrong must never be worse than none.
 */
export interface TailCache {
  /** For people: where it is, and whether it answers. */
  describe(): string
  /** What it holds of a log, from entry `from` on if it holds that one, else from its keyframe. */
  get(log: LogKey, from: number | undefined): Promise<RecentTail | undefined>
  /** Keeps what was appended, if it joins what is there or stands alone. False where the log is not kept up to there. */
  put(log: LogKey, tail: NewTail): Promise<boolean>
  /** Lets go of what it holds of a log. */
  forget(log: LogKey): void
  /**
   * Removes what it holds of these, and refuses to cache them again: another process's put may be late. False if they
   * may still be there: then it is retried for as long as this process lives, and ends with their time to live.
   */
  bar(lives: readonly LogLife[]): Promise<boolean>
  /** Takes back `bar`: they were not erased after all. */
  unbar(lives: readonly LogLife[]): void
  /** Drives what was removed out of its own files, and says how far that went. */
  scrub(): Promise<Scrubbed>
  /** Soon, also while it does not answer. */
  close(): Promise<void>
}
