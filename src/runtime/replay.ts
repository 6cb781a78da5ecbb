import { isDeepStrictEqual } from 'node:util'
import type { Value } from '../codec/value.js'
import type { Log } from '../log/log.js'
import { formatCheckpointId } from '../log/checkpoint-id.js'
import { applyOp, type Op, type State } from '../log/ops.js'
import { isHoldfastError, NotFoundError } from '../core/errors.js'
import { ReplayGapError, recordError } from './errors.js'
import { driveFlow } from './flow-engine.js'
import { firstKept } from './follow-events.js'
import { nameTasks } from './graph-engine.js'
import type { FlowPlan, GraphPlan, NodePlan, ProgramPlan } from './program.js'
import { collectRecords } from './records.js'
import { ViewRecorder } from './recorder.js'
import type { RuntimeEnvironment } from './run-thread.js'
import { type Prefix, type RunRecord, type RunState, scopeAt, type TaskRecord } from './run-state.js'
import { Session } from './session.js'
import type { Update } from './state-shape.js'

/** Where today's program would have gone another way than is recorded. */
export interface ReplayDifference {
  readonly step: string
  readonly checkpoint?: string
  readonly what: 'route' | 'state' | 'missing-node' | 'step' | 'output'
  readonly message: string
  readonly recorded?: Value
  readonly now?: Value
}

export interface ReplayReport {
  /** 'incomplete': the record ends before the run does; up to there all is the same. */
  readonly status: 'identical' | 'incomplete' | 'differs'
  /** How many recorded steps were gone through. */
  readonly steps: number
  /** The state at the end of the record, from the records alone. */
  readonly state: Readonly<Record<string, Value>>
  readonly output?: Value
  readonly difference?: ReplayDifference
}

/**
 * Goes through the last run of a log from its records alone: calls no node and no step. A graph's routes and reducers,
 * and a flow's own code between its steps, are today's; the first place where they lead elsewhere is reported.
 */
export async function replayRun(environment: RuntimeEnvironment, log: Log, plan: ProgramPlan): Promise<ReplayReport> {
  const { run, state = {} } = log.fold.state as RunState
  if (run === undefined) {
    throw new NotFoundError(`Thread ${log.key.thread} has no run to replay.`, 'Run it first.', {
      thread: log.key.thread,
    })
  }
  const oldest = await firstKept(log)
  if (plan.kind === 'flow') return replayFlow(environment, log, plan, run, oldest)
  return replayGraph(log, plan, oldest, state)
}

async function replayGraph(log: Log, plan: GraphPlan, oldest: number, state: State): Promise<ReplayReport> {
  const walk = new GraphWalk(plan)
  for await (const { body, fold, header, hash } of log.entries(oldest)) {
    const difference = await walk.take(body.ops ?? [], header.kind, fold.state)
    if (difference) {
      const checkpoint = formatCheckpointId(log.key.branch, header.seq, hash)
      return { status: 'differs', steps: walk.steps, state, difference: { ...difference, checkpoint } }
    }
  }
  const { run } = log.fold.state as RunState
  return { status: run?.status === 'completed' ? 'identical' : 'incomplete', steps: walk.steps, state }
}

/** Follows the recorded operations and asks today's graph at each closing what it would have done. */
class GraphWalk {
  steps = 0
  readonly #plan: GraphPlan
  readonly #before = new Map<string, State>()
  #state: State | undefined

  constructor(plan: GraphPlan) {
    this.#plan = plan
  }

  async take(ops: readonly Op[], kind: string, after: State): Promise<ReplayDifference | undefined> {
    // The first entry that is kept, and changes from outside: taken as they are.
    if (this.#state === undefined || kind === 'migrate' || kind === 'fork') {
      this.#state = after
      this.#before.clear()
      return undefined
    }
    let state = this.#state
    for (const op of ops) {
      const prefix = tasksPrefix(op)
      if (prefix && op[0] === 'set') {
        const difference = await this.#check(prefix, state as RunState, op[2] as unknown as readonly TaskRecord[])
        if (difference) return difference
      }
      state = applyOp(state, op)
      if (prefix) this.#before.set(prefix.join('/'), (scopeAt(state as RunState, prefix).state ?? {}) as State)
    }
    this.#state = after
    return undefined
  }

  async #check(
    prefix: Prefix,
    state: RunState,
    recorded: readonly TaskRecord[],
  ): Promise<ReplayDifference | undefined> {
    const scope = scopeAt(state, prefix)
    const plan = this.#planAt(prefix)
    const where = prefix.filter((_, i) => i % 2 === 1).join('/')
    if (plan === undefined) {
      return { step: where, what: 'missing-node', message: `Subgraph "${where}" is not part of the program any more.` }
    }
    const tasks = scope.tasks ?? []
    const count = prefix.length === 0 ? (state.run?.count ?? 0) : (scope.count ?? 0)
    const now = scope.state ?? {}
    if (tasks.length === 0) return routeDifference(where, recorded, nameTasks(await plan.start(now), 0))
    this.steps += tasks.length
    const missing = tasks.find(({ node }) => plan.resolve(node) === undefined)
    if (missing) {
      return {
        step: missing.id,
        what: 'missing-node',
        message: `Node "${missing.node}" is not part of the program any more.`,
      }
    }
    const before = this.#before.get(prefix.join('/'))
    if (before !== undefined) {
      const updates = tasks.map(({ id }) => ({ update: (scope.steps?.[id]?.result ?? {}) as Update }))
      const reduced = plan.shape.reduce(before, updates, []).state
      if (!isDeepStrictEqual(reduced, now)) {
        const message = 'The reducers make another state of what was recorded.'
        return { step: tasks[0]?.id ?? where, what: 'state', message, recorded: now as Value, now: reduced as Value }
      }
    }
    const next = await plan.next(
      tasks.map(({ node }) => node),
      now,
      scope.joins ?? {},
    )
    return routeDifference(tasks[0]?.id ?? where, recorded, nameTasks(next.tasks, count + 1))
  }

  #planAt(prefix: Prefix): GraphPlan | undefined {
    let plan: GraphPlan | undefined = this.#plan
    for (let i = 1; i < prefix.length; i += 2) {
      const name = (prefix[i] as string).replace(/^\d+:/, '').replace(/\[\d+\]$/, '')
      const node: NodePlan | undefined = plan?.resolve(name)
      plan = node?.kind === 'graph' ? node.graph : undefined
    }
    return plan
  }
}

