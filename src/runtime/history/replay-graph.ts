import { isDeepStrictEqual } from 'node:util'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { encodeValue, type Value } from '../../codec/value.js'
import { isHoldfastError } from '../../core/errors.js'
import { formatCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { Log } from '../../log/log.js'
import { applyOp, type Op, type State } from '../../log/entry/ops.js'
import { recordError } from '../errors.js'
import { withRecords } from '../engine/closings.js'
import { nameTasks } from '../engine/tasks.js'
import { migrateState } from '../upgrade/migration.js'
import type { GraphPlan, NodePlan, Task } from '../program/program.js'
import { prefixOf, stepOf, takesInput, versionAt } from '../run/record/recorded-ops.js'
import type { OtherVersionRecords, ReplayDifference, ReplayReport } from './replay.js'
import { type Prefix, scopeAt, pathOf } from '../run/state/read-run-state.js'
import type { RunState, StepRecord, TaskRecord } from '../run/state/run-state.js'
import type { Update } from '../program/state/state-shape.js'
import { upgradeInput } from '../upgrade/upgrade.js'

/** Follows the records of a graph and asks the current graph at the end of every super-step what it would have done. */
export async function replayGraph(log: Log, plan: GraphPlan, state: State): Promise<ReplayReport> {
  const walk = new GraphWalk(plan)
  for await (const { body, fold, header, hash } of log.entries(await log.firstKept())) {
    const difference = await walk.take(body.ops ?? [], header.kind, fold.state).catch(asDifference)
    if (difference) {
      const checkpoint = formatCheckpointId(log.key.branch, header.seq, hash)
      return { status: 'differs', steps: walk.steps, state, difference: { ...difference, checkpoint }, ...walk.others }
    }
  }
  const { run } = log.fold.state as RunState
  const left = walk.others.otherVersions?.find(({ compared }) => compared === 'nothing')
  const isWhole = run?.status === 'completed' && left === undefined
  return {
    status: isWhole ? 'identical' : 'incomplete',
    steps: walk.steps,
    state,
    ...walk.others,
    ...(left ? { message: `Records of state version ${left.stateVersion} were passed over. ${left.reason}` } : {}),
  }
}

// The current routes and reducers may also fail on what is recorded.
function asDifference(error: unknown): ReplayDifference {
  const key = isHoldfastError(error) && typeof error.data['step'] === 'string' ? error.data['step'] : 'the program'
  return { step: key, what: 'route', message: recordError(error).message }
}

/** Follows the recorded operations and asks the current graph at the end of each super-step what it would have done. */
class GraphWalk {
  steps = 0
  readonly #plan: GraphPlan
  /** By scope: the state that the nodes of the current super-step see. */
  readonly #before = new Map<string, State>()
  readonly #others = new Map<string, OtherVersionRecords>()
  #state: State | undefined
  /** What was there when the last run took its input. */
  #started: RunState = {}

  constructor(plan: GraphPlan) {
    this.#plan = plan
  }

  get others(): Pick<ReplayReport, 'otherVersions'> {
    return this.#others.size === 0 ? {} : { otherVersions: [...this.#others.values()] }
  }

  async take(written: readonly Op[], kind: string, after: State): Promise<ReplayDifference | undefined> {
    // The first entry that is kept, and changes from outside: taken as they are.
    if (this.#state === undefined || kind === 'fork') {
      this.#state = after
      this.#begin(after as RunState, [])
      return undefined
    }
    let state = this.#state
    const ops = withRecords(written, state)
    for (const [i, op] of ops.entries()) {
      if (takesInput(op, state as RunState)) this.#started = state as RunState
      const difference = await this.#ask(op, state as RunState, () => ops.slice(i + 1))
      if (difference) return difference
      state = applyOp(state, op)
      const prefix = prefixOf(op, 'tasks')
      if (prefix) this.#before.set(prefix.join('/'), (scopeAt(state as RunState, prefix).state ?? {}) as State)
      // A migration replaces the whole state of a scope, together with the step that follows it.
      const replaced = prefixOf(op, 'state')
      if (replaced?.length === 0) this.#begin(state as RunState, [])
      else if (replaced)
        this.#before.set(replaced.join('/'), (scopeAt(state as RunState, replaced).state ?? {}) as State)
    }
    this.#state = after
    return undefined
  }

  /** What the current program says about an operation before it is applied. */
  async #ask(op: Op, state: RunState, following: () => readonly Op[]): Promise<ReplayDifference | undefined> {
    if (op[0] !== 'set') return undefined
    const closing = prefixOf(op, 'tasks')
    if (closing) return this.#check(closing, state, op[2] as unknown as readonly TaskRecord[])
    const entered = prefixOf(op, 'state')
    if (entered && entered.length > 0) return this.#checkEntry(entered, state, op[2] as State, following)
    const done = stepOf(op)
    if (done) return this.#checkExit(done.prefix, done.id, state, op[2] as unknown as StepRecord)
    return undefined
  }

  #begin(scope: RunState, prefix: Prefix): void {
    if (prefix.length === 0) this.#before.clear()
    this.#before.set(prefix.join('/'), (scope.state ?? {}) as State)
    for (const [id, inner] of Object.entries(scope.scopes ?? {})) this.#begin(inner, [...prefix, 'scopes', id])
  }

  async #check(
    prefix: Prefix,
    state: RunState,
    recorded: readonly TaskRecord[],
  ): Promise<ReplayDifference | undefined> {
    const scope = scopeAt(state, prefix)
    const plan = this.#planAt(prefix)
    const where = pathOf(prefix)
    if (plan === undefined) {
      return { step: where, what: 'missing-node', message: `Subgraph "${where}" is no longer part of the program.` }
    }
    const tasks = scope.tasks ?? []
    const now = this.#asToday(plan, versionAt(state, prefix), scope.state ?? {}, tasks.length)
    if (now === undefined) return undefined
    this.steps += tasks.length
    const isSame = versionAt(state, prefix) === plan.stateVersion
    const count = prefix.length === 0 ? (state.run?.count ?? 0) : (scope.count ?? 0)
    if (tasks.length === 0) {
      const begun = prefix.length === 0 && isSame ? this.#checkInput(now) : undefined
      return begun ?? routeDifference(plan, where || 'the start', recorded, await plan.start(now), 0)
    }
    const missing = tasks.find(({ node }) => plan.resolve(node) === undefined)
    if (missing) {
      return {
        step: missing.id,
        what: 'missing-node',
        message: `Node "${missing.node}" is no longer part of the program.`,
      }
    }
    const before = isSame ? this.#before.get(prefix.join('/')) : undefined
    if (before !== undefined) {
      const updates = tasks.map(({ id }) => ({ update: (scope.steps?.[id]?.result ?? {}) as Update }))
      // Keys that were declared after the record was made start with their initial values when the run is resumed.
      const reduced = plan.shape.reduce(plan.shape.complete(before), updates, []).state
      if (!isDeepStrictEqual(reduced, plan.shape.complete(now))) {
        const message = 'The reducers make another state of what was recorded.'
        return { step: tasks[0]?.id ?? where, what: 'state', message, recorded: now as Value, now: reduced as Value }
      }
    }
    const next = await plan.next(
      tasks.map(({ node }) => node),
      now,
      scope.joins ?? {},
    )
    return routeDifference(plan, tasks[0]?.id ?? where, recorded, next.tasks, count + 1)
  }

  /** The state in the current version, migrated as in a run; undefined if no migration leads there. Is reported. */
  #asToday(plan: GraphPlan, version: number, state: State, steps: number): State | undefined {
    if (version === plan.stateVersion) return state
    let today: State | undefined
    let reason: string | undefined
    try {
      today = migrateState(state, version, plan.stateVersion, plan.migrations)
    } catch (error) {
      if (!isHoldfastError(error, 'incompatible')) throw error
      reason = error.message
    }
    const compared = today === undefined ? 'nothing' : 'routes'
    const key = JSON.stringify([plan.name, version, compared])
    const known = this.#others.get(key)?.steps ?? 0
    const records = { graph: plan.name, stateVersion: version, steps: known + steps, compared } as const
    this.#others.set(key, reason === undefined ? records : { ...records, reason })
    return today
  }

  /** What the current program makes of the input that the run took. */
  #checkInput(now: State): ReplayDifference | undefined {
    const { shape } = this.#plan
    const input = this.#started.inputs?.[0]
    const update = input ? upgradeInput(this.#plan, input) : {}
    const initial = input?.initial === undefined ? {} : upgradeInput(this.#plan, { ...input, value: input.initial })
    const begins = input ? (this.#plan.begins ?? {}) : {}
    const updates = [{ update: initial }, { update: begins }, { update }]
    const made = shape.reduce(shape.complete(this.#started.state ?? {}), updates, []).state
    if (isDeepStrictEqual(made, shape.complete(now))) return undefined
    const message = 'The input makes another state than was recorded.'
    return { step: 'the start', what: 'state', message, recorded: now as Value, now: made as Value }
  }

  /** The input that the current program would give a subgraph. */
  async #checkEntry(
    prefix: Prefix,
    state: RunState,
    recorded: State,
    following: () => readonly Op[],
  ): Promise<ReplayDifference | undefined> {
    // Migrated to another version while it is in progress.
    if (scopeAt(state, prefix).state !== undefined) return undefined
    const node = this.#subgraphAt(prefix, state)
    if (node === undefined || !node.isToday) return undefined
    const set = following().find((op) => isDeepStrictEqual(op[1], [...prefix, 'stateVersion']))
    if ((set?.[0] === 'set' ? set[2] : 1) !== node.plan.graph.stateVersion) return undefined
    const { graph, enter } = node.plan
    // The input of an agent becomes a message with its own id and time.
    if (graph.role === 'agent') return undefined
    const update = asStored(await graph.checkInput(await enter(node.state, node.task.input))) as Update
    const now = asStored(graph.shape.reduce(graph.shape.initial(), [{ update }], []).state)
    if (isDeepStrictEqual(now, asStored(graph.shape.complete(recorded)))) return undefined
    const message = 'The subgraph would begin with another state than was recorded.'
    return { step: pathOf(prefix), what: 'state', message, recorded: recorded as Value, now }
  }

  /** What the current program would take from a subgraph that has ended. */
  async #checkExit(
    parent: Prefix,
    id: string,
    state: RunState,
    record: StepRecord,
  ): Promise<ReplayDifference | undefined> {
    const prefix = [...parent, 'scopes', id]
    const scope = scopeAt(state, prefix)
    if (record.status !== 'done' || record.passed || scope.state === undefined) return undefined
    const node = this.#subgraphAt(prefix, state)
    if (node === undefined || !node.isToday || versionAt(state, prefix) !== node.plan.graph.stateVersion) {
      return undefined
    }
    const update = await node.plan.leave(scope.state, node.state, node.task.input)
    const now = asStored(await node.parent.shape.check(update, `the update of node "${node.task.node}"`)) as Update
    const recorded = (record.result ?? {}) as Update
    // Whoever started it may have changed something else as well.
    const other = Object.keys(recorded).some((key) => !Object.hasOwn(now, key)) && !node.plan.pauseBefore
    if (!other && Object.entries(now).every(([key, value]) => isDeepStrictEqual(value, recorded[key]))) return undefined
    const message = 'Another update would be taken from the subgraph than was recorded.'
    return { step: pathOf(prefix), what: 'state', message, recorded: recorded as Value, now: now as Value }
  }

  /** The subgraph whose scope this is, seen from its parent. */
  #subgraphAt(prefix: Prefix, state: RunState) {
    const outer = prefix.slice(0, -2)
    const parent = this.#planAt(outer)
    const scope = scopeAt(state, outer)
    const task = scope.tasks?.find(({ id }) => id === prefix.at(-1))
    const plan = task && parent?.resolve(task.node)
    if (parent === undefined || task === undefined || plan?.kind !== 'graph') return undefined
    const isToday = versionAt(state, outer) === parent.stateVersion
    return { parent, task, plan, isToday, state: (scope.state ?? {}) as State }
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
  plan: GraphPlan,
  step: string,
  recorded: readonly TaskRecord[],
  now: readonly Task[],
  count: number,
): ReplayDifference | undefined {
  // A record keeps the name that a node had.
  const current = recorded.map((task) => ({ ...task, node: plan.resolve(task.node)?.name ?? task.node }))
  const plain = (tasks: readonly Task[]) =>
    nameTasks(tasks, count).map(({ id, input }) => ({ id, ...(input === undefined ? {} : { input }) }))
  if (isDeepStrictEqual(plain(current), plain(now))) return undefined
  const names = (tasks: readonly Task[]) => tasks.map(({ node }) => node).join(', ') || 'the end'
  return {
    step,
    what: 'route',
    message: `After "${step}" the record continues to ${names(recorded)}, the current program to ${names(now)}.`,
    recorded: plain(recorded) as Value,
    now: plain(now) as Value,
  }
}

/** As it would be read back. */
function asStored(value: unknown): Value {
  return encodeValue(value, DEFAULT_LIMITS).value
}
