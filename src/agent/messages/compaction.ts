import { isHoldfastError } from '../../core/errors.js'
import type { Context } from '../../runtime/step/context.js'
import { internalsOf } from '../../runtime/step/call/internals.js'
import type { FunctionNodePlan, State } from '../../runtime/program/program.js'
import type { CompactionOptions } from '../agent-options.js'
import type { OwnState, Summary } from '../agent-state.js'
import { estimateTextTokens, estimateTokens } from './estimate.js'
import { makeMessage, type Message, textOf } from './message.js'
import { callModel } from '../model/model.js'
import type { ModelRequest } from '../model/model-types.js'
import { callsOf, promptStart, resultsOf, validSummary } from '../model/prompt.js'
import { renderTranscript } from './transcript.js'
import { type AgentSetup, messageId, relayEvents, spend } from '../turn.js'

const DEFAULT_AT = 0.75
const DEFAULT_KEEP = 0.3
/** The part of the window that the request for a summary may fill. */
const REQUEST_PART = 0.8
/** For a request for a summary if no window is known: anything longer is shortened. */
const MOST_CHARACTERS = 10_000_000
/** English has three words per four tokens; other languages have fewer. */
const WORDS_PER_TOKEN = 0.5

const INSTRUCTIONS = `You keep the memory of a long conversation. Summarise the part of it that you are given, so that the conversation can go on without it. Keep every name, number, id, date and amount, what was decided and done, what the person wants, what was promised, and what is still open. Leave out greetings and repetition. Write plain text and nothing but the summary.`

/** Whether there is something left to summarize, and the last attempt at it did not just fail. */
export function canCompact(state: OwnState): boolean {
  const { messages, loop } = state
  if (loop.failedAt === messages.length) return false
  return safeCuts(messages, promptStart(state.summary, messages)).length > 0
}

/** Whether the model would be shown more messages than it should. */
function isTooMany({ maxMessages }: CompactionOptions, { messages, summary }: OwnState): boolean {
  return maxMessages !== undefined && messages.length - promptStart(summary, messages) > maxMessages
}

/**
 * Whether there are too many messages, or the prompt approaches the window: by the provider's count of the last one,
 * else by an estimate.
 */
export function isTooLong(setup: AgentSetup, state: OwnState, request: ModelRequest): boolean {
  const { compaction } = setup.options
  if (!compaction) return false
  if (isTooMany(compaction, state)) return true
  if (compaction.window === undefined) return false
  return promptTokens(setup, state, request) > compaction.window * (compaction.at ?? DEFAULT_AT)
}

/** Summarizes older turns, as a separate step. History stays complete; only what the model is shown changes. */
export function planCompactNode(setup: AgentSetup): FunctionNodePlan {
  return {
    kind: 'function',
    name: 'compact',
    policy: { effect: 'read', retry: { attempts: 1 } },
    pauseBefore: false,
    pauseAfter: false,
    span: () => undefined,
    run: (state: State, ctx: Context) => compact(setup, state as unknown as OwnState, ctx),
  }
}

async function compact(setup: AgentSetup, state: OwnState, ctx: Context) {
  const options = setup.options.compaction || {}
  const { messages } = state
  const summary = validSummary(state.summary, messages)
  const failed = { loop: { next: 'model', failedAt: messages.length } }
  const sizes = measureSizes(setup, options, state)
  const from = promptStart(summary, messages)
  const upTo = chooseCut(messages, from, sizes)
  if (upTo === undefined) return failed
  const part = messages.slice(from, upTo)
  const text = renderTranscript(part, summary?.text, sizes.characters)
  const maxOutputTokens = options.maxSummaryTokens ?? sizes.summary
  // Stated in words too: a summary that is cut off at the limit lacks what happened last.
  const limit = ` Use at most ${Math.floor(maxOutputTokens * WORDS_PER_TOKEN)} words.`
  const internals = internalsOf(ctx)
  const relay = relayEvents(internals, messageId(ctx, internals.path))
  const { retry, timeoutMs, idleTimeoutMs, stream } = setup.options
  try {
    const reply = await callModel(
      options.model ?? setup.options.model,
      {
        messages: [
          makeMessage('system', `${options.instructions ?? INSTRUCTIONS}${limit}`, { id: 'system', at: 0 }),
          makeMessage('user', text, { id: 'transcript', at: 0 }),
        ],
        settings: { maxOutputTokens },
      },
      {
        clock: internals.clock,
        random: internals.random,
        watch: internals.watch,
        step: internals.path,
        signal: ctx.abortSignal,
        messageId: messageId(ctx, internals.path),
        // Its words are not a reply to anybody: only the fact that it is retried is reported.
        onEvent: (event) => (event.type === 'failure' ? relay(event) : undefined),
        ...(retry === undefined ? {} : { retry }),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
        ...(stream === undefined ? {} : { stream }),
      },
    )
    const written = textOf(reply.message).trim()
    const { spent, ...sums } = spend(setup, state, ctx, reply, false)
    const shorter = estimateTextTokens(written) < estimateTokens(part) + estimateTextTokens(summary?.text ?? '')
    const whole = reply.finish !== 'content-filter'
    if (written === '' || !shorter || !whole) return { ...sums, loop: { ...failed.loop, ...(spent && { spent }) } }
    const last = messages[upTo - 1]?.id
    const made: Summary = { text: written, upTo, at: internals.clock.now(), ...(last === undefined ? {} : { last }) }
    return { ...sums, summary: made, loop: { next: 'model', ...(spent && { spent }) } }
  } catch (error) {
    ctx.abortSignal.throwIfAborted()
    // A conversation must not end because its summary failed.
    if (isHoldfastError(error) && error.code !== 'model') throw error
    return failed
  }
}