function routeDifference(
  step: string,
  recorded: readonly TaskRecord[],
  now: readonly TaskRecord[],
): ReplayDifference | undefined {
  const plain = (tasks: readonly TaskRecord[]) =>
    tasks.map(({ id, input }) => ({ id, ...(input === undefined ? {} : { input }) }))
  if (isDeepStrictEqual(plain(recorded), plain(now))) return undefined
  const names = (tasks: readonly TaskRecord[]) => tasks.map(({ node }) => node).join(', ') || 'the end'
  return {
    step,
    what: 'route',
    message: `After "${step}" the record goes on to ${names(recorded)}, today's program to ${names(now)}.`,
    recorded: plain(recorded) as Value,
    now: plain(now) as Value,
  }
}

/** The scope whose tasks an operation sets. */
function tasksPrefix(op: Op): Prefix | undefined {
  const path = op[1] as readonly (string | number)[]
  let at = 0
  while (path[at] === 'scopes') at += 2
  if (path[at] !== 'tasks' || path.length !== at + 1) return undefined
  return path.slice(0, at).map(String)
}

async function replayFlow(
  environment: RuntimeEnvironment,
  log: Log,
  plan: FlowPlan,
  run: RunRecord,
  oldest: number,
): Promise<ReplayReport> {
  const { steps, pauses } = await collectRecords(log, oldest, run.id)
  const input = await recordedInput(log, oldest, run)
  const { output: _, ...begun } = run
  const state = {
    run: { ...begun, status: 'running', ...(input === undefined ? {} : { input }) },
    steps: Object.fromEntries(steps),
    pauses: Object.fromEntries([...pauses].map(([id, pause]) => [id, { ...pause, used: true }])),
  }
  const recorder = new ViewRecorder({ ...log.fold, state: state as never }, () => {}, true)
  const { clock, random, store } = environment
  const session = new Session({
    log: log.key,
    recorder,
    clock,
    random,
    store: store(log.key.tenant),
    openSince: undefined,
    context: undefined,
    abort: new AbortController(),
    heartbeat: async () => {},
    emit: () => {},
    inlineSleepMs: 0,
    drain: undefined,
    replaying: true,
  })
  const report = {
    steps: steps.size,
    state: ((log.fold.state as RunState).state ?? {}) as Readonly<Record<string, Value>>,
  }
  const driven = await driveFlow(session, plan)
  if (driven.status === 'failed') return failedReplay(report, driven.error, run)
  if (driven.status === 'suspended') return suspendedReplay(report, run)
  const output = driven.output as Value | undefined
  const same = run.status === 'completed' && isDeepStrictEqual(output, run.output)
  if (same) return { ...report, status: 'identical', ...(output === undefined ? {} : { output }) }
  const message =
    run.status === 'completed' ? 'The output is another one.' : 'The run is not recorded as completed, but ends now.'
  const difference = {
    step: 'the end',
    what: 'output' as const,
    message,
    ...(run.output === undefined ? {} : { recorded: run.output }),
    ...(output === undefined ? {} : { now: output }),
  }
  return { ...report, status: 'differs', difference }
}

function failedReplay(report: Pick<ReplayReport, 'steps' | 'state'>, error: unknown, run: RunRecord): ReplayReport {
  if (error instanceof ReplayGapError) {
    // The record of an unfinished run simply ends; a finished one never took this step.
    if (run.status !== 'completed') return { ...report, status: 'incomplete' }
    const message = `Step "${error.step}" is not recorded: today's program takes another way.`
    return { ...report, status: 'differs', difference: { step: error.step, what: 'step', message } }
  }
  if (run.status === 'failed' && run.error?.message === recordError(error).message)
    return { ...report, status: 'identical' }
  const at = isHoldfastError(error) && typeof error.data['step'] === 'string' ? error.data['step'] : 'the program'
  return { ...report, status: 'differs', difference: { step: at, what: 'step', message: recordError(error).message } }
}

function suspendedReplay(report: Pick<ReplayReport, 'steps' | 'state'>, run: RunRecord): ReplayReport {
  if (run.status !== 'completed') return { ...report, status: 'incomplete' }
  const message = 'The record goes on where today’s program waits.'
  return { ...report, status: 'differs', difference: { step: 'a wait', what: 'step', message } }
}

/** What the flow was called with; it is taken away when the run has ended. */
async function recordedInput(log: Log, oldest: number, run: RunRecord): Promise<Value | undefined> {
  if (run.input !== undefined) return run.input
  for await (const { body } of log.entries(oldest)) {
    for (const op of body.ops ?? []) {
      if (op[0] !== 'set' || op[1].length !== 1 || op[1][0] !== 'run') continue
      const begun = op[2] as unknown as RunRecord
      if (begun.id === run.id) return begun.input
    }
  }
  return undefined
}
