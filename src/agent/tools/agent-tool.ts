import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { Value } from '../../codec/value.js'
import { notAChoice } from '../../core/wording/choices.js'
import { IncompatibleError, InvalidOptionError, isHoldfastError } from '../../core/errors.js'
import type { Context } from '../../runtime/step/context.js'
import { internalsOf } from '../../runtime/step/call/internals.js'
import type { FunctionNodePlan, GraphNodePlan, NodePlan, State, TypedProgram } from '../../runtime/program/program.js'
import type { OwnState, PendingCall } from '../agent-state.js'
import type { AgentInput } from '../messages/read-input.js'
import type { ToolOutput } from '../messages/message-part.js'
import { resultsOf } from '../model/prompt.js'
import { reportCalls } from '../turn.js'
import type { SchemaOutput, ToolSchema } from './schema.js'
import { AGENT, type Delegate, makeTool, type Tool, type ToolOptions } from './tool.js'
import { planApproval } from './tool-approval.js'
import { readCall, showCall } from './tool-arguments.js'
import { answer, denyCall, NOT_MADE, resultOf, toolNode } from './tool-node.js'

/** Options for `agentTool()`. Only `description` is required: it is how the model knows what the agent is for. */
export interface AgentToolOptions<Schema extends ToolSchema = ToolSchema>
  extends Pick<
    ToolOptions<Schema, string>,
    | 'needsApproval'
    | 'approvalExpiresInMs'
    | 'onApprovalExpire'
    | 'jsonSchema'
    | 'version'
    | 'migrate'
    | 'toModelOutput'
    | 'strict'
    | 'providerOptions'
  > {
  readonly description: string
  /** The arguments that the model passes. Default: `{ request: string }`. */
  readonly inputSchema?: Schema
  /** The agent's input. Default: the request, or the arguments as JSON if `inputSchema` is given. */
  readonly input?: (args: SchemaOutput<Schema>) => AgentInput
  /**
   * Where the agent runs. Default 'inside': in the call, as part of this thread. 'child': on its own thread, which is
   * awaited as with `ctx.run`; any worker that has the agent runs it, and nothing is held in the meantime.
   */
  readonly runs?: 'inside' | 'child'
}

/**
 * An agent as a tool of another agent. It runs inside the call, in the same thread and run: its model calls, tools and
 * effects are recorded one by one, its questions pause the whole run, and after a crash it continues where it was. With
 * `runs: 'child'` it has its own thread instead, with its own history, questions and costs. The result is the last thing
 * it said; if it reaches its `maxTurns` or `budget`, or its thread is cancelled, the model sees an error.
 */
export function agentTool<Schema extends ToolSchema = typeof REQUEST>(
  agent: TypedProgram<AgentInput, unknown, string>,
  options: AgentToolOptions<Schema>,
): Tool<Schema, string> {
  checkOptionNames('agentTool()', options, OPTIONS)
  const { plan } = agent as Partial<typeof agent>
  if (plan?.role !== 'agent') {
    throw new InvalidOptionError('agent', 'is not an agent', 'Pass what agent({ … }) returns.')
  }
  if (typeof options.description !== 'string' || options.description === '') {
    throw new InvalidOptionError('description', 'is missing', 'Say what the agent is for: the model chooses by it.')
  }
  const { input, runs = 'inside', ...rest } = options
  if (runs !== 'inside' && runs !== 'child') throw notAChoice('runs', runs, ['inside', 'child'])
  const given = input as ((args: unknown) => AgentInput) | undefined
  const inputSchema = (options.inputSchema ?? REQUEST) as Schema
  const ask = given ?? (options.inputSchema === undefined ? requestOf : (args: unknown) => JSON.stringify(args))
  const made = makeTool<Schema, string>({ ...rest, inputSchema, effect: 'read' })
  return { ...made, [AGENT]: { plan, ask, isChild: runs === 'child' } }
}

const OPTIONS: OptionNames<AgentToolOptions> = {
  description: true,
  inputSchema: true,
  input: true,
  runs: true,
  needsApproval: true,
  approvalExpiresInMs: true,
  onApprovalExpire: true,
  jsonSchema: true,
  version: true,
  migrate: true,
  toModelOutput: true,
  strict: true,
  providerOptions: true,
}

interface Request {
  readonly request: string
}

