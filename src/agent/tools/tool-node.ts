import type { Value } from '../../codec/value.js'
import { andThen } from '../../core/async/at-once.js'
import { IncompatibleError, InvalidProgramError } from '../../core/errors.js'
import { lazyFields, withLazyFields } from '../../core/lazy-fields.js'
import type { Context, Reconciled } from '../../runtime/step/context.js'
import { internalsOf } from '../../runtime/step/call/internals.js'
import type { FunctionNodePlan, Refusal } from '../../runtime/program/program.js'
import type { Update } from '../../runtime/program/state/state-shape.js'
import { checkPolicy } from '../../runtime/program/step-policy.js'
import { joinUpdates, type OwnState, type PendingCall } from '../agent-state.js'
import { makeMessage } from '../messages/message.js'
import type { ToolOutput } from '../messages/message-part.js'
import { toPlain } from '../messages/plain.js'
import { planTool } from '../model/spans.js'
import type { Tool } from './tool.js'
import { planApproval } from './tool-approval.js'
import { argumentsOf, readCall, showCall } from './tool-arguments.js'
import { toToolOutput } from './tool-set.js'
import { type AgentSetup, reportCalls } from '../turn.js'

/** A tool as its own node: siblings run in parallel, and each is recorded when it is done. */
export function planToolNode(setup: AgentSetup, name: string, tool: Tool): FunctionNodePlan {
  const { timeoutMs, reconcile, onUnknown, keyTtlMs, settleMs, idempotencyKey: key } = tool
  // Without `execute` nothing is done here: someone else is asked for the result.
  const effect = tool.execute === undefined ? 'read' : tool.effect
  const policy = {
    effect,
    retry: tool.retry ?? { attempts: effect === 'idempotent' ? 3 : 1 },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(onUnknown === undefined ? {} : { onUnknown }),
    ...(keyTtlMs === undefined ? {} : { keyTtlMs }),
    ...(settleMs === undefined ? {} : { settleMs }),
    ...(reconcile === undefined ? {} : { reconcile: askOtherSide }),
  }
  checkPolicy(policy, `tool "${name}"`)
  return {
    kind: 'function',
    name: toolNode(name),
    policy,
    pauseBefore: false,
    pauseAfter: false,
    status: 'waiting_tool',
    // Even if none is needed anymore: what a person said about a waiting call still counts.
    approval: planApproval(name, tool, { denied: denyCall, instead: resultOf }),
    ...(key === undefined ? {} : { key: chooseKey }),
    span: (call) => (tool.execute === undefined ? undefined : planTool(tool, call as PendingCall)),
    resolved: (result, call) => resultOf(tool, call as PendingCall, result),
    failed: ({ message }, call) => answer(call as PendingCall, { type: 'error', value: message }),
    shown: (call) => showCall(tool, call as PendingCall),
    report: reportCalls,
    unbegun: (call) => answer(call as PendingCall, { type: 'error', value: NOT_MADE }),
    run: (state, ctx) => runTool(setup, tool, state as unknown as OwnState, ctx as Context<PendingCall>),
  }

  async function chooseKey(call: unknown): Promise<string | undefined> {
    const read = await argumentsOf(tool, call as PendingCall)
    return 'input' in read ? key?.(read.input) : undefined
  }

  async function askOtherSide(idempotencyKey: string, given: unknown): Promise<Reconciled> {
    const call = given as PendingCall
    const read = await argumentsOf(tool, call)
    // It may have been executed while the arguments were still valid: the model must not be told that nothing was done.
    if (!('input' in read)) return { outcome: 'unknown' }
    const found = await reconcile?.(idempotencyKey, read.input)
    if (found?.outcome !== 'executed') return { outcome: found?.outcome ?? 'unknown' }
    return { outcome: 'executed', result: await resultOf(tool, call, found.result) }
  }
}

export const NOT_MADE = 'The call was not made: the run was ended before it began.'

export function toolNode(name: string): string {
  return `tool ${name}`
}

/** Why the current tools can't execute a call that is still open, in words for the person who is waiting. */
export function refuseCall(
  setup: AgentSetup,
  call: PendingCall,
  tool: Tool | undefined,
  begun = false,
): Refusal | undefined {
  const { name: agent, version } = setup.options
  const far = begun ? 'It was begun, and its outcome is unknown.' : 'It has not been completed.'
  if (tool === undefined) {
    return {
      reason: `The conversation is waiting for "${call.name}", which ${agent} ${version} no longer offers. ${far}`,
      remedy: `Bring the tool back, name its successor in toolAliases: { ${JSON.stringify(call.name)}: … }, or cancel the run and ask again.`,
    }
  }
  if (call.version === tool.version || tool.migrate !== undefined) return undefined
  return {
    reason: `The conversation is waiting for "${call.name}", which was requested from ${named(call.version)} of it. ${agent} ${version} has ${named(tool.version)}, which can't take over that request. ${far}`,
    remedy: `Give the tool migrate: (input, fromVersion) => input, run the version that asked for it, or cancel the run and ask again.`,
  }
}

function named(version: string | undefined): string {
  return version === undefined ? 'a version without a number' : `version ${version}`
}

