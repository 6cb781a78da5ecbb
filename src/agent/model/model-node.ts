import { isDeepStrictEqual } from 'node:util'
import type { Value } from '../../codec/value.js'
import { andThen, forEachInTurn, nowOrLater } from '../../core/async/at-once.js'
import { isHoldfastError } from '../../core/errors.js'
import type { Context } from '../../runtime/step/context.js'
import { internalsOf } from '../../runtime/step/call/internals.js'
import type { FunctionNodePlan, State } from '../../runtime/program/program.js'
import type { AgentOptions } from '../agent-options.js'
import type { Ending, Loop, Measured, OwnState, PendingCall } from '../agent-state.js'
import { canCompact, isTooLong } from '../messages/compaction.js'
import { makeMessage, type Message } from '../messages/message.js'
import type { Part, ToolCallPart } from '../messages/message-part.js'
import { callModel } from './model.js'
import { prepareCall } from './model-call.js'
import type { ModelReply, ModelRequest } from './model-types.js'
import { callsOf, promptStart } from './prompt.js'
import { toToolName } from '../tools/tool-set.js'
import { type AgentSetup, messageId, reportCalls, spend, turnContext } from '../turn.js'

const DEFAULT_MAX_TURNS = 50
/** More than any model needs at a time, and few enough that a broken or hostile one can't block the process. */
const DEFAULT_MAX_CALLS = 128

/** One turn: asks the model and decides what follows from its reply. A turn that was not recorded is repeated. */
export function planModelNode(setup: AgentSetup): FunctionNodePlan {
  return {
    kind: 'function',
    name: 'model',
    // Calls are retried by the model's own rules, considering what the provider says about waiting.
    policy: { effect: 'read', retry: { attempts: 1 } },
    pauseBefore: false,
    pauseAfter: false,
    // Its model call has one.
    span: () => undefined,
    report: reportCalls,
    run: (state: State, ctx: Context) => takeTurn(setup, state as unknown as OwnState, ctx),
  }
}

type LoopUpdate = Partial<Loop>

/** What changes because the run was taken over. */
interface Taken {
  readonly changes: { readonly memory?: OwnState['memory']; readonly resumes?: OwnState['resumes'] }
  readonly loop: LoopUpdate
}

async function takeTurn(setup: AgentSetup, before: OwnState, ctx: Context) {
  const { options } = setup
  const taking = noteResume(setup, before, ctx)
  const taken = taking instanceof Promise ? await taking : taking
  const state = withChanges(before, taken.changes)
  const update = (loop: LoopUpdate, rest: object = {}) => ({
    ...taken.changes,
    ...rest,
    loop: { ...taken.loop, ...loop },
  })
  const spoke = spokeLast(before, ctx)
  if (spoke) {
    const verdict = await judge(setup, state, spoke, ctx)
    if ('ended' in verdict) return update({ next: 'end', calls: [], spoke: null }, verdict)
    return update({ next: 'model', calls: [], spoke: null }, { messages: [verdict.more] })
  }
  const ending = endBefore(setup, state, ctx)
  const ended = ending instanceof Promise ? await ending : ending
  if (ended) return update({ next: 'end', calls: [] }, { ended })

  const preparing = prepareCall(setup, state, ctx)
  const call = preparing instanceof Promise ? await preparing : preparing
  const { messages } = state
  const mayCompact = () => options.compaction !== false && canCompact(state)
  if (isTooLong(setup, state, call.request) && mayCompact()) return update({ next: 'compact', calls: [] })
  let reply: ModelReply
  try {
    reply = await callModel(call.model, call.request, call.options)
  } catch (error) {
    const isFirst = state.loop.overflowAt !== messages.length
    if (!isContextTooLong(error) || !isFirst || !mayCompact()) throw error
    return update({ next: 'compact', calls: [], overflowAt: messages.length })
  }
  const reading = readReply(setup, reply.message, call.shown, ctx)
  const { calls, message, refused } = reading instanceof Promise ? await reading : reading
  const { spent, ...sums } = spend(setup, state, ctx, reply, true)
  const isDone = calls.length === 0 && refused.length === 0
  const measured = measure(setup, state, call.request, reply, messages.length + 1)
  // The author's code may fail: the reply and its cost are recorded before it is asked.
  const isJudged = isDone && options.isComplete !== undefined
  const next = calls.length > 0 ? 'tools' : isDone && !isJudged ? 'end' : 'model'
  const said = [message, ...refused]
  return update(
    {
      next,
      calls,
      ...(spent && { spent }),
      measured,
      ...(isJudged ? { spoke: { count: messages.length + said.length, ending: endingOf(reply) } } : {}),
    },
    {
      messages: said,
      turn: state.turn + 1,
      ...sums,
      ...versionsIfChanged(setup, state),
      ...(next === 'end' ? { ended: endingOf(reply) } : {}),
    },
  )
}

