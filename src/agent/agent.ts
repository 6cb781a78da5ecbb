import { InvalidValueError } from '../core/errors.js'
import { parseRetention } from '../core/retention.js'
import type { ContextPlan, GraphPlan, NodePlan, State, Task, TypedProgram } from '../runtime/program/program.js'
import { checkProgramName, checkRange, checkVersion, planContext } from '../runtime/program/check-program.js'
import type { Shape } from '../runtime/program/state/state-key.js'
import { StateShape } from '../runtime/program/state/state-shape.js'
import { joinContextPlans } from '../runtime/run/request/run-context.js'
import { type AgentOptions, checkAgentOptions } from './agent-options.js'
import { agentShape, type AgentState, type Ending, type OwnState, type PendingCall } from './agent-state.js'
import { type AgentInput, readInput } from './messages/read-input.js'
import { planCompactNode } from './messages/compaction.js'
import { type Message, textOf } from './messages/message.js'
import { planModelNode } from './model/model-node.js'
import { RememberedSizes } from './messages/sizes.js'
import { EMPTY_TALLY } from './model/cost/tally.js'
import { planToolNode, refuseCall, toolNode } from './tools/tool-node.js'
import { doneOf, planAgentToolNode } from './tools/agent-tool.js'
import { AGENT, type Tool } from './tools/tool.js'
import { ToolSet } from './tools/tool-set.js'
import type { AgentSetup } from './turn.js'

/**
 * An agent as the program of a thread. Its output is the last thing it said in the run, or empty if it said nothing.
 */
export type AgentProgram<S extends Shape = Shape> = TypedProgram<AgentInput, AgentState<S>, string>

/**
 * A model that calls tools until it is done. Underneath, it is a graph: a model step, then one step per tool call, in
 * parallel and each recorded as it finishes, then the model again.
 */
export function agent<const S extends Shape = {}, RunContext = unknown>(
  options: AgentOptions<S, RunContext>,
): AgentProgram<S> {
  const { name, version, compatibleWith } = options
  checkProgramName(name)
  checkVersion(name, version)
  checkRange(name, compatibleWith)
  checkAgentOptions(options as unknown as AgentOptions)
  const setup: AgentSetup = {
    options: options as unknown as AgentOptions,
    tools: new ToolSet(options.tools ?? {}),
    sizes: new RememberedSizes(options.compaction ? options.compaction.count : undefined),
  }
  return { kind: 'agent', plan: planAgent(setup) }
}

function planAgent(setup: AgentSetup): GraphPlan {
  const { options, tools } = setup
  const { name, version, compatibleWith, frequency, durability, retention } = options
  const nodes = new Map<string, NodePlan>()
  const add = (node: NodePlan) => nodes.set(node.name, node)
  add(planModelNode(setup))
  add(planCompactNode(setup))
  for (const toolName of tools.names) {
    const tool = tools.get(toolName)
    if (tool === undefined) continue
    const delegate = tool[AGENT]
    add(delegate ? planAgentToolNode(toolName, tool, delegate) : planToolNode(setup, toolName, tool))
  }
  const aliases = Object.fromEntries(
    Object.entries(options.toolAliases ?? {}).map(([old, now]) => [toolNode(old), toolNode(now)]),
  )
  const shape = new StateShape(agentShape(options.state ?? {}))
  const resolve = (node: string) =>
    nodes.get(node) ?? (Object.hasOwn(aliases, node) ? nodes.get(aliases[node] as string) : undefined)
  return {
    kind: 'graph',
    role: 'agent',
    name,
    version,
    compatibleWith,
    // Limited by maxTurns and by how much there is to summarize: a long history that is passed in takes many summaries.
    maxSteps: Number.MAX_SAFE_INTEGER,
    shape,
    nodes,
    aliases,
    stateVersion: options.stateVersion ?? 1,
    migrations: options.migrations ?? {},
    context: joinContextPlans([
      planContext(`agent "${name}"`, options),
      ...tools.names.map((toolName) => contextOfTool(tools.get(toolName))),
    ]),
    ...(retention === undefined ? {} : { retention: parseRetention(retention) }),
    defaults: {
      ...(frequency === undefined ? {} : { frequency }),
      ...(durability === undefined ? {} : { durability }),
    },
    begins: { turn: 0, runUsage: EMPTY_TALLY, ended: null },
    async checkInput(input) {
      return shape.check({ messages: readInput(input) }, 'input')
    },
    async checkInitial(initial) {
      const known = ['memory', ...Object.keys(options.state ?? {})]
      const foreign = Object.keys((initial ?? {}) as object).find((key) => !known.includes(key))
      if (foreign === undefined) return shape.check(initial, 'initial')
      throw new InvalidValueError(`initial.${foreign}`, 'is not a key to begin with', `Use: ${known.join(', ')}.`)
    },
    output: (state) => lastText(state as unknown as OwnState),
    limit: (state) => limitOf((state as unknown as OwnState).ended),
    done: (state) => doneOf(state as unknown as OwnState),
    refuse(task, begun) {
      const call = task.input as PendingCall | undefined
      if (!task.node.startsWith(toolNode('')) || call === undefined) return undefined
      const current = resolve(task.node)?.name.slice(toolNode('').length)
      return refuseCall(setup, call, current === undefined ? undefined : tools.get(current), begun)
    },
    resolve,
    start: () => [{ node: 'model' }],
    next: (finished, state, joins) => ({ tasks: nextTasks(finished, state), joins }),
  }
}

function contextOfTool(tool: Tool | undefined): ContextPlan | undefined {
  const inner = tool?.[AGENT]?.plan.context
  if (inner) return { ...inner, isMade: false }
  return tool?.context && { schemas: [tool.context], isMade: false, transient: [] }
}

const LIMITS: readonly Ending['reason'][] = ['max-turns', 'token-budget', 'cost-budget']

function limitOf(ended: Ending | null) {
  if (ended === null || !LIMITS.includes(ended.reason)) return undefined
  return { limit: ended.reason, reason: ended.message }
}

function nextTasks(finished: readonly string[], state: State): readonly Task[] {
  const { loop } = state as unknown as OwnState
  if (!finished.includes('model')) return [{ node: 'model' }]
  switch (loop.next) {
    case 'tools':
      return loop.calls.map((call) => ({ node: toolNode(call.name), input: call }))
    case 'end':
      return []
    default:
      return [{ node: loop.next }]
  }
}

// Not beyond the last thing that a person said: what comes before answered another question.
function lastText({ messages }: OwnState): string {
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i] as Message
    if (message.role === 'user') return ''
    const text = message.role === 'assistant' ? textOf(message) : ''
    if (text !== '') return text
  }
  return ''
}
