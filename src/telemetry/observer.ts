import type { CounterName, HistogramName } from './names.js'
import type { Attributes } from './otel-api.js'
import type { ModelTokens, ProcessMetrics } from './process-metrics.js'

/**
 * What the log, the runtime and the agent report about what they do. None of it may fail, wait, or cost a round trip.
 */
export interface Observer {
  count(name: CounterName, by?: number): void
  record(name: HistogramName, value: number): void
  /** A run begins here, or is resumed. */
  run(run: ObservedRun): RunObserver
  /** What was counted so far. Absent if nothing is. */
  snapshot?(): Pick<ProcessMetrics, 'counters' | 'histograms' | 'models'>
  /** Passes on what was counted so far. Never rejects. */
  flush(): Promise<void>
  /** Passes on the rest: called before the store closes. Never rejects, and does not take long. */
  close(): Promise<void>
}

export interface ObservedRun {
  readonly tenant: string
  readonly thread: string
  readonly branch: string
  readonly run: string
  readonly program: string
  readonly version: string
  readonly kind: 'agent' | 'graph' | 'flow'
  /** How often it was picked up, including this time. */
  readonly attempt: number
  /** It was begun earlier, here or by another process. */
  readonly resumed: boolean
  /** The `trace` of its beginning, if that was kept. */
  readonly begunIn: string | undefined
}

export type RunEnd =
  | 'completed'
  /** A limit of the program ended it. */
  | 'limited'
  | 'failed'
  | 'incompatible'
  | 'cancelled'
  | 'paused'
  /** Told to stop; it continues elsewhere. */
  | 'stopped'
  /** It can't say how it ended: another process took over, or the store is down. */
  | 'lost'

/** One run, as long as one process drives it. */
export interface RunObserver extends Pick<Observer, 'count'> {
  /** Identifies the span of this run, to be kept in its record; undefined if nobody traces. */
  readonly trace: string | undefined
  /** Runs the program so that its own spans are below the run's. */
  within<Result>(work: () => Result): Result
  /**
   * One attempt at a step, with a span of this plan if there is one; an undefined plan means no span. `isLeft`: whether
   * work that rejects did so because the run was stopped or waits, and did not fail.
   */
  step<Result>(
    path: string,
    attempt: number,
    work: () => Result | Promise<Result>,
    plan?: () => SpanPlan | undefined,
    isLeft?: () => boolean,
  ): Result | Promise<Result>
  /** Something that has its own span, such as a model call. */
  span<Result>(plan: SpanPlan, work: (span: OpenSpan) => Promise<Result>): Promise<Result>
  /** An attempt failed and another follows. */
  retried(step: string, attempt: number, error: { readonly name: string; readonly message: string }): void
  /** A model call that has ended. */
  usage(call: ModelCall): void
  ended(end: RunEnd, error?: unknown): void
}

export interface SpanPlan {
  readonly name: string
  readonly kind: 'internal' | 'client'
  readonly attributes: Attributes
  /** For the conventions' histogram of durations, if it belongs there. */
  readonly measured?: Attributes
  /** As in `step`. Default: by the error. */
  readonly isLeft?: (() => boolean) | undefined
  /** What people said and models wrote, before the work and after it: requested only if it is to be kept. */
  content?(): Attributes
  result?(result: unknown): Attributes
}

export interface OpenSpan {
  set(attributes: Attributes): void
  /** As `content` of the plan, for what is only known later. */
  content(attributes: () => Attributes): void
}

export interface ModelCall extends ModelTokens {
  readonly provider: string
  readonly model: string
  /** What answered, if it named itself. */
  readonly actual: string | undefined
  /** According to the agent's prices; null if it has none for the model. */
  readonly cost: number | null
}

export const NO_SPAN: OpenSpan = { set() {}, content() {} }

/** For runs that nobody watches. */
export const UNWATCHED: RunObserver = {
  trace: undefined,
  count() {},
  within: (work) => work(),
  step: (_path, _attempt, work) => work(),
  span: (_plan, work) => work(NO_SPAN),
  retried() {},
  usage() {},
  ended() {},
}

/** For stores that nobody watches. */
export const NO_OBSERVER: Observer = {
  count() {},
  record() {},
  run: () => UNWATCHED,
  async flush() {},
  async close() {},
}
