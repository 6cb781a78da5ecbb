import type { Message, Part } from '../../index.js'
import { makeMessage, type ToolOutput } from '../../agent/messages/index.js'
import { HttpProblem } from '../http/problem.js'

type Bag = Readonly<Record<string, unknown>>

/** A message as LangChain writes it. */
export interface ChainMessage {
  readonly type: string
  readonly id: string
  readonly content: unknown
  readonly [field: string]: unknown
}

const TYPES = { user: 'human', assistant: 'ai', system: 'system', tool: 'tool' } as const

/** A message of ours in LangChain's form, by the same id. */
export function toChain(message: Message): ChainMessage {
  const { id, role, name } = message
  const base = {
    id,
    type: TYPES[role],
    ...(name === undefined ? {} : { name }),
    additional_kwargs: {},
    response_metadata: {},
  }
  if (role === 'tool') {
    const result = message.parts.find((part) => part.type === 'tool-result')
    const output: ToolOutput = result?.output ?? { type: 'text', value: '' }
    return {
      ...base,
      content: textOfOutput(output),
      tool_call_id: result?.callId ?? '',
      name: result?.name ?? '',
      status: output.type === 'error' || output.type === 'error-json' || output.type === 'denied' ? 'error' : 'success',
    }
  }
  const calls = message.parts.flatMap((part) =>
    part.type === 'tool-call' ? [{ id: part.callId, name: part.name, args: part.input, type: 'tool_call' }] : [],
  )
  const { usage } = message
  return {
    ...base,
    content: contentOf(message.parts),
    ...(role === 'assistant' ? { tool_calls: calls, invalid_tool_calls: [] } : {}),
    ...(usage === undefined
      ? {}
      : { usage_metadata: { input_tokens: usage.input, output_tokens: usage.output, total_tokens: usage.total } }),
  }
}

function contentOf(parts: readonly Part[]): unknown {
  const content = parts.flatMap((part): Bag[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    if (part.type !== 'file') return []
    const { data, mediaType } = part
    const url =
      data.kind === 'url'
        ? data.url
        : data.kind === 'bytes'
          ? `data:${mediaType};base64,${Buffer.from(data.bytes).toString('base64')}`
          : undefined
    return url === undefined ? [] : [{ type: 'image_url', image_url: { url } }]
  })
  // Text alone is a text: that is what most clients show.
  return content.every(({ type }) => type === 'text') ? content.map(({ text }) => text).join('') : content
}

function textOfOutput(output: ToolOutput): string {
  if (output.type === 'denied') return output.reason ?? 'The call was denied.'
  return typeof output.value === 'string' ? output.value : JSON.stringify(output.value)
}

/** Messages that a client sent, as an agent takes them. */
export function fromChain(given: unknown, path: string): readonly Message[] {
  const all: readonly unknown[] = Array.isArray(given) ? given : [given]
  return all.map((one, i) => readMessage(one, `${path}[${i}]`))
}

const ROLES: Readonly<Record<string, Message['role']>> = {
  human: 'user',
  user: 'user',
  ai: 'assistant',
  assistant: 'assistant',
  AIMessageChunk: 'assistant',
  system: 'system',
  tool: 'tool',
}

function readMessage(given: unknown, path: string): Message {
  if (typeof given === 'string') return makeMessage('user', given)
  const { type, role: named, id, content, name, tool_calls: calls, tool_call_id: callId } = (given ?? {}) as Bag
  const role = ROLES[String(type ?? named)]
  if (role === undefined) throw wrong(path, 'must have the type human, ai, system or tool')
  const options = {
    ...(typeof id === 'string' && id !== '' ? { id } : {}),
    ...(typeof name === 'string' ? { name } : {}),
  }
  if (role === 'tool') {
    const value = typeof content === 'string' ? content : JSON.stringify(content ?? '')
    const output: ToolOutput = { type: 'text', value }
    return makeMessage(
      role,
      [{ type: 'tool-result', callId: String(callId), name: String(name ?? ''), output }],
      options,
    )
  }
  const parts: Part[] = readContent(content, path)
  for (const call of Array.isArray(calls) ? (calls as readonly Bag[]) : []) {
    const { id: of, name: tool, args } = call
    parts.push({ type: 'tool-call', callId: String(of), name: String(tool), input: (args ?? {}) as never })
  }
  return makeMessage(role, parts, options)
}

function readContent(content: unknown, path: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) throw wrong(`${path}.content`, 'must be text or a list of parts')
  return content.map((part: Bag, i): Part => {
    if (part['type'] === 'text' && typeof part['text'] === 'string') return { type: 'text', text: part['text'] }
    const image = part['image_url'] as string | { readonly url?: unknown } | undefined
    const url = typeof image === 'string' ? image : image?.url
    if (part['type'] === 'image_url' && typeof url === 'string') {
      return { type: 'file', mediaType: 'image/*', data: { kind: 'url', url } }
    }
    throw wrong(`${path}.content[${i}]`, 'must be of the type text or image_url')
  })
}

function wrong(path: string, problem: string): HttpProblem {
  return new HttpProblem(422, 'invalid-value', `The value at ${path} ${problem}.`, { fields: { path } })
}

/** Whether a value is a message of ours. */
export function isOurs(value: unknown): value is Message {
  const { v, role, parts } = (value ?? {}) as Bag
  return v === 1 && typeof role === 'string' && Array.isArray(parts)
}
