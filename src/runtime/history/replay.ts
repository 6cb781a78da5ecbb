import { isDeepStrictEqual } from 'node:util'
import type { Value } from '../../codec/value.js'
import type { LogKey } from '../../log/contract.js'
import type { Log } from '../../log/log.js'
import { isHoldfastError, NotFoundError } from '../../core/errors.js'
import { ReplayGapError, ReplayOrderError, recordError } from '../errors.js'
import type { FlowPlan, ProgramPlan } from '../program/program.js'
import { contextFor } from '../run/request/run-context.js'
import { collectRecords, lineage, type Records } from '../run/record/records.js'
import { ReplayScript } from './replay-script.js'
import { RunLog } from '../run/record/run-log.js'
import { Unrecorded } from '../run/record/run-claim.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { replayGraph } from './replay-graph.js'
import type { PauseRecord, RunRecord, RunState } from '../run/state/run-state.js'
import { Run } from '../run/run.js'
import { LazyAbort } from '../../core/async/lazy-abort.js'

/** Where the current program would have taken a different path than the recorded one. */
export interface ReplayDifference {
  readonly step: string
  readonly checkpoint?: string
  readonly what: 'route' | 'state' | 'missing-node' | 'step' | 'output'
  readonly message: string
  readonly recorded?: Value
  readonly now?: Value
}

/** Records of another version of the state than the current program's, and how far it was compared with them. */
export interface OtherVersionRecords {
  /** The graph whose state it is: the program's own, or a subgraph. */
  readonly graph: string
  readonly stateVersion: number
  /** How many recorded steps. */
  readonly steps: number
  /**
   * 'routes': where the graph goes from the migrated state, but not its reducers, and not what it makes of input.
   * 'nothing': no migration leads to the current version, see `reason`.
   */
  readonly compared: 'routes' | 'nothing'
  readonly reason?: string
}

/** The result of replaying the records with the current program. */
export interface ReplayReport {
  /** 'incomplete': the record ends before the run does; up to there everything is the same. */
  readonly status: 'identical' | 'incomplete' | 'differs'
  /** How many recorded steps were replayed. */
  readonly steps: number
  /** The state at the end of the record, from the records alone. */
  readonly state: Readonly<Record<string, Value>>
  readonly output?: Value
  readonly difference?: ReplayDifference
  /** What could be compared only in part or not at all; absent if there is no such record. */
  readonly otherVersions?: readonly OtherVersionRecords[]
  /** Why a replay did not get as far as the run did. */
  readonly message?: string
}

/**
 * Replays the last run of a log from its records alone: calls no node and no step. A graph's routes and reducers, and a
 * flow's own code between its steps, are the current ones; the first place where they lead elsewhere is reported.
 */
export async function replayRun(environment: RuntimeEnvironment, log: Log, plan: ProgramPlan): Promise<ReplayReport> {
  const { run, state = {} } = log.fold.state as RunState
  if (run === undefined) {
    throw new NotFoundError(`Thread ${log.key.thread} has no run to replay.`, 'Run it first.', {
      thread: log.key.thread,
    })
  }
  if (plan.kind === 'flow') return replayFlow(environment, log, plan, run)
  return replayGraph(log, plan, state)
}

async function replayFlow(
  environment: RuntimeEnvironment,
  log: Log,
  plan: FlowPlan,
  run: RunRecord,
): Promise<ReplayReport> {
  const state = ((log.fold.state as RunState).state ?? {}) as Readonly<Record<string, Value>>
  const records = await collectRecords(await lineage(environment.logs, log, run.id), run.id)
  if (records.begun === undefined) {
    return { status: 'incomplete', steps: 0, state, message: 'The beginning of this run is no longer kept.' }
  }
  const script = new ReplayScript(records, run.status === 'completed')
  const claim = new Unrecorded({ ...log.fold, state: replayed(records, run) as never }, true)
  const replayLog = new RunLog(claim, { frequency: 'step', durability: 'sync' }, () => {})
  const driven = await replayOf(environment, log.key, replayLog, script).drive(plan)
  script.end()
  const report = { steps: script.steps, state }
  if (driven.status === 'failed') return failedReplay(report, driven.error, run)
  if (driven.status === 'suspended') return suspendedReplay(report, run, script, records, newPause(replayLog, records))
  const output = driven.output as Value | undefined
  if (run.status === 'completed' && isDeepStrictEqual(output, run.output)) {
    return { ...report, status: 'identical', ...(output === undefined ? {} : { output }) }
  }
  const message =
    run.status === 'completed' ? 'The output differs.' : 'The run is not recorded as completed, but ends now.'
  const difference = {
    step: 'the end',
    what: 'output' as const,
    message,
    ...(run.output === undefined ? {} : { recorded: run.output }),
    ...(output === undefined ? {} : { now: output }),
  }
  return { ...report, status: 'differs', difference }
}

