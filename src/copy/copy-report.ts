import type { KeyOptions } from '../log/keys/key-options.js'
import type { ThreadIdInput } from '../core/ids.js'

/** What to copy, and how. */
export interface CopyOptions {
  /** Only this tenant. Default: all. */
  readonly tenant?: string
  /**
   * For a second pass: only threads and items that changed after this, and those may replace what an earlier pass
   * copied. Use a time before the first pass began.
   */
  readonly since?: Date
  /**
   * Also removes from the destination what the source no longer has: erased threads, deleted items, pruned entries. Only
   * for a destination that is nothing but a copy of this source.
   */
  readonly deleteMissing?: boolean
  /**
   * The keys of the source. Copying moves stored bytes unchanged and needs none; with them every HMAC is verified as
   * well, and they are required if the source is an encrypted file or Redis store, to finish writes to the store that a
   * crashed process left behind.
   */
  readonly keys?: KeyOptions
  /** How many branches are copied at once. Default 16. */
  readonly concurrency?: number
  /** Stops after the pages in progress. Copying again continues from there. */
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: CopyProgress) => void
}

/** What was copied so far. */
export interface CopyProgress {
  /** Branches looked at. */
  readonly branches: number
  /** How many of these were already at the destination. */
  readonly same: number
  readonly entries: number
  readonly blobs: number
  readonly items: number
  readonly tombstones: number
  /** Of entries, blobs and items. */
  readonly bytes: number
  /** Branches and items that were removed at the destination, with `deleteMissing`. */
  readonly removed: number
}

/** Something that was left alone at the destination, and why. */
export interface CopyRefusal {
  readonly tenant: string
  /** As it was given when the thread was made. */
  readonly thread?: ThreadIdInput
  readonly branch?: string
  /** An item of the store. */
  readonly item?: { readonly space: string; readonly key: string }
  readonly reason: CopyRefusalReason
  /** For people, with what to do. */
  readonly message: string
}

/** Why something was not copied. */
export type CopyRefusalReason =
  /** The destination has another thread with this name, or another item. */
  | 'exists'
  /** The thread continued at the destination after it was copied. */
  | 'ahead'
  /** Both have entries that the other does not have. */
  | 'diverged'
  /** The source was pruned beyond what the destination has. */
  | 'gap'
  /** What the source holds does not verify. */
  | 'damaged'
  /** The two sides have different data keys for this tenant, or only one has. */
  | 'keys'

/** The outcome of a copy. */
export interface CopyReport extends CopyProgress {
  readonly tenants: number
  /** Entries whose hash or HMAC was recomputed on the way. All others were compared byte by byte only. */
  readonly verified: number
  readonly refused: readonly CopyRefusal[]
  /** False if `signal` stopped it. */
  readonly complete: boolean
}

type Counts = { -readonly [Name in keyof CopyProgress]: CopyProgress[Name] } & { tenants: number; verified: number }

/** Counts, and tells who wants to know. */
export class Tally {
  readonly counts: Counts = {
    branches: 0,
    same: 0,
    entries: 0,
    blobs: 0,
    items: 0,
    tombstones: 0,
    bytes: 0,
    removed: 0,
    tenants: 0,
    verified: 0,
  }
  readonly refused: CopyRefusal[] = []
  readonly #onProgress: CopyOptions['onProgress']

  constructor(onProgress: CopyOptions['onProgress']) {
    this.#onProgress = onProgress
  }

  add(counts: Partial<Counts>): void {
    for (const [name, count] of Object.entries(counts)) this.counts[name as keyof Counts] += count
    const { tenants: _, verified: __, ...progress } = this.counts
    this.#onProgress?.(progress)
  }

  refuse(refusal: CopyRefusal): void {
    this.refused.push(refusal)
  }

  report(complete: boolean): CopyReport {
    return { ...this.counts, refused: this.refused, complete }
  }
}
