import { setOwn, type Value } from '../../../codec/value.js'
import { InvalidValueError } from '../../../core/errors.js'
import type { FromOptions } from '../ai-sdk/from-ai-sdk.js'
import { type Message, makeMessage, type Role } from '../message.js'
import type { Part, ProviderData, ToolCallPart } from '../message-part.js'
import type { OpenAiContentPart, OpenAiMessage, OpenAiToolCall } from './openai-types.js'
import { fromBase64, readDataUrl, toPlain } from '../plain.js'
import { readToolInput } from '../../tools/tool-input.js'

type Bag = Readonly<Record<string, unknown>>

const ROLES: Readonly<Record<string, Role>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
  function: 'tool',
}

const KNOWN_FIELDS = [
  'role',
  'content',
  'name',
  'refusal',
  'tool_calls',
  'tool_call_id',
  'reasoning_content',
  'function_call',
]

/**
 * Holdfast messages from OpenAI chat messages, requests and replies alike, one for one. A `developer` message becomes a
 * system message that remembers it; unknown fields are kept and sent out again. Text in its own array comes back as
 * plain text; the older `function_call` and role `function` permanently become tool calls.
 */
export function fromOpenAiMessages(messages: readonly OpenAiMessage[], options: FromOptions = {}): Message[] {
  const names = new Map<string, string>()
  const legacy = new Map<string, string>()
  return messages.map((message, i) => {
    const path = `$[${i}]`
    const role = ROLES[message.role]
    if (role === undefined) {
      const said = JSON.stringify(message.role)
      throw new InvalidValueError(`${path}.role`, `can't be ${said}`, `Use one of: ${Object.keys(ROLES).join(', ')}.`)
    }
    const parts = role === 'tool' ? [toolResult(message, names, legacy, path)] : partsOf(message, role, path, i)
    for (const part of parts) {
      if (part.type !== 'tool-call') continue
      names.set(part.callId, part.name)
      if (message['function_call']) legacy.set(part.name, part.callId)
    }
    return makeMessage(role, parts, {
      ...options.stamp?.(i),
      ...(typeof message.name === 'string' && role !== 'tool' ? { name: message.name } : {}),
      ...withFields(message, KNOWN_FIELDS, message.role === 'developer' ? { role: 'developer' } : {}),
    })
  })
}

function partsOf(message: OpenAiMessage, role: Role, path: string, index: number): Part[] {
  const parts: Part[] = []
  if (role === 'assistant' && filled(message.reasoning_content)) {
    parts.push({ type: 'reasoning', text: message.reasoning_content })
  }
  parts.push(...contentOf(message.content, `${path}.content`))
  if (role !== 'assistant') return parts
  // Empty text stands for nothing at all where there is nothing else.
  if (message.content === '' && !filled(message.refusal) && !message.tool_calls?.length && !message['function_call']) {
    parts.pop()
  }
  if (filled(message.refusal)) parts.push({ type: 'refusal', text: message.refusal })
  message.tool_calls?.forEach((call, i) => parts.push(toolCall(call, `${path}.tool_calls[${i}]`)))
  const older = message['function_call'] as { readonly name?: unknown; readonly arguments?: unknown } | null | undefined
  if (older && typeof older.name === 'string') {
    const input = readToolInput(typeof older.arguments === 'string' ? older.arguments : '')
    parts.push({ type: 'tool-call', callId: `call_${index}`, name: older.name, ...input })
  }
  return parts
}

function contentOf(content: OpenAiMessage['content'], path: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (content === null || content === undefined) return []
  if (!Array.isArray(content)) throw misfit(path, 'must be text or an array of parts')
  return content.map((part: OpenAiContentPart, i) => contentPart(part, `${path}[${i}]`))
}

function contentPart(part: OpenAiContentPart, path: string): Part {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: textAt(part, 'text', path), ...withFields(part, ['type', 'text']) }
    case 'refusal':
      return { type: 'refusal', text: textAt(part, 'refusal', path) }
    case 'image_url': {
      const image = bagAt(part['image_url'], `${path}.image_url`)
      const url = textAt(image, 'url', `${path}.image_url`)
      const detail = typeof image['detail'] === 'string' ? { imageDetail: image['detail'] } : {}
      const metadata = withFields(part, ['type', 'image_url'], detail)
      const inline = readDataUrl(url)
      if (inline === undefined) return { type: 'file', mediaType: 'image/*', data: { kind: 'url', url }, ...metadata }
      return { type: 'file', mediaType: inline.mediaType, data: { kind: 'bytes', bytes: inline.bytes }, ...metadata }
    }
    case 'input_audio': {
      const audio = bagAt(part['input_audio'], `${path}.input_audio`)
      const bytes = fromBase64(textAt(audio, 'data', `${path}.input_audio`))
      const mediaType = audio['format'] === 'mp3' ? 'audio/mpeg' : `audio/${String(audio['format'] ?? 'wav')}`
      return { type: 'file', mediaType, data: { kind: 'bytes', bytes }, ...withFields(part, ['type', 'input_audio']) }
    }
    case 'file':
      return filePart(part, path)
    default:
      throw misfit(`${path}.type`, `is unknown: ${JSON.stringify(part.type)}`)
  }
}

