import { isDeepStrictEqual } from 'node:util'
import type { Value } from '../codec/value.js'
import { isHoldfastError } from '../core/errors.js'
import { formatCheckpointId } from '../log/checkpoint-id.js'
import type { Log } from '../log/log.js'
import { applyOp, type Op, type State } from '../log/ops.js'
import { recordError } from './errors.js'
import { nameTasks } from './graph-engine.js'
import type { GraphPlan, NodePlan } from './program.js'
import type { ReplayDifference, ReplayReport } from './replay.js'
import { type Prefix, type RunState, scopeAt, type TaskRecord } from './run-state.js'
import type { Update } from './state-shape.js'

/** Follows the records of a graph and asks today's graph at every closing what it would have done. */
export async function replayGraph(log: Log, plan: GraphPlan, state: State): Promise<ReplayReport> {
  const walk = new GraphWalk(plan)
  for await (const { body, fold, header, hash } of log.entries(await log.firstKept())) {
    const difference = await walk.take(body.ops ?? [], header.kind, fold.state).catch(asDifference)
    if (difference) {
      const checkpoint = formatCheckpointId(log.key.branch, header.seq, hash)
      return { status: 'differs', steps: walk.steps, state, difference: { ...difference, checkpoint } }
    }
  }
  const { run } = log.fold.state as RunState
  return { status: run?.status === 'completed' ? 'identical' : 'incomplete', steps: walk.steps, state }
}

// Today's routes and reducers may also fail on what is recorded.
function asDifference(error: unknown): ReplayDifference {
  const key = isHoldfastError(error) && typeof error.data['step'] === 'string' ? error.data['step'] : 'the program'
  return { step: key, what: 'route', message: recordError(error).message }
}

/** Follows the recorded operations and asks today's graph at each closing what it would have done. */
class GraphWalk {
  steps = 0
  readonly #plan: GraphPlan
  /** By scope: the state that the nodes of the super-step under way see. */
  readonly #before = new Map<string, State>()
  #state: State | undefined
  /** What was there when the last run took its input. */
  #started: RunState = {}

  constructor(plan: GraphPlan) {
    this.#plan = plan
  }

  async take(ops: readonly Op[], kind: string, after: State): Promise<ReplayDifference | undefined> {
    // The first entry that is kept, and changes from outside: taken as they are.
    if (this.#state === undefined || kind === 'fork') {
      this.#state = after
      this.#begin(after as RunState, [])
      return undefined
    }
    let state = this.#state
    for (const op of ops) {
      if (op[0] === 'splice' && op[1][0] === 'inputs') this.#started = state as RunState
      // A migration replaces the whole state, together with the step that follows it.
      if (op[0] === 'set' && op[1].length === 1 && op[1][0] === 'state') {
        state = applyOp(state, op)
        this.#begin(state as RunState, [])
        continue
      }
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
    const where = prefix.filter((_, i) => i % 2 === 1).join('/')
    if (plan === undefined) {
      return { step: where, what: 'missing-node', message: `Subgraph "${where}" is not part of the program any more.` }
    }
    // Recorded by reducers of another version of the state: today's say nothing of it.
    if ((state.run?.stateVersion ?? 1) < this.#plan.stateVersion) return undefined
    const tasks = scope.tasks ?? []
    const count = prefix.length === 0 ? (state.run?.count ?? 0) : (scope.count ?? 0)
    const now = scope.state ?? {}
    if (tasks.length === 0) {
      const begun = prefix.length === 0 ? this.#checkInput(now) : undefined
      return begun ?? routeDifference(where || 'the start', recorded, nameTasks(await plan.start(now), 0))
    }
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

  /** What today's program makes of the input that the run took. */
  #checkInput(now: State): ReplayDifference | undefined {
    const { shape } = this.#plan
    const update = (this.#started.inputs?.[0]?.value ?? {}) as Update
    const made = shape.reduce(shape.complete(this.#started.state ?? {}), [{ update }], []).state
    if (isDeepStrictEqual(made, now)) return undefined
    const message = 'The input makes another state than was recorded.'
    return { step: 'the start', what: 'state', message, recorded: now as Value, now: made as Value }
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
