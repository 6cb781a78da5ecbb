import type { ThreadIdInput } from './ids.js'
import type { ErrorCode, HoldfastError, ModelFailureKind } from './errors.js'

/**
 * What code can rely on in an error's `data`, for each code that promises something. There may be more in it, for
 * people to read; codes that are not listed promise nothing.
 */
export interface ErrorData {
  /** For a write to the store with `expect`: the current version, `null` if there is none. */
  readonly conflict: { readonly key?: string; readonly version?: string | null }
  readonly fenced: { readonly log: string; readonly epoch: number; readonly current: number }
  readonly held: { readonly log: string; readonly owner: string; readonly remainingMs: number }
  /** The newest checkpoint that verifies. */
  readonly corrupt: { readonly lastGood?: string | undefined }
  readonly 'missing-dependency': { readonly package: string; readonly install: string }
  readonly 'invalid-id': { readonly field: string }
  /** Its path in the value: `$.items[3].price`. */
  readonly 'invalid-value': { readonly path?: string }
  readonly 'invalid-option': { readonly field: string }
  readonly 'invalid-program': { readonly field: string }
  readonly 'too-large': { readonly field: string; readonly limit: number; readonly actual?: number | undefined }
  readonly 'schema-too-new': { readonly found: number; readonly supported: number }
  readonly incompatible: { readonly reason: string }
  readonly storage: { readonly reason: string; readonly written: 'nothing' | 'unknown' }
  readonly unavailable: { readonly written: 'nothing' | 'unknown' }
  readonly transaction: { readonly reason: 'timeout' | 'statement' | 'forbidden' | 'ended' }
  /** The names of what is missing; 'context' for all of it. */
  readonly 'missing-context': { readonly thread: string; readonly missing: readonly string[] }
  readonly timeout: { readonly step?: string }
  readonly 'step-failed': { readonly step?: string }
  readonly 'effect-unknown': { readonly step: string }
  /**
   * `thread`: which child. 'busy': the thread that was named for it has other work; 'gone': what came of it was pruned.
   */
  readonly 'child-failed': {
    readonly step: string
    readonly thread: ThreadIdInput
    readonly run: string
    readonly status: 'failed' | 'cancelled' | 'limited' | 'incompatible' | 'busy' | 'gone'
    readonly reason?: string
    readonly done?: unknown
  }
  /** `by` and `at` (milliseconds since 1970): who closed the question, and when. */
  readonly 'pause-closed': {
    readonly pause: string
    readonly reason: 'answered' | 'expired' | 'superseded' | 'cancelled'
    readonly by?: string | null
    readonly at?: number
  }
  /** `retryAfterMs`: how long the provider asks to wait, if that was too long to wait for. */
  readonly model: { readonly kind: ModelFailureKind; readonly status?: number; readonly retryAfterMs?: number }
}

/** An error with this code, with `data` typed accordingly. */
export type ErrorWithCode<Code extends ErrorCode> = HoldfastError & {
  readonly code: Code
  readonly data: Code extends keyof ErrorData ? ErrorData[Code] : unknown
}