function filePart(part: OpenAiContentPart, path: string): Part {
  const file = bagAt(part['file'], `${path}.file`)
  const rest = {
    ...(typeof file['filename'] === 'string' ? { filename: file['filename'] } : {}),
    ...withFields(part, ['type', 'file']),
  }
  if (typeof file['file_id'] === 'string') {
    const data = { kind: 'reference', reference: { openai: file['file_id'] } } as const
    return { type: 'file', mediaType: 'application/octet-stream', data, ...rest }
  }
  const text = textAt(file, 'file_data', `${path}.file`)
  const inline = readDataUrl(text) ?? { mediaType: 'application/pdf', bytes: fromBase64(text) }
  return { type: 'file', mediaType: inline.mediaType, data: { kind: 'bytes', bytes: inline.bytes }, ...rest }
}

function toolCall(call: OpenAiToolCall, path: string): ToolCallPart {
  const callId = textAt(call, 'id', path)
  if (call.type === 'custom') {
    const custom = bagAt(call['custom'], `${path}.custom`)
    const name = textAt(custom, 'name', `${path}.custom`)
    const metadata = withFields(call, ['id', 'type', 'custom', 'index'], { custom: true })
    return { type: 'tool-call', callId, name, input: textAt(custom, 'input', `${path}.custom`), ...metadata }
  }
  const called = bagAt(call['function'], `${path}.function`)
  const name = textAt(called, 'name', `${path}.function`)
  const input = readToolInput(typeof called['arguments'] === 'string' ? called['arguments'] : '')
  return { type: 'tool-call', callId, name, ...input, ...withFields(call, ['id', 'type', 'function', 'index']) }
}

function toolResult(
  message: OpenAiMessage,
  names: ReadonlyMap<string, string>,
  legacy: ReadonlyMap<string, string>,
  path: string,
): Part {
  const given = typeof message.name === 'string' ? message.name : undefined
  const older = message.role === 'function' && given !== undefined ? (legacy.get(given) ?? given) : undefined
  const callId = older ?? textAt(message, 'tool_call_id', path)
  // A window cut out of a conversation may lack the call; its name is then unknown.
  const name = names.get(callId) ?? given ?? 'unknown'
  const parts = contentOf(message.content, `${path}.content`)
  const texts = parts.filter((part) => part.type === 'text')
  if (Array.isArray(message.content)) {
    return {
      type: 'tool-result',
      callId,
      name,
      output: { type: 'content', value: texts.map(({ text }) => ({ type: 'text', text })) },
    }
  }
  return { type: 'tool-result', callId, name, output: { type: 'text', value: texts[0]?.text ?? '' } }
}

/** Unknown fields, kept for the way back. */
function withFields(
  owner: Bag,
  known: readonly string[],
  more: Readonly<Record<string, Value>> = {},
): { readonly providerMetadata?: ProviderData } {
  const fields: Record<string, Value> = {}
  for (const [key, value] of Object.entries(owner)) {
    const plain = known.includes(key) || value === null ? undefined : toPlain(value)
    if (plain !== undefined) setOwn(fields, key, plain)
  }
  const data = { ...more, ...(Object.keys(fields).length === 0 ? {} : { fields }) }
  return Object.keys(data).length === 0 ? {} : { providerMetadata: { openai: data } }
}

function filled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function bagAt(value: unknown, path: string): Bag {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Bag
  throw misfit(path, 'must be an object')
}

function textAt(owner: Bag, field: string, path: string): string {
  const value = owner[field]
  if (typeof value === 'string') return value
  throw misfit(`${path}.${field}`, 'must be a string')
}

function misfit(path: string, problem: string): InvalidValueError {
  return new InvalidValueError(path, problem, "See OpenAI's chat completion messages.")
}
