import type { Value } from '../codec/value.js'
import type { OwnState, Summary } from './agent-state.js'
import { makeMessage, type Message } from './message.js'
import type { ToolCallPart, ToolResultPart } from './message-part.js'
import { toJson } from './plain.js'

/** The conversation as the model is shown it: instructions with memory, the summary, and what it does not cover. */
export function buildPrompt(
  instructions: string,
  memory: OwnState['memory'],
  summary: Summary | null,
  messages: readonly Message[],
): readonly Message[] {
  const earlier = validSummary(summary, messages)
  const system = [instructions, describeMemory(memory)].filter((text) => text !== '').join('\n\n')
  const recent = answerOpenCalls(messages.slice(promptStart(summary, messages)))
  return [
    ...(system === '' ? [] : [makeMessage('system', system, { id: 'system', at: 0 })]),
    ...(earlier === null ? [] : [makeMessage('user', describeSummary(earlier.text), { id: 'summary', at: 0 })]),
    ...recent,
  ]
}

/** How many messages the summary stands for. */
export function promptStart(summary: Summary | null, messages: readonly Message[]): number {
  return validSummary(summary, messages)?.upTo ?? 0
}

/** The summary, unless the messages that it stands for are not there. */
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
 * Providers refuse a call without its result. A run that was cancelled leaves such calls behind: they are answered
 * with what is known, for the model only.
 */
function answerOpenCalls(messages: readonly Message[]): readonly Message[] {
  const unanswered = findOpenCalls(messages)
  if (unanswered.size === 0) return messages
  return messages.flatMap((message, i) => {
    const open = unanswered.get(i)
    if (open === undefined) return [message]
    const results = open.map(
      ({ callId, name }): ToolResultPart => ({ type: 'tool-result', callId, name, output: UNFINISHED }),
    )
    return [message, makeMessage('tool', results, { id: `${message.id}-open`, at: message.at })]
  })
}

/** Calls without a result, by the place of their message. Some servers number the calls of every reply from 0 again. */
function findOpenCalls(messages: readonly Message[]): ReadonlyMap<number, readonly ToolCallPart[]> {
  const open = new Map<string, { readonly at: number; readonly call: ToolCallPart }>()
  const unanswered = new Map<number, ToolCallPart[]>()
  const give = ({ at, call }: { readonly at: number; readonly call: ToolCallPart }) => {
    const others = unanswered.get(at)
    if (others === undefined) unanswered.set(at, [call])
    else others.push(call)
  }
  for (let at = 0; at < messages.length; at++) {
    for (const part of (messages[at] as Message).parts) {
      if (part.type === 'tool-call' && part.providerExecuted !== true) {
        const earlier = open.get(part.callId)
        if (earlier !== undefined) give(earlier)
        open.set(part.callId, { at, call: part })
      } else if (part.type === 'tool-result') open.delete(part.callId)
    }
  }
  for (const one of open.values()) give(one)
  return unanswered
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
