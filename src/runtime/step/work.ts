import type { Value } from '../../codec/value.js'
import type { Path } from '../../log/entry/ops.js'
import type { StoreWrite } from '../../log/items/store-write.js'
import type { SpanPlan } from '../../telemetry/observer.js'
import type { Seen } from '../run/record/records.js'
import type { LazyAbort } from '../../core/async/lazy-abort.js'
import type { Attempt } from './attempt/call-work.js'
import type { StepPolicy } from './context.js'

/** One piece of work with its policy, and where its record is. */
export interface Work {
  readonly path: string
  readonly at: Path
  readonly policy: StepPolicy
  readonly input: unknown
  readonly inputHash: () => string
  readonly idempotencyKey?: string | undefined
  readonly run: (attempt: Attempt) => unknown
  /** The form in which its result is recorded. Default: that of any value. */
  readonly keep?: ((result: unknown) => unknown) | undefined
  /** For a node: what it was given and has begun, which decides whether a recorded read is still valid. */
  readonly sees?: (Seen & { isUnderWay(): boolean }) | undefined
  /** On a fork: everything the function has received is the same as on the branch it came from. */
  readonly isSamePast?: boolean
  /** Where in its function it was asked for, for its record. */
  readonly after?: (() => string) | undefined
  /** Since when someone before us may have begun it without a record; undefined if nobody can have. */
  readonly openSince: number | undefined
  /** Aborted when the activation was left hanging: the work is neither retried nor timed anymore. */
  readonly left?: LazyAbort | undefined
  /**
   * For a step inside a node with a time limit: the node's attempt. When that ends the step does, as in a crash; the
   * node's next attempt resolves its outcome.
   */
  readonly outer?: AbortSignal | undefined
  /** Asks a person; never resolves while there is no answer, and asks again where `refuse` says why it can't be used. */
  readonly ask: (
    kind: 'unknown-effect' | 'permission',
    question: unknown,
    schema: Value,
    refuse?: (answer: unknown) => Promise<string | undefined>,
  ) => Promise<unknown>
  /** The span of an attempt, where it is another than that of a step. */
  readonly span?: (() => SpanPlan | undefined) | undefined
  /** Takes back the question about an effect's outcome. */
  readonly unask: () => void
}

/** What the work of a node has beyond that of a step. */
export type OwnWork = Pick<Work, 'ask' | 'keep' | 'sees' | 'span'>

/** What came of it. */
export interface Performed {
  readonly result: Value | undefined
  readonly writes: readonly StoreWrite[]
  readonly attempts: number
  readonly ms: number
}
