import { validate } from '../../../store/standard-schema.js'
import { checkGraph } from './graph-check.js'
import type { GraphDeclaration, NodeDeclaration } from './graph-declaration.js'
import { GraphRoutes } from './graph-routes.js'
import type { GraphPlan, NodePlan } from '../program.js'
import { joinContextPlans } from '../../run/request/run-context.js'
import { isDeepStrictEqual } from 'node:util'
import type { Value } from '../../../codec/value.js'
import { InvalidProgramError } from '../../../core/errors.js'
import type { State } from '../../../log/entry/ops.js'
import { isPlainObject } from '../state/reduce-key.js'
import type { StateKey } from '../state/state-key.js'
import type { StateShape } from '../state/state-shape.js'

export type { GraphPlan } from '../program.js'

/** What the engine uses of a graph, after every check that can be made without running it. */
export function planGraph(declaration: GraphDeclaration): GraphPlan {
  checkGraph(declaration)
  const { shape, input, aliases, retention } = declaration
  const nodes = new Map<string, NodePlan>()
  for (const node of declaration.nodes.values()) nodes.set(node.name, planNode(declaration, node))
  const resolve = (name: string): NodePlan | undefined =>
    nodes.get(name) ?? (Object.hasOwn(aliases, name) ? nodes.get(aliases[name] as string) : undefined)
  const routes = new GraphRoutes(declaration, resolve)
  return {
    kind: 'graph',
    name: declaration.name,
    version: declaration.version,
    compatibleWith: declaration.compatibleWith,
    maxSteps: declaration.maxSteps,
    concurrency: declaration.concurrency,
    shape,
    nodes,
    aliases,
    stateVersion: declaration.stateVersion,
    migrations: declaration.migrations,
    context: joinContextPlans([
      declaration.context,
      ...[...declaration.nodes.values()].map(({ work }) => (work.kind === 'graph' ? work.graph.context : undefined)),
    ]),
    ...(retention && { retention }),
    ...(input && { inputSchema: input }),
    async checkInput(value) {
      if (value === undefined || input === undefined) return shape.check(value, 'input')
      return shape.check(await validate(input, value, 'input'), 'input')
    },
    resolve,
    start: (state) => routes.start(state),
    next: (finished, state, joins) => routes.next(finished, state, joins),
  }
}

function planNode(
  declaration: GraphDeclaration,
  { name, policy, inputSchema, approval, concurrency, work }: NodeDeclaration,
): NodePlan {
  const base = {
    name,
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(inputSchema && { inputSchema }),
    pauseBefore: declaration.pauseBefore.includes(name),
    pauseAfter: declaration.pauseAfter.includes(name),
  }
  if (work.kind === 'function') {
    const merged = { ...declaration.policy, ...policy }
    return { ...base, kind: 'function', policy: merged, run: work.run, ...(approval && { approval }) }
  }
  const shared = shareState(name, declaration.shape, work.graph.shape)
  return {
    ...base,
    kind: 'graph',
    // The steps inside have their own: retrying a whole subgraph would repeat what it has recorded.
    policy: {},
    graph: work.graph,
    enter: work.input ?? shared.enter,
    leave: work.output ?? shared.leave,
  }
}

/** How a subgraph's state is connected to its parent's if the node does not say. */
export interface SharedState {
  readonly enter: (state: State, input: unknown) => State
  readonly leave: (subState: State, state: State) => State
}

/**
 * Keys that both declare the same way are shared. `leave` returns only what the subgraph changed: handing everything
 * back would duplicate lists, and overwrite what a sibling changed in the meantime with old values. Keys with custom
 * reducers are not shared, because a value is not an update of them.
 */
function shareState(node: string, parent: StateShape, sub: StateShape): SharedState {
  const shared = [...sub.keys].filter(([name, key]) => {
    return key.kind !== 'reduced' && parent.keys.get(name)?.kind === key.kind
  })
  return {
    enter(state, input) {
      if (input !== undefined) {
        throw new InvalidProgramError(
          `The subgraph at "${node}" was sent an item, but its node does not say what to do with it.`,
          `node "${node}"`,
          'Give the node { input: (state, item) => …, output: … }.',
          { node },
        )
      }
      return pick(shared, (name) => own(state, name))
    },
    leave: (subState, state) => pick(shared, (name, key) => changed(key, own(subState, name), own(state, name))),
  }
}

function pick(
  keys: readonly (readonly [string, StateKey])[],
  read: (name: string, key: StateKey) => Value | undefined,
): State {
  const picked: Record<string, Value> = {}
  for (const [name, key] of keys) {
    const value = read(name, key)
    if (value !== undefined) picked[name] = value
  }
  return picked
}

function changed(key: StateKey, after: Value | undefined, entered: Value | undefined): Value | undefined {
  if (after === undefined || isDeepStrictEqual(after, entered)) return undefined
  if (key.kind === 'append' && Array.isArray(after)) {
    const initial = key.initial?.() as readonly Value[] | undefined
    const own = after.slice((initial?.length ?? 0) + (Array.isArray(entered) ? entered.length : 0))
    return own.length === 0 ? undefined : own
  }
  if (key.kind === 'merge' && isPlainObject(after) && isPlainObject(entered)) {
    const entries = Object.entries(after)
    return Object.fromEntries(entries.filter(([name, value]) => !hasSame(entered, name, value)))
  }
  return after
}

// A key may be named `constructor`: only what the state has counts, not what every object has.
function own(state: State, name: string): Value | undefined {
  return Object.hasOwn(state, name) ? state[name] : undefined
}

function hasSame(entered: Record<string, Value>, name: string, value: Value): boolean {
  return Object.hasOwn(entered, name) && isDeepStrictEqual(entered[name], value)
}