async function runTool(setup: AgentSetup, tool: Tool, state: OwnState, ctx: Context<PendingCall>) {
  const call = ctx.input
  const reading = readCall(tool, call)
  const read = reading instanceof Promise ? await reading : reading
  // They were valid when the model asked for it: the model must not be told that nothing was done.
  if (!('input' in read) && internalsOf(ctx).isRepeat) throw changedUnderway(call)
  if ('refusal' in read) {
    const value = refuseCall(setup, call, tool)?.reason ?? 'The call does not fit the tool.'
    return answer(call, { type: 'error', value }, internalsOf(ctx).clock.now())
  }
  if ('error' in read) return answer(call, { type: 'error', value: read.error }, internalsOf(ctx).clock.now())
  const { input } = read
  if (tool.execute === undefined) return askCaller(tool, ctx)
  let changes: Readonly<Record<string, unknown>> = {}
  // Reading the arguments may have taken long: checked again immediately before the call.
  if (tool.effect !== 'read') for (let wait = secure(ctx); wait; wait = secure(ctx)) await wait
  const { callId } = call
  const { context } = ctx
  // Written out: an object of this size that begins with the properties of another takes ten times the memory.
  const own = {
    callId,
    toolCallId: callId,
    messages: state.messages,
    context,
    experimental_context: context,
    attempt: ctx.attempt,
    state: state as unknown as Readonly<Record<string, unknown>>,
    update: (update: Update) => {
      changes = joinUpdates(changes, update, setup.options.state ?? {})
    },
    emit: (value: unknown) => ctx.emit(value),
    thread: ctx.thread,
    branch: ctx.branch,
    tenant: ctx.tenant,
    runId: ctx.runId,
    store: ctx.store,
    step: ctx.step,
    transaction: ctx.transaction,
    pause: ((...asked: Parameters<typeof ctx.pause>) => {
      refuseLateWait(tool, call.name, 'asks a question')
      return ctx.pause(...asked)
    }) as typeof ctx.pause,
    run: ((...child: Parameters<typeof ctx.run>) => {
      refuseLateWait(tool, call.name, 'awaits a thread')
      return ctx.run(...child)
    }) as typeof ctx.run,
  }
  const result = await tool.execute(input, withLazyFields(own, internalsOf(ctx), LAZY))
  const answering = resultOf(tool, call, result, internalsOf(ctx).clock.now())
  return { ...changes, ...(answering instanceof Promise ? await answering : answering) }
}

/** Made when they are asked for: most tools never look at theirs. */
const LAZY = lazyFields(['idempotencyKey', 'abortSignal'], true)

function changedUnderway({ name, callId }: PendingCall): IncompatibleError {
  return new IncompatibleError(
    `A call of "${name}" may have been made before this run was resumed, and its arguments no longer fit the tool.`,
    'nondeterministic',
    'Run the thread with the version of the tool that was called, or find out what happened to the call and cancel the run.',
    { tool: name, callId },
  )
}

// What it did before it asked would be unknown when it continues: a person would have to say, for every single answer.
function refuseLateWait({ effect }: Tool, name: string, what: string): void {
  if (effect !== 'once' && effect !== 'reconcilable') return
  throw new InvalidProgramError(
    `Tool "${name}" ${what} while it runs, and its effect is '${effect}'.`,
    'effect',
    "Let it ask before it runs with needsApproval, or declare the tool 'read' and put the effect into context.step(…).",
    { tool: name },
  )
}

function secure(ctx: Context): Promise<void> | undefined {
  return internalsOf(ctx).secure()
}

/** A tool that the caller of the run executes: the run pauses until they provide the result. */
async function askCaller(tool: Tool, ctx: Context<PendingCall>) {
  const { callId, name, input, ready = input } = ctx.input
  const said = await ctx.pause<{ readonly result?: unknown; readonly error?: string }>(
    { tool: name, callId, input: ready },
    { jsonSchema: RESULT_SCHEMA, key: callId },
  )
  const now = internalsOf(ctx).clock.now()
  if (said.error !== undefined) return answer(ctx.input, { type: 'error', value: said.error }, now)
  return resultOf(tool, ctx.input, said.result ?? null, now)
}

const RESULT_SCHEMA: Value = {
  type: 'object',
  properties: { result: {}, error: { type: 'string' } },
  additionalProperties: false,
}

export function resultOf(tool: Tool, call: PendingCall, result: unknown, at?: number) {
  const { callId, input } = call
  return andThen(toToolOutput(tool, result, { callId, input }), (output) =>
    answer(call, output.type === 'json' ? { ...output, value: toPlain(output.value) ?? null } : output, at),
  )
}

export function denyCall(call: PendingCall, reason: string | undefined) {
  return answer(call, { type: 'denied', ...(reason === undefined ? {} : { reason }) })
}

/** The update that answers a call. */
export function answer(call: PendingCall, output: ToolOutput, at?: number) {
  const { callId, name, input, message: id } = call
  const part = { type: 'tool-result', callId, name, output, ...(call.edited ? { edited: input } : {}) } as const
  return { messages: [makeMessage('tool', [part], { id, ...(at === undefined ? {} : { at }) })] }
}