function withChanges(state: OwnState, changes: Taken['changes']): OwnState {
  if (changes === NO_CHANGES) return state
  return { ...state, ...changes, memory: { ...state.memory, ...changes.memory } }
}

/** How the last reply would end the run, if `isComplete` has yet to be asked. A later message makes it obsolete. */
function spokeLast({ loop, messages }: OwnState, { runId: run }: Context): Ending | undefined {
  const { spoke } = loop
  return spoke && loop.run === run && spoke.count === messages.length ? spoke.ending : undefined
}

/** What a reply without calls leads to: the end, or what the agent's author says about it. */
async function judge(
  { options }: AgentSetup,
  state: OwnState,
  ending: Ending,
  ctx: Context,
): Promise<{ readonly ended: Ending } | { readonly more: Message }> {
  const verdict = await options.isComplete?.(turnContext(state, ctx))
  if (verdict === true) return { ended: COMPLETE }
  if (typeof verdict !== 'string') return { ended: ending }
  const { maxTurns = DEFAULT_MAX_TURNS } = options
  // Nobody would answer it anymore.
  if (state.turn >= maxTurns) return { ended: tookAll(maxTurns) }
  const { path, clock } = internalsOf(ctx)
  return { more: makeMessage('user', verdict, { id: messageId(ctx, path, 1), at: clock.now() }) }
}

function tookAll(maxTurns: number): Ending {
  return { reason: 'max-turns', message: `The run reached its limit of ${maxTurns} turns.` }
}

const COMPLETE: Ending = { reason: 'complete', message: 'The agent reached its goal.' }

/** A run that was resumed: its memory is refreshed, and what it did not have to spend again is counted. */
function noteResume(setup: AgentSetup, state: OwnState, ctx: Context): Taken | Promise<Taken> {
  const { claim, path } = internalsOf(ctx)
  const { loop } = state
  const isNew = loop.claim !== claim || loop.run !== ctx.runId
  const taken: LoopUpdate = isNew ? { run: ctx.runId, claim } : {}
  // An agent inside another program may begin long after the run was resumed.
  const resumed = loop.claim !== claim && (loop.run === ctx.runId || (ctx.attempt > 1 && !path.includes('/')))
  return resumed ? countResume(setup, state, ctx, taken) : { changes: NO_CHANGES, loop: taken }
}

const NO_CHANGES: Taken['changes'] = {}

async function countResume(setup: AgentSetup, state: OwnState, ctx: Context, loop: LoopUpdate): Promise<Taken> {
  const { count, tokensSaved } = state.resumes
  const { input, output } = state.runUsage
  internalsOf(ctx).watch.count('holdfast.tokens.saved', input + output)
  const resumes = { count: count + 1, tokensSaved: tokensSaved + input + output }
  const memory = await setup.options.onResume?.(turnContext(state, ctx))
  return { changes: { resumes, ...(memory ? { memory: knownOf(memory) } : {}) }, loop }
}

/** A key that is not mentioned stays as it is. */
function knownOf(memory: Readonly<Record<string, Value | undefined>>): OwnState['memory'] {
  return Object.fromEntries(Object.entries(memory).filter((entry): entry is [string, Value] => entry[1] !== undefined))
}

/** Whether the run ends before another call, and why. */
function endBefore(
  { options }: AgentSetup,
  state: OwnState,
  ctx: Context,
): Ending | Promise<Ending | undefined> | undefined {
  const { isComplete } = options
  const isAfterTools = state.turn > 0 && state.messages.at(-1)?.role === 'tool'
  if (isComplete === undefined || !isAfterTools) return endByLimit(options, state)
  return andThen(nowOrLater(isComplete(turnContext(state, ctx))), (verdict) =>
    verdict === true ? COMPLETE : endByLimit(options, state),
  )
}

function endByLimit({ maxTurns = DEFAULT_MAX_TURNS, budget }: AgentOptions, state: OwnState): Ending | undefined {
  if (state.turn >= maxTurns) {
    return tookAll(maxTurns)
  }
  const per = budget?.per ?? 'run'
  const { total, cost } = per === 'run' ? state.runUsage : state.usage
  if (budget?.tokens !== undefined && total >= budget.tokens) {
    return { reason: 'token-budget', message: `The ${per} used ${total} of ${budget.tokens} tokens.` }
  }
  if (budget?.cost !== undefined && cost >= budget.cost) {
    return { reason: 'cost-budget', message: `The ${per} cost ${cost} of ${budget.cost}.` }
  }
  return undefined
}

