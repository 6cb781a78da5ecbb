import type { Message, OpenPause } from '../../index.js'
import type { UiChunk } from './ui-chunk.js'
import { callOf, UiWriter } from './ui-writer.js'

/** A message as `useChat` has it. */
export interface UiMessage {
  readonly id: string
  readonly role: 'system' | 'user' | 'assistant'
  readonly parts: readonly UiPart[]
}

type UiPart = Record<string, unknown> & { type: string }

/** A conversation as `useChat` takes it: everything the agent said and did in answer to one message is one message. */
export function toUIMessages(messages: readonly Message[], pauses: readonly OpenPause[] = []): UiMessage[] {
  const made: UiMessage[] = []
  let turn: Message[] = []
  const endTurn = () => {
    const [first] = turn
    if (first !== undefined) made.push({ id: first.id, role: 'assistant', parts: assistantParts(turn, pauses) })
    turn = []
  }
  for (const message of messages) {
    if (message.role === 'assistant' || message.role === 'tool') turn.push(message)
    else {
      endTurn()
      made.push({ id: message.id, role: message.role, parts: userParts(message) })
    }
  }
  endTurn()
  return made
}

function userParts({ parts }: Message): UiPart[] {
  return parts.flatMap((part): UiPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    if (part.type !== 'file') return []
    const { mediaType, filename, data } = part
    const url =
      data.kind === 'url'
        ? data.url
        : data.kind === 'bytes'
          ? `data:${mediaType};base64,${Buffer.from(data.bytes).toString('base64')}`
          : undefined
    return url === undefined ? [] : [{ type: 'file', mediaType, url, ...(filename === undefined ? {} : { filename }) }]
  })
}

/** From the very pieces that a stream would send, so that a reload shows what was streamed. */
function assistantParts(turn: readonly Message[], pauses: readonly OpenPause[]): UiPart[] {
  const writer = new UiWriter()
  const parts: UiPart[] = []
  const at = (id: string) => parts.find((part) => part['toolCallId'] === id)
  for (const message of turn) for (const chunk of writer.message(message)) addChunk(parts, at, chunk)
  for (const { id, kind, question } of pauses) {
    const part = at(callOf(kind, question) ?? '')
    if (part?.['state'] === 'input-available') Object.assign(part, { state: 'approval-requested', approval: { id } })
  }
  return parts
}

function addChunk(parts: UiPart[], at: (id: string) => UiPart | undefined, chunk: UiChunk): void {
  switch (chunk.type) {
    case 'start-step':
      parts.push({ type: 'step-start' })
      return
    case 'text-delta':
    case 'reasoning-delta':
      parts.push({ type: chunk.type === 'text-delta' ? 'text' : 'reasoning', text: chunk.delta, state: 'done' })
      return
    case 'file':
    case 'source-url':
      parts.push({ ...chunk })
      return
    case 'tool-input-available': {
      const { toolCallId, toolName, input } = chunk
      parts.push({ type: `tool-${toolName}`, toolCallId, state: 'input-available', input })
      return
    }
    case 'tool-output-available':
      Object.assign(at(chunk.toolCallId) ?? {}, { state: 'output-available', output: chunk.output })
      return
    case 'tool-output-error':
      Object.assign(at(chunk.toolCallId) ?? {}, { state: 'output-error', errorText: chunk.errorText })
      return
    case 'tool-output-denied':
      Object.assign(at(chunk.toolCallId) ?? {}, { state: 'output-denied' })
      return
    default:
  }
}
