import { inspect } from 'node:util'
import { cloneValue } from '../../../codec/clone.js'
import type { Value } from '../../../codec/value.js'
import { threadIdInput, type ThreadIdInput } from '../../../core/ids.js'
import { lazyFields, withLazyFields } from '../../../core/lazy-fields.js'
import { formatCheckpointId } from '../../../log/entry/checkpoint-id.js'
import { DUE, type LogKey } from '../../../log/contract.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { RecordedError } from '../../errors.js'
import type { ProgramPlan } from '../../program/program.js'
import { openPauses } from './read-run-state.js'
import type { PauseRecord, RunRecord, RunState, Waiting } from './run-state.js'

/** A question that is waiting for an answer. */
export interface OpenPause {
  readonly id: string
  readonly kind: PauseRecord['kind']
  /** The step that asks. */
  readonly step: string
  readonly question: Value
  /** The JSON Schema of a valid answer. */
  readonly schema?: Value
  readonly askedAt: Date
  readonly expiresAt?: Date
  /** Set if someone postponed the question. It can still be answered. */
  readonly deferred?: { readonly until: Date; readonly at: Date; readonly by?: string }
  /**
   * Why the last answer was not accepted, and who gave it: it matched the schema, but failed the program's own check.
   */
  readonly refused?: { readonly reason: string; readonly at: Date; readonly by?: string }
}

/**
 * What happened to the input that was given.
 * - `taken`: its run has started, now or earlier, and this outcome is of that run.
 * - `queued`: it is recorded and its turn comes later; this outcome is of the run before it. Don't send it again.
 * - `refused`: none of it is kept; this outcome is of what is in its way. Send it again when that is over.
 */
export type InputFate = 'taken' | 'queued' | 'refused'

interface OutcomeBase<State> {
  readonly thread: ThreadIdInput
  readonly branch: string
  /** The id of the run. */
  readonly run: string
  /** The newest checkpoint; undefined if nothing is kept. */
  readonly checkpoint: string | undefined
  readonly state: State
  /** What happened to the input that was given; absent if none was. */
  readonly input?: InputFate
  /** How often the run was resumed: after a pause, a failure, or a process that died. 0: it ran straight through. */
  readonly resumed: number
  /** True if expected history is gone and the thread started over. */
  readonly restarted: boolean
  /** For the end user, if there is something they should know. */
  readonly message?: string
}

export interface CompletedOutcome<State, Output> extends OutcomeBase<State> {
  readonly status: 'completed'
  readonly output: Output
}

/**
 * A limit of the program ended the run before it was done, such as an agent's `maxTurns` or `budget`. The run is over
 * and the thread accepts new input.
 */
export interface LimitedOutcome<State, Output> extends OutcomeBase<State> {
  readonly status: 'limited'
  /** Which limit: 'max-turns', 'token-budget' or 'cost-budget' of an agent. */
  readonly limit: string
  /** The limit in words. */
  readonly reason: string
  /** What the program had produced by then. */
  readonly output: Output
}

export interface PausedOutcome<State> extends OutcomeBase<State> {
  readonly status: 'paused'
  /** Open questions. Empty if the run is only sleeping or waiting for a signal. */
  readonly pauses: readonly OpenPause[]
  readonly waiting: readonly Waiting[]
  /** When a worker will look again by itself. */
  readonly wakeAt?: Date
}

export interface FailedOutcome<State> extends OutcomeBase<State> {
  readonly status: 'failed'
  readonly error: RecordedError
  /** False after a cancellation: the run is over, and the thread accepts new input. */
  readonly canResume: boolean
  /** Questions that can still be answered. */
  readonly pauses: readonly OpenPause[]
}

export interface IncompatibleOutcome<State> extends OutcomeBase<State> {
  readonly status: 'incompatible'
  readonly canResume: false
  readonly reason: string
  readonly remedy: string
}

export interface BusyOutcome<State> extends OutcomeBase<State> {
  readonly status: 'busy'
  readonly owner: string
  readonly remainingMs: number
}

/** The input was run earlier and its run is over, but the entry with its outcome was pruned. It does not run again. */
export interface PrunedOutcome<State> extends OutcomeBase<State> {
  readonly status: 'pruned'
  /** How the run ended, if that is still known. */
  readonly ended?: 'completed' | 'cancelled'
}

/** How a run ended, or why it did not start. */
export type Outcome<State = Readonly<Record<string, Value>>, Output = State> =
  | CompletedOutcome<State, Output>
  | LimitedOutcome<State, Output>
  | PausedOutcome<State>
  | FailedOutcome<State>
  | IncompatibleOutcome<State>
  | BusyOutcome<State>
  | PrunedOutcome<State>

export interface Restart {
  readonly restarted: boolean
  readonly message?: string
}

/** The state that an outcome was read from. */
const originals = new WeakMap<object, Readonly<Record<string, Value>>>()

/**
 * The caller's own copy of a state, because the log continues from what it has. Made when it is asked for: most callers
 * of a long conversation want the answer, and copying the rest costs more than a step.
 */
class CopyOnDemand {
  readonly #original: Readonly<Record<string, Value>>
  #copy: Readonly<Record<string, Value>> | undefined

  constructor(original: Readonly<Record<string, Value>>) {
    this.#original = original
  }

  get state(): Readonly<Record<string, Value>> {
    this.#copy ??= cloneValue(this.#original)
    return this.#copy
  }
}