const REQUEST = {
  _type: undefined as unknown as Request,
  jsonSchema: {
    type: 'object',
    properties: { request: { type: 'string', description: 'What to do, with all that is needed to know.' } },
    required: ['request'],
    additionalProperties: false,
  },
  validate(value: unknown) {
    const { request } = (value ?? {}) as Partial<Request>
    if (typeof request === 'string') return { success: true as const, value: { request } }
    return { success: false as const, error: new Error('request: must be text') }
  },
}

function requestOf(args: unknown): AgentInput {
  return (args as Request).request
}

/** The node of such a tool. A call that began the other way goes on that way: what it did then is recorded there. */
export function planAgentToolNode(name: string, tool: Tool, delegate: Delegate): NodePlan {
  const inside = planInside(name, tool, delegate)
  const child = planChild(name, tool, delegate)
  return delegate.isChild ? { ...child, otherwise: inside } : { ...inside, otherwise: child }
}

function planEither(name: string, tool: Tool) {
  return {
    name: toolNode(name),
    pauseBefore: false,
    pauseAfter: false,
    status: 'waiting_tool',
    approval: planApproval(name, tool, { denied: denyCall, instead: resultOf }),
    report: reportCalls,
    unbegun: (call: unknown) => answer(call as PendingCall, { type: 'error', value: NOT_MADE }),
  } as const
}

async function requestFor(tool: Tool, { ask }: Delegate, call: PendingCall): Promise<unknown> {
  const read = await readCall(tool, call)
  if ('input' in read) return ask(read.input)
  throw new IncompatibleError(
    `A call of "${call.name}" was accepted, and its arguments no longer fit the tool.`,
    'nondeterministic',
    'Run the thread with the version of the tool that was called, or cancel the run.',
    { tool: call.name, callId: call.callId },
  )
}

/** The other agent on a thread of its own, whose end answers the call. */
function planChild(name: string, tool: Tool, delegate: Delegate): FunctionNodePlan {
  const program = { kind: 'agent', plan: delegate.plan } as TypedProgram<unknown, unknown, string>
  return {
    ...planEither(name, tool),
    kind: 'function',
    policy: { effect: 'read', retry: { attempts: 1 } },
    shown: (call) => showCall(tool, call as PendingCall),
    async run(_state, context) {
      const ctx = context as Context<PendingCall>
      const call = ctx.input
      const request = await requestFor(tool, delegate, call)
      try {
        const said = await ctx.run(program, name, request)
        return await resultOf(tool, call, String(said ?? ''), internalsOf(ctx).clock.now())
      } catch (error) {
        // One that failed can be resumed: that is for whoever runs this, and not for the model.
        if (!isHoldfastError(error, 'child-failed') || !TOLD.has(error.data.status)) throw error
        const { reason = 'It was ended before it was done.', done = null } = error.data
        const output = { error: reason, ...(done === null ? {} : { done: done as Value }) }
        return answer(call, { type: 'error-json', value: output }, internalsOf(ctx).clock.now())
      }
    },
  }
}

const TOLD: ReadonlySet<string> = new Set(['limited', 'cancelled', 'gone'])

/** The other agent as a subgraph, whose end answers the call. */
function planInside(name: string, tool: Tool, delegate: Delegate): GraphNodePlan {
  const { plan } = delegate
  return {
    ...planEither(name, tool),
    kind: 'graph',
    policy: {},
    graph: plan,
    enter: (_state, given) => requestFor(tool, delegate, given as PendingCall),
    async leave(ended, _state, given) {
      const call = given as PendingCall
      const state = ended as unknown as OwnState
      // The time of its last word: a different time would make a different update in a replay.
      const at = state.messages.at(-1)?.at
      const output = unfinished(plan.limit?.(ended)?.reason, state)
      if (output !== undefined) return answer(call, output, at)
      return resultOf(tool, call, String(plan.output?.(ended as State) ?? ''), at)
    },
  }
}

/** What the model is told about an agent that did not finish: including what it had done by then, which stays done. */
function unfinished(limit: string | undefined, state: OwnState): ToolOutput | undefined {
  if (limit === undefined && state.ended !== null) return undefined
  return { type: 'error-json', value: { error: limit ?? 'It was ended before it was done.', done: doneOf(state) } }
}

/** What the tools of an agent have done. */
export function doneOf({ messages }: OwnState): Value {
  return messages.flatMap(resultsOf).map(({ name, output }) => ({ tool: name, output: output as Value }))
}
