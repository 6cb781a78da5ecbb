/**
 * Everything that is counted and measured. The names are those of the OpenTelemetry instruments, of what processes
 * report to the store, and of `holdfast stats`: they are a contract.
 */

/** Milliseconds: six bounds per decade, so that a quantile is at most two thirds too high. */
const DURATIONS = [
  0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700,
  1000, 1500, 2000, 3000, 5000, 7000, 10_000, 30_000,
] as const

/** Milliseconds, for what may take until somebody looks again. */
const WAITS = [
  10, 20, 50, 100, 200, 300, 500, 700, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 7000, 10_000, 11_000, 12_000, 15_000,
  20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 3_600_000,
] as const

const BYTES = [
  64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768,
  65_536, 131_072, 262_144, 524_288, 1_048_576, 4_194_304, 16_777_216,
] as const

interface Named {
  /** As UCUM writes it. */
  readonly unit: string
  readonly description: string
}

export const COUNTERS = {
  'holdfast.conflicts': { unit: '{conflict}', description: 'Appends that lost to another writer.' },
  'holdfast.cache.hits': { unit: '{load}', description: 'Loads for which the cache had something.' },
  'holdfast.cache.misses': { unit: '{load}', description: 'Loads for which the cache had nothing.' },
  'holdfast.cache.outdated': { unit: '{load}', description: 'Loads from the cache that were not the newest.' },
  'holdfast.runs.started': { unit: '{run}', description: 'Runs started.' },
  'holdfast.runs.completed': { unit: '{run}', description: 'Runs that completed.' },
  'holdfast.runs.limited': { unit: '{run}', description: 'Runs that a limit of their program ended.' },
  'holdfast.runs.failed': { unit: '{run}', description: 'Runs that failed, fit no program, or were parked.' },
  'holdfast.runs.cancelled': { unit: '{run}', description: 'Runs that were cancelled.' },
  'holdfast.runs.paused': {
    unit: '{run}',
    description: 'Times a run started waiting for a person, a signal or a point in time.',
  },
  'holdfast.resume.attempts': { unit: '{resume}', description: 'Unfinished runs that were resumed.' },
  'holdfast.resume.succeeded': { unit: '{resume}', description: 'Of those, the ones that ended well or paused.' },
  'holdfast.takeovers': { unit: '{takeover}', description: 'Threads taken from a worker that vanished.' },
  'holdfast.leases.lost': {
    unit: '{lease}',
    description: 'Runs given up because another had taken the thread, or the store did not answer in time.',
  },
  'holdfast.retries': { unit: '{retry}', description: 'Attempts at a step or a model call after one that failed.' },
  'holdfast.effects.unknown': { unit: '{effect}', description: 'Effects where nobody knew whether they happened.' },
  'holdfast.tokens.input': { unit: '{token}', description: 'Tokens sent to models, cached ones included.' },
  'holdfast.tokens.output': { unit: '{token}', description: 'Tokens that models wrote.' },
  'holdfast.tokens.cached': { unit: '{token}', description: 'Input tokens that the provider had cached.' },
  'holdfast.tokens.saved': {
    unit: '{token}',
    description: 'Tokens of recorded calls that a resumed run did not repeat.',
  },
  'holdfast.cost': { unit: '{cost}', description: 'What model calls cost by the prices of their agents.' },
} as const satisfies Readonly<Record<string, Named>>

export const HISTOGRAMS = {
  'holdfast.checkpoint.save.duration': {
    unit: 'ms',
    description: 'From deciding on an append to its acknowledgment.',
    bounds: DURATIONS,
  },
  'holdfast.checkpoint.load.duration': {
    unit: 'ms',
    description: 'Reading and verifying the state of a thread.',
    bounds: DURATIONS,
  },
  'holdfast.checkpoint.bytes': { unit: 'By', description: 'Stored bytes of an entry.', bounds: BYTES },
  'holdfast.takeover.duration': {
    unit: 'ms',
    description: 'From the newest entry of a thread whose worker vanished to its takeover.',
    bounds: WAITS,
  },
  'holdfast.queue.duration': {
    unit: 'ms',
    description: 'How long a thread was due until a worker took it.',
    bounds: WAITS,
  },
} as const satisfies Readonly<Record<string, Named & { readonly bounds: readonly number[] }>>

export type CounterName = keyof typeof COUNTERS
export type HistogramName = keyof typeof HISTOGRAMS

export const COUNTER_NAMES = Object.keys(COUNTERS) as readonly CounterName[]
export const HISTOGRAM_NAMES = Object.keys(HISTOGRAMS) as readonly HistogramName[]
