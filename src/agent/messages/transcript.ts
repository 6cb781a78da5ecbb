import type { Value } from '../../codec/value.js'
import type { Message } from './message.js'
import type { Part, ToolOutput } from './message-part.js'
import { toJson } from './plain.js'

const LONGEST_PART = 4000

/** A stretch of conversation as text, for the model that summarizes it. Never longer than `limit` characters. */
export function renderTranscript(messages: readonly Message[], before: string | undefined, limit: number): string {
  const earlier = before === undefined ? '' : `What happened before, as summarised earlier:\n${before}\n\n`
  const room = Math.max(200, limit - Math.min(earlier.length, limit / 2))
  // Each message gets at least its share, so that one long result does not push the others out.
  const share = Math.max(80, Math.min(LONGEST_PART, Math.floor(room / Math.max(1, messages.length))))
  let lines = messages.map((message) => renderMessage(message, LONGEST_PART))
  if (lines.join('\n').length > room) lines = messages.map((message) => renderMessage(message, share))
  const head = clip(earlier, Math.floor(limit / 2))
  return `${head}The conversation:\n${clip(lines.join('\n'), room)}`
}

const SPEAKERS = { system: 'System', user: 'User', assistant: 'Assistant', tool: 'Tool' } as const

function renderMessage({ role, parts }: Message, longest: number): string {
  const texts = parts.map(renderPart).filter((text) => text !== '')
  return `${SPEAKERS[role]}: ${clip(texts.join(' '), longest)}`
}

function renderPart(part: Part): string {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text
    case 'tool-call':
      return `[calls ${part.name} with ${part.raw ?? JSON.stringify(toJson(part.input))}]`
    case 'tool-result':
      return `[${part.name}${renderEdit(part.edited)} gave ${renderOutput(part.output)}]`
    case 'file':
      return `[file ${part.filename ?? part.mediaType}]`
    default:
      return ''
  }
}

function renderEdit(edited: Value | undefined): string {
  return edited === undefined ? '' : `, with arguments that a person changed to ${JSON.stringify(toJson(edited))},`
}

function renderOutput(output: ToolOutput): string {
  switch (output.type) {
    case 'text':
      return output.value
    case 'error':
      return `the error: ${output.value}`
    case 'json':
    case 'error-json':
      return JSON.stringify(toJson(output.value))
    case 'denied':
      return `a refusal by a person${output.reason === undefined ? '' : `: ${output.reason}`}`
    case 'content':
      return output.value.map((item) => (item.type === 'text' ? item.text : `[${item.type}]`)).join(' ')
  }
}

function clip(text: string, longest: number): string {
  if (text.length <= longest) return text
  const half = Math.max(20, Math.floor(longest / 2) - 3)
  return `${text.slice(0, half)} … ${text.slice(-half)}`.toWellFormed()
}
