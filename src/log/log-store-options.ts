import { type Limits, parseLimits } from '../codec/limits.js'
import type { Redact } from '../codec/secret/redactor.js'
import { describeGiven } from '../core/wording/choices.js'
import type { Clock } from '../core/time/clock.js'
import { InvalidOptionError } from '../core/errors.js'
import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import type { StoreRetention } from '../core/retention.js'
import type { Observer } from '../telemetry/observer.js'
import type { KeyOptions } from './keys/key-options.js'
import { type Anchors, checkAnchors } from './anchors/anchors.js'
import { DEFAULT_BLOB_THRESHOLD } from './read/blob-shelf.js'

/** Settings that apply to every backend. */
export interface LogStoreOptions {
  readonly clock?: Clock
  readonly limits?: Partial<Limits>
  /** Values whose JSON is at least this long are stored as blobs. */
  readonly blobThreshold?: number
  /** Authenticates and encrypts what is stored. Without it, damage is detected but forgery is not. */
  readonly keys?: KeyOptions
  /**
   * How much of the threads that ran here is kept in memory, as JSON including large values, so that their next run
   * reads only what is new. Text takes about as much memory as its JSON, small objects several times as much. Default
   * 32 MB; 0 keeps nothing.
   */
  readonly cacheBytes?: number
  /** How long a write, including the reads it needs, is retried while the backend does not answer. Default 30 s. */
  readonly retryMs?: number
  /**
   * Where to record what the store holds, so that a rollback to an older state is noticed: `fileAnchors(path)`, or two
   * functions of your own.
   */
  readonly anchors?: Anchors
  /**
   * Sees every text before it is written, and removes what must not be kept: from inputs, results, states, messages,
   * questions, answers, signals, errors, items and spans. Programs see what it returns, both immediately and after a
   * resume.
   */
  readonly redact?: Redact
  /**
   * How long threads are kept, and which parts of them. By default a thread that was started under this policy expires
   * 7 days after its last use, a document of a pipeline after 30; never while something in it is open. `'keep'` keeps
   * everything.
   */
  readonly retention?: StoreRetention
  /** For tests that must be exactly repeatable. */
  readonly randomId?: () => string
  /** Told what happens. `openHoldfast` creates one from its option `telemetry`. */
  readonly observer?: Observer
}

export const LOG_STORE_OPTIONS: OptionNames<LogStoreOptions> = {
  clock: true,
  limits: true,
  blobThreshold: true,
  keys: true,
  cacheBytes: true,
  retryMs: true,
  anchors: true,
  redact: true,
  retention: true,
  randomId: true,
  observer: true,
}

const DEFAULT_CACHE_BYTES = 32 * 1024 * 1024

/** What the options say, checked, with the defaults filled in. */
export function readOptions(options: LogStoreOptions) {
  checkOptionNames('LogStore', options, LOG_STORE_OPTIONS)
  const { retryMs = 30_000, blobThreshold = DEFAULT_BLOB_THRESHOLD, cacheBytes = DEFAULT_CACHE_BYTES } = options
  checkLeast('blobThreshold', blobThreshold, '1024 or more', 1024, 'Pass a number of bytes.')
  checkLeast('cacheBytes', cacheBytes, 'a number of bytes, 0 or more', 0, 'Pass for example 64 * 1024 * 1024.')
  checkLeast('retryMs', retryMs, 'a number of milliseconds, 0 or more', 0, 'Pass for example 10_000.')
  if (options.anchors !== undefined) checkAnchors(options.anchors)
  return { retryMs, blobThreshold, cacheBytes, limits: parseLimits(options.limits) }
}

function checkLeast(field: string, value: number, what: string, least: number, remedy: string): void {
  if (!(value >= least)) throw new InvalidOptionError(field, `must be ${what}, not ${describeGiven(value)}`, remedy)
}
