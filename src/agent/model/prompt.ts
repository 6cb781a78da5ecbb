import type { Value } from '../../codec/value.js'
import type { OwnState, Summary } from '../agent-state.js'
import { makeMessage, type Message } from '../messages/message.js'
import type { Part, ToolCallPart, ToolOutput, ToolResultPart } from '../messages/message-part.js'
import { toJson } from '../messages/plain.js'

/** The conversation as it is shown to the model: instructions with memory, the summary, and what it does not cover. */
export function buildPrompt(
  instructions: string,
  memory: OwnState['memory'],
  summary: Summary | null,
  messages: readonly Message[],
): readonly Message[] {
  const earlier = validSummary(summary, messages)
  const system = [instructions, describeMemory(memory)].filter((text) => text !== '').join('\n\n')
  // A copy first: the frozen lists that programs see are many times slower to read.
  const all = [...messages]
  const recent = mendMessages(earlier === null ? all : all.slice(earlier.upTo))
  const prompt: Message[] = []
  if (system !== '') prompt.push(makeMessage('system', system, { id: 'system', at: 0 }))
  if (earlier !== null) prompt.push(makeMessage('user', describeSummary(earlier.text), { id: 'summary', at: 0 }))
  // Not with `concat`, which takes five times as long.
  return [...prompt, ...recent]
}

/** How many messages the summary stands for. */
export function promptStart(summary: Summary | null, messages: readonly Message[]): number {
  return validSummary(summary, messages)?.upTo ?? 0
}

/** The summary, unless the messages it stands for are not there. */
export function validSummary(summary: Summary | null, messages: readonly Message[]): Summary | null {
  if (summary === null || summary.upTo > messages.length) return null
  const { upTo, last } = summary
  return last === undefined || messages[upTo - 1]?.id === last ? summary : null
}

function describeSummary(text: string): string {
  return `Summary of the conversation so far, in place of its older messages:\n\n${text}`
}

export function callsOf(message: Message): readonly ToolCallPart[] {
  return message.parts.filter((part) => part.type === 'tool-call' && part.providerExecuted !== true) as ToolCallPart[]
}

export function resultsOf(message: Message): readonly ToolResultPart[] {
  return message.parts.filter((part) => part.type === 'tool-result') as ToolResultPart[]
}

/**
 * The messages as the model must see them. Providers refuse a call without its result, and a cancelled run leaves such
 * calls behind: they are answered with what is known. If a person changed the arguments of a call, the result says so:
 * otherwise the model would talk about what it asked for.
 */
function mendMessages(messages: readonly Message[]): readonly Message[] {
  const { unanswered, edited } = findFlaws(messages)
  if (unanswered.size === 0 && edited.size === 0) return messages
  return messages.flatMap((message, i) => {
    if (edited.has(i)) return [{ ...message, parts: message.parts.map(showEdit) }]
    const open = unanswered.get(i)
    if (open === undefined) return [message]
    const results = open.map(
      ({ callId, name }): ToolResultPart => ({ type: 'tool-result', callId, name, output: UNFINISHED }),
    )
    return [message, makeMessage('tool', results, { id: `${message.id}-open`, at: message.at })]
  })
}

interface OpenCall {
  /** The place of its message. */
  readonly at: number
  readonly call: ToolCallPart
}

/** What was found in a conversation up to its end, to continue from when it has grown. */
interface Walk {
  messages: readonly Message[]
  readonly open: Map<string, OpenCall>
  /** Calls that were replaced by later ones with the same id. */
  readonly replaced: OpenCall[]
  readonly edited: Set<number>
}

/** The newest walk through each conversation, by its first message. */
const WALKS = new WeakMap<Message, Walk>()

/** By the places of their messages: calls without a result, and results of calls that a person changed. */
function findFlaws(messages: readonly Message[]) {
  const { open, replaced, edited } = walk(messages)
  const unanswered = new Map<number, ToolCallPart[]>()
  for (const { at, call } of [...replaced, ...open.values()]) {
    const others = unanswered.get(at)
    if (others === undefined) unanswered.set(at, [call])
    else others.push(call)
  }
  return { unanswered, edited }
}

/** Looks only at what was added since the last turn: messages never change, they are only added. */
function walk(messages: readonly Message[]): Walk {
  const [first] = messages
  const known = first && WALKS.get(first)
  const found: Walk =
    known && isStart(known.messages, messages)
      ? known
      : { messages: [], open: new Map(), replaced: [], edited: new Set() }
  let isFixed = true
  for (let at = found.messages.length; at < messages.length; at++) {
    const message = messages[at] as Message
    isFixed &&= Object.isFrozen(message)
    for (const part of message.parts) {
      if (part.type === 'tool-call' && part.providerExecuted !== true) {
        // Some servers number the calls of every reply from 0 again.
        const earlier = found.open.get(part.callId)
        if (earlier !== undefined) found.replaced.push(earlier)
        found.open.set(part.callId, { at, call: part })
      } else if (part.type === 'tool-result') {
        found.open.delete(part.callId)
        if (part.edited !== undefined) found.edited.add(at)
      }
    }
  }
  found.messages = messages
  // What is not frozen may be changed in place.
  if (first && isFixed) WALKS.set(first, found)
  else if (first) WALKS.delete(first)
  return found
}

function isStart(start: readonly Message[], messages: readonly Message[]): boolean {
  if (start.length > messages.length) return false
  for (let i = 0; i < start.length; i++) if (start[i] !== messages[i]) return false
  return true
}

function showEdit(part: Part): Part {
  if (part.type !== 'tool-result' || part.edited === undefined) return part
  const note = `A person changed the arguments before the call was made, to ${JSON.stringify(toJson(part.edited))}.`
  return { ...part, output: withNote(part.output, note) }
}

function withNote(output: ToolOutput, note: string): ToolOutput {
  switch (output.type) {
    case 'text':
    case 'error':
      return { ...output, value: `${note}\n${output.value}` }
    case 'json':
      return { ...output, type: 'text', value: `${note}\n${JSON.stringify(toJson(output.value))}` }
    case 'error-json':
      return { ...output, type: 'error', value: `${note}\n${JSON.stringify(toJson(output.value))}` }
    case 'content':
      return { ...output, value: [{ type: 'text', text: note }, ...output.value] }
    case 'denied':
      return output
  }
}

const UNFINISHED = {
  type: 'error',
  value: 'There is no result: the run was ended before it arrived. Whether the call took effect is not known.',
} as const

function describeMemory(memory: OwnState['memory']): string {
  const entries = Object.entries(memory)
  if (entries.length === 0) return ''
  return `What you know:\n${entries.map(([name, value]) => `- ${name}: ${describeValue(value)}`).join('\n')}`
}

function describeValue(value: Value): string {
  return typeof value === 'string' ? value : JSON.stringify(toJson(value))
}