/** The run as if it were in progress, with everything it ever recorded available. */
function replayed({ steps, pauses, begun }: Records, run: RunRecord): RunState {
  const { output: _, error: __, ...rest } = run
  const input = begun?.input
  return {
    run: {
      ...rest,
      status: 'running',
      ...(input === undefined ? {} : { input }),
      ...(begun?.context === undefined ? {} : { context: begun.context }),
    },
    steps: Object.fromEntries(steps),
    pauses: Object.fromEntries([...pauses].map(([id, pause]) => [id, { ...pause, used: true }])),
  }
}

function replayOf(environment: RuntimeEnvironment, key: LogKey, log: RunLog, replay: ReplayScript): Run {
  return new Run(environment, key, log, {
    context: contextFor(log.state.run ?? {}, undefined, false),
    abort: new LazyAbort(),
    emit: () => {},
    inlineSleepMs: 0,
    replay,
  })
}

/** A question that the current program asks and the record does not know. */
function newPause({ state }: RunLog, { pauses }: Records): string | undefined {
  return Object.values(state.pauses ?? {}).find(({ id }) => !pauses.has(id))?.path
}

type Gone = Pick<ReplayReport, 'steps' | 'state'>

function failedReplay(report: Gone, error: unknown, run: RunRecord): ReplayReport {
  if (error instanceof ReplayGapError) {
    const message = `Step "${error.step}" is not recorded: the current program takes a different path.`
    return { ...report, status: 'differs', difference: { step: error.step, what: 'step', message } }
  }
  if (error instanceof ReplayOrderError) {
    return { ...report, status: 'differs', difference: { step: error.step, what: 'step', message: error.message } }
  }
  if (run.status === 'failed' && run.error?.message === recordError(error).message)
    return { ...report, status: 'identical' }
  const at = isHoldfastError(error) && typeof error.data['step'] === 'string' ? error.data['step'] : 'the program'
  return { ...report, status: 'differs', difference: { step: at, what: 'step', message: recordError(error).message } }
}

/** The step that waits for a person to decide about its effect. */
function askingStep({ path, kind }: PauseRecord): string {
  return path.endsWith(` ${kind}`) ? path.slice(0, -kind.length - 1) : path
}

/** The current program has nothing left to do but wait: correct, if the record goes no further. */
function suspendedReplay(
  report: Gone,
  run: RunRecord,
  { gaps, unasked }: ReplayScript,
  { steps, pauses }: Records,
  pause: string | undefined,
): ReplayReport {
  const waits = run.waiting && [...run.waiting.map(({ step }) => step), ...[...pauses.values()].map(askingStep)]
  const gap = gaps.find((path) => !steps.has(path) && !waits?.includes(path))
  // A run at rest has ended for now: if the current program would do anything else, that is a difference.
  const news = waits === undefined ? undefined : (gap ?? pause)
  if (run.status !== 'completed' && unasked === undefined && news === undefined)
    return { ...report, status: 'incomplete' }
  const step = gap ?? pause ?? unasked ?? 'a wait'
  const next = unasked === undefined ? 'The record does not' : `The record continues with "${unasked}"`
  const message = `The current program waits at "${step}". ${next}.`
  return { ...report, status: 'differs', difference: { step, what: 'step', message } }
}
