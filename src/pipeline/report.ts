import type { RecordedError } from '../runtime/errors.js'

/** A document that failed, and why. */
export interface FailedDocument {
  readonly document: string
  readonly error: RecordedError
}

/** What one call of `run` did. */
export interface PipelineReport {
  /** 'completed': every document was looked at. Failed documents do not change that. */
  readonly status: 'completed' | 'paused' | 'cancelled' | 'stopped'
  /** Documents that were processed here to the end. */
  readonly successful: number
  /** Of those, the ones that were started earlier and continued where they had been interrupted. */
  readonly resumed: number
  /** Not touched: finished earlier, with the same content. */
  readonly skipped: number
  /** Finished by other processes while this one ran. */
  readonly elsewhere: number
  readonly failed: number
  /** Gone from the source, and removed from the sink because that was requested. */
  readonly removed: number
  /** Finished documents whose history was older than `retention` keeps, and was removed. */
  readonly expired: number
  readonly chunks: number
  readonly tokens: number
  readonly ms: number
  /** The failed ones with their errors, including those of earlier runs that were not retried. */
  readonly failures: readonly FailedDocument[]
  /** Recorded but no longer in the source; pass `removeMissing` to remove their rows. */
  readonly missing: readonly string[]
  /** Documents without any chunk. */
  readonly empty: readonly string[]
  /** Ids that the source yielded more than once; the first one counts. */
  readonly duplicates: readonly string[]
}

/** The progress of a run. */
export interface PipelineProgress {
  /** Documents that the source has yielded so far; all of them once `isScanned`. */
  readonly found: number
  readonly isScanned: boolean
  readonly successful: number
  readonly skipped: number
  readonly elsewhere: number
  readonly failed: number
  readonly active: number
  readonly chunks: number
  /** Chunks per second since the run began. */
  readonly chunksPerSecond: number
  /** Roughly how long the rest will take; undefined until the source has been read to its end. */
  readonly remainingMs: number | undefined
}

/** At most this many names are kept of each kind: a report must not grow with the mistakes of a source. */
export const MOST_NAMES = 1000

/** Counts while a run is in progress. */
export class Tally {
  found = 0
  isScanned = false
  successful = 0
  resumed = 0
  skipped = 0
  elsewhere = 0
  removed = 0
  expired = 0
  active = 0
  chunks = 0
  tokens = 0
  readonly failures = new Map<string, RecordedError>()
  readonly empty = new Set<string>()
  readonly duplicates = new Set<string>()
  readonly #began = performance.now()

  get ms(): number {
    return Math.round(performance.now() - this.#began)
  }

  name(kind: 'empty' | 'duplicates', id: string): void {
    if (this[kind].size < MOST_NAMES) this[kind].add(id)
  }

  progress(): PipelineProgress {
    const { found, isScanned, successful, skipped, elsewhere, active, chunks } = this
    const failed = this.failures.size
    const worked = successful + failed
    const left = found - skipped - elsewhere - worked
    const seconds = Math.max(this.ms, 1) / 1000
    return {
      found,
      isScanned,
      successful,
      skipped,
      elsewhere,
      failed,
      active,
      chunks,
      chunksPerSecond: chunks / seconds,
      remainingMs: isScanned && worked > 0 ? Math.max(0, Math.round((this.ms / worked) * left)) : undefined,
    }
  }

  report(status: PipelineReport['status'], missing: readonly string[]): PipelineReport {
    const { successful, resumed, skipped, elsewhere, removed, expired, chunks, tokens, ms } = this
    return {
      status,
      successful,
      resumed,
      skipped,
      elsewhere,
      failed: this.failures.size,
      removed,
      expired,
      chunks,
      tokens,
      ms,
      failures: [...this.failures].map(([document, error]) => ({ document, error })),
      missing,
      empty: [...this.empty],
      duplicates: [...this.duplicates],
    }
  }
}