/** The message to keep, the calls to execute, and results for those that can't be. */
function readReply(setup: AgentSetup, reply: Message, shown: readonly string[], ctx: Context) {
  const { path, clock } = internalsOf(ctx)
  const { message, asked } = nameCalls(setup, reply)
  const calls: PendingCall[] = []
  const refused: Message[] = []
  const { maxCallsPerReply = DEFAULT_MAX_CALLS } = setup.options
  const all = callsOf(message)
  /** Tools whose check already took too long in this reply: each further one would delay everything as long. */
  const slow = new Set<string>()
  let i = 0
  const reading = forEachInTurn(all, (call) => {
    const at = i++
    const { callId, name, input, version } = call
    // Looked up as the model wrote it: the name in the message may have been changed so that it can be sent back.
    const checking =
      at >= maxCallsPerReply
        ? { error: tooManyCalls(all.length, maxCallsPerReply) }
        : slow.has(name)
          ? { error: `Another call of ${name} in this reply could not be checked in time. This one was not made.` }
          : setup.tools.readInput(asked.get(callId) ?? call, reply.finish?.reason)
    return andThen(checking, (read) => {
      const id = messageId(ctx, path, at + 1)
      if ('isSlow' in read) slow.add(name)
      const hidden = !shown.includes(name) && !('error' in read)
      if (hidden || 'error' in read) {
        const value = 'error' in read ? read.error : `The tool ${JSON.stringify(name)} is not available now.`
        const part: Part = { type: 'tool-result', callId, name, output: { type: 'error', value } }
        refused.push(makeMessage('tool', [part], { id, at: clock.now() }))
      } else {
        calls.push({ callId, name, input, ...(version === undefined ? {} : { version }), message: id })
      }
      return undefined
    })
  })
  return andThen(reading, () => ({ message, calls, refused }))
}

function tooManyCalls(made: number, most: number): string {
  return `This reply made ${made} calls, and at most ${most} of one reply are carried out: the first ${most} were, this one was not. Make fewer calls at a time.`
}

/**
 * Adds the tools' versions to the calls, our own ids if a server gave none or reused one, and names that can be sent
 * back: providers refuse a whole conversation for one call of `multi_tool_use.parallel`. A call that appears twice with
 * the same id was sent twice by the server: a payment must not be made twice because of that.
 */
function nameCalls({ tools }: AgentSetup, reply: Message) {
  const asked = new Map<string, ToolCallPart>()
  const parts = reply.parts.flatMap((part, i): Part[] => {
    if (part.type !== 'tool-call') return [part]
    const first = part.callId === '' ? undefined : asked.get(part.callId)
    if (first !== undefined && isSameCall(first, part)) return []
    const callId = part.callId === '' || first !== undefined ? `${reply.id}-${i}` : part.callId
    asked.set(callId, part)
    const version = tools.get(part.name)?.version
    const name = toToolName(part.name)
    return [{ ...part, callId, name, ...(version === undefined ? {} : { version }) } satisfies ToolCallPart]
  })
  return { message: { ...reply, parts }, asked }
}

function isSameCall(one: ToolCallPart, other: ToolCallPart): boolean {
  return one.name === other.name && one.raw === other.raw && isDeepStrictEqual(one.input, other.input)
}

function measure(setup: AgentSetup, state: OwnState, request: ModelRequest, reply: ModelReply, count: number) {
  const { compaction } = setup.options
  // Estimating means looking at every character of what is new: only if there is a window to keep within.
  if (!compaction || compaction.window === undefined || reply.usage.basis !== 'provider') return null
  const estimate = setup.sizes.of(request.messages, request.tools)
  const measured: Measured = {
    tokens: reply.usage.input + reply.usage.output,
    count,
    from: promptStart(state.summary, state.messages),
    ratio: Math.round(Math.min(4, Math.max(0.5, reply.usage.input / Math.max(1, estimate))) * 1000) / 1000,
  }
  return measured
}

function versionsIfChanged({ tools }: AgentSetup, state: OwnState): Partial<OwnState> {
  const versions = tools.versions()
  const same = JSON.stringify(versions) === JSON.stringify(state.toolVersions)
  return same ? {} : { toolVersions: versions }
}

function endingOf(reply: ModelReply): Ending {
  switch (reply.finish) {
    case 'stop':
    case 'tool-calls':
      return { reason: 'finished', message: 'The model had nothing more to do.' }
    case 'length':
      return { reason: 'length', message: 'The reply reached its length limit.' }
    case 'content-filter':
      return { reason: 'content-filter', message: 'The provider withheld the reply.' }
    default:
      return { reason: 'other', message: `The model ended its reply: ${reply.message.finish?.raw ?? reply.finish}.` }
  }
}

function isContextTooLong(error: unknown): boolean {
  return isHoldfastError(error, 'model') && error.data.kind === 'context-too-long'
}