interface Sizes {
  /** How many recent messages stay as they are. */
  readonly count: number
  /** Tokens of recent messages that stay as they are. */
  readonly keep: number
  /** Tokens that may be summarized at once. */
  readonly atOnce: number
  /** Characters of the request for a summary. */
  readonly characters: number
  readonly summary: number
  /** The size of one message. */
  readonly of: (message: Message) => number
}

function measureSizes(setup: AgentSetup, options: CompactionOptions, state: OwnState): Sizes {
  const ratio = Math.max(1, state.loop.measured?.ratio ?? 1)
  const of = (message: Message) => ratio * setup.sizes.of([message])
  const { messages, summary } = state
  const shown = messages.slice(promptStart(summary, messages))
  // A provider that has just rejected this prompt accepts less than was declared, or nothing was declared: half of it
  // should fit.
  const byCount = isTooMany(options, state)
  const refused = (options.window === undefined && !byCount) || state.loop.overflowAt === messages.length
  const half = refused ? shown.reduce((all, message) => all + of(message), 0) / 2 : Number.POSITIVE_INFINITY
  const window = Math.min(options.window ?? Number.POSITIVE_INFINITY, half)
  const { maxMessages = 0, keepMessages = Math.max(1, Math.floor(maxMessages / 2)) } = options
  return {
    count: byCount ? keepMessages : Number.POSITIVE_INFINITY,
    keep: window * (options.keep ?? DEFAULT_KEEP),
    // One refusal leads to one summary, so it must reach far enough: long messages are shortened for it.
    atOnce: refused ? Number.POSITIVE_INFINITY : window * REQUEST_PART,
    characters: Math.max(500, Math.min(MOST_CHARACTERS, Math.floor(((window * REQUEST_PART) / ratio) * 3))),
    summary: Math.max(64, Math.min(1024, Math.floor(window / 8))),
    of,
  }
}

function promptTokens({ sizes }: AgentSetup, state: OwnState, request: ModelRequest): number {
  const { messages, loop, summary } = state
  const { measured } = loop
  const ratio = Math.max(1, measured?.ratio ?? 1)
  if (measured && measured.from === promptStart(summary, messages) && measured.count <= messages.length) {
    return measured.tokens + ratio * sizes.of(messages.slice(measured.count))
  }
  return ratio * sizes.of(request.messages, request.tools)
}

/**
 * Where the verbatim part begins: at the oldest place from which everything fits into what may be kept, a user's
 * message if there is one. Earlier, if what would be summarized is too much for one request.
 */
function chooseCut(messages: readonly Message[], from: number, sizes: Sizes): number | undefined {
  const cuts = safeCuts(messages, from)
  if (cuts.length === 0) return undefined
  const after: number[] = []
  for (let i = messages.length - 1, sum = 0; i >= from; i--) after[i] = sum += sizes.of(messages[i] as Message)
  const fitting = cuts.filter((cut) => (after[cut] ?? 0) <= sizes.keep && messages.length - cut <= sizes.count)
  const wanted = fitting.find((cut) => messages[cut]?.role === 'user') ?? fitting[0] ?? (cuts.at(-1) as number)
  const before = (cut: number) => (after[from] ?? 0) - (after[cut] ?? 0)
  if (before(wanted) <= sizes.atOnce) return wanted
  return cuts.findLast((cut) => cut <= wanted && before(cut) <= sizes.atOnce) ?? cuts[0]
}

/** Places where a conversation can be cut without separating a call from its result. */
export function safeCuts(messages: readonly Message[], from: number): readonly number[] {
  const open = new Set<string>()
  const cuts: number[] = []
  for (let i = from; i < messages.length; i++) {
    const message = messages[i] as Message
    if (i > from && open.size === 0 && message.role !== 'tool') cuts.push(i)
    for (const { callId } of callsOf(message)) open.add(callId)
    for (const { callId } of resultsOf(message)) open.delete(callId)
    // A user speaks only when a run is over: what was open then stays open forever.
    if (message.role === 'user') open.clear()
  }
  return cuts
}