/** What a log says about its last run. */
export function readOutcome(log: LogKey, fold: Fold, restart: Restart = { restarted: false }): Outcome {
  const state = fold.state as RunState
  const { run } = state
  const base = outcomeBase(log, fold, restart)
  if (state.parked) {
    return withFields(base, {
      status: 'failed',
      error: state.parked,
      canResume: true,
      pauses: describePauses(state),
    })
  }
  switch (run?.status) {
    case 'completed': {
      const ended = run.limit ? ({ ...run.limit, status: 'limited' } as const) : ({ status: 'completed' } as const)
      const output = cloneValue(run.output)
      if (output !== undefined || isFlow(run)) return withFields(base, { ...ended, output: output as never })
      return Object.defineProperty(withFields(base, ended), 'output', STATE_AS_OUTPUT) as Outcome
    }
    case 'failed':
    case 'cancelled': {
      const error = run.error ?? { name: 'Error', message: 'The run failed.' }
      const canResume = run.status === 'failed'
      return withFields(base, { status: 'failed', error, canResume, pauses: describePauses(state) })
    }
    case 'incompatible':
      return incompatible(base, run.error?.message ?? 'The run does not fit the program.')
    default:
      return withFields(base, {
        status: 'paused',
        pauses: describePauses(state),
        waiting: run?.waiting ?? [],
        ...(fold.index.wakeAt === null
          ? {}
          : { wakeAt: new Date(fold.index.wakeAt === DUE ? fold.at : fold.index.wakeAt) }),
      })
  }
}

/** Says more about an outcome that was just read: spread, it would copy the state. */
export function withFields<Base extends object, const Fields extends object>(
  base: Base,
  fields: Fields,
): Base & Fields {
  return Object.assign(base, fields)
}

/** A graph that names no output gives its state. */
const STATE_AS_OUTPUT: PropertyDescriptor & ThisType<OutcomeBase<unknown>> = {
  get() {
    return this.state
  },
  set(value: unknown) {
    Object.defineProperty(this, 'output', { value, writable: true, enumerable: true, configurable: true })
  },
  enumerable: true,
  configurable: true,
}

/** What is left to say about an input whose outcome was pruned: the state is the thread's newest. */
export function prunedOutcome(
  log: LogKey,
  fold: Fold,
  ended: PrunedOutcome<unknown>['ended'],
  restart: Restart,
): Outcome {
  const known = ended === undefined ? {} : { ended }
  return { ...outcomeBase(log, fold, restart), run: '', status: 'pruned', input: 'taken', ...known }
}

// For whoever talks to the agent: what is wrong, and how to fix it, is not for them.
const ANOTHER_VERSION =
  'This conversation was started with another version of this service and can’t be continued right now. None of it is lost. Please try again later, or start a new one.'

export function incompatible(
  base: OutcomeBase<Readonly<Record<string, Value>>>,
  reason: string,
  remedy?: string,
): Outcome {
  return {
    ...base,
    status: 'incompatible',
    canResume: false,
    message: base.message ?? ANOTHER_VERSION,
    reason,
    remedy: remedy ?? 'Run the thread with the version of the program that began it, or cancel the run and start over.',
  }
}

export function outcomeBase(log: LogKey, fold: Fold, restart: Restart): OutcomeBase<Readonly<Record<string, Value>>> {
  const { state = {}, run } = fold.state as RunState
  const base = {
    thread: threadIdInput(log.thread),
    branch: log.branch,
    run: run?.id ?? '',
    resumed: Math.max(0, (run?.takes ?? 1) - 1),
    checkpoint: fold.seq < 0 ? undefined : formatCheckpointId(log.branch, fold.seq, fold.hash),
  }
  const whole: OutcomeBase<Readonly<Record<string, Value>>> = withFields(
    withLazyFields(base, new CopyOnDemand(state), STATE),
    restart,
  )
  originals.set(whole, state)
  // Printed like any other object.
  return Object.defineProperty(whole, inspect.custom, { value: shown })
}

const STATE = lazyFields(['state'], true)

function shown(this: object): object {
  return { ...this }
}

export function describePauses(state: RunState): readonly OpenPause[] {
  return openPauses(state).map(({ id, kind, path, question, schema, askedAt, expiresAt, deferred, refused }) => ({
    id,
    kind,
    step: path,
    question: cloneValue(question),
    askedAt: new Date(askedAt),
    ...(schema === undefined ? {} : { schema: cloneValue(schema) }),
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt) }),
    ...(refused === undefined ? {} : { refused: { ...refused, at: new Date(refused.at) } }),
    ...(deferred === undefined
      ? {}
      : { deferred: { ...deferred, until: new Date(deferred.until), at: new Date(deferred.at) } }),
  }))
}

function isFlow(run: RunRecord): boolean {
  return run.kind === 'flow'
}

/** The state of an outcome for those who only look at it: the log's own where it can be, not a copy. */
export function seenState(outcome: Outcome): Readonly<Record<string, Value>> {
  return originals.get(outcome) ?? outcome.state
}

/** The outcome with the output that this program makes of its state, where it does: an agent's is what it said. */
export function withOutput(plan: ProgramPlan, outcome: Outcome): Outcome {
  if (outcome.status !== 'completed' && outcome.status !== 'limited') return outcome
  if (plan.kind !== 'graph' || plan.output === undefined) return outcome
  const output = plan.output(seenState(outcome))
  return withFields(outcome, { output: cloneValue(output as Value) as never })
}
