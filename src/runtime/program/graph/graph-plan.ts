import { validate } from '../../../store/standard-schema.js'
import { checkGraph } from './graph-check.js'
import type { GraphDeclaration, NodeDeclaration } from './graph-declaration.js'
import { GraphRoutes } from './graph-routes.js'
import type { GraphPlan, NodePlan } from '../program.js'
import { joinContextPlans } from '../../run/request/run-context.js'
import { shareState } from '../state/shared-state.js'

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
