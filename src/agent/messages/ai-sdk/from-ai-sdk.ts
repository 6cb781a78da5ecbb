import type { Value } from '../../../codec/value.js'
import { InvalidValueError } from '../../../core/errors.js'
import type { AnyAiMessage } from './ai-sdk-types.js'
import { type Message, makeMessage, type MessageOptions } from '../message.js'
import type { ContentItem, FileData, FilePart, Part, ProviderData, ToolOutput } from '../message-part.js'
import { fromBase64, readDataUrl, toPlain } from '../plain.js'

type Bag = Readonly<Record<string, unknown>>

/** How converted messages get the ids and times that other formats lack. */
export interface FromOptions {
  /** The id and time of each message, which the outside format lacks. Default: random, and now. */
  readonly stamp?: (index: number) => Pick<MessageOptions, 'id' | 'at'>
}

/**
 * Messages from the AI SDK: prompts of spec V2, V3 and V4, and the `ModelMessage`s of the `ai` package. Base64 becomes
 * bytes and `image` parts become files; nothing else changes. An unknown part is refused with its path.
 */
export function fromAiSdkMessages(messages: readonly AnyAiMessage[], options: FromOptions = {}): Message[] {
  return messages.map((message, i) => fromAiMessage(message, `$[${i}]`, options.stamp?.(i)))
}

function fromAiMessage(message: AnyAiMessage, path: string, stamp?: Pick<MessageOptions, 'id' | 'at'>): Message {
  const { role, content } = message
  if (role !== 'system' && role !== 'user' && role !== 'assistant' && role !== 'tool') {
    throw new InvalidValueError(
      `${path}.role`,
      `can't be ${JSON.stringify(role)}`,
      'Use system, user, assistant or tool.',
    )
  }
  const metadata = providerDataOf(message as unknown as Bag)
  const made = { ...stamp, ...metadata }
  if (typeof content === 'string') return makeMessage(role, content, made)
  const parts = listAt(content, `${path}.content`).map((part, i) => fromAiPart(part, `${path}.content[${i}]`))
  return makeMessage(role, parts, made)
}

/** A part of a prompt, or of a model's reply, whose metadata has a different name. */
export function fromAiPart(input: unknown, path: string): Part {
  const part = bagAt(input, path)
  const metadata = providerDataOf(part)
  switch (part['type']) {
    case 'text': {
      const citations = toPlain(part['citations'])
      const cited = Array.isArray(citations) ? { citations: citations as readonly Value[] } : {}
      return { type: 'text', text: textAt(part, 'text', path), ...cited, ...metadata }
    }
    case 'reasoning':
      return { type: 'reasoning', text: textAt(part, 'text', path), ...metadata }
    case 'file':
      return { ...fileFrom(part, part['data'], textAt(part, 'mediaType', path), path), ...metadata }
    case 'image': {
      const mediaType = typeof part['mediaType'] === 'string' ? part['mediaType'] : imageType(part['image'])
      return { ...fileFrom(part, part['image'], mediaType, path), ...metadata }
    }
    case 'reasoning-file': {
      const data = fileDataFrom(part['data'], `${path}.data`)
      return { type: 'reasoning-file', mediaType: textAt(part, 'mediaType', path), data, ...metadata }
    }
    case 'custom':
      return { type: 'custom', kind: textAt(part, 'kind', path), ...metadata }
    case 'tool-call':
      return {
        type: 'tool-call',
        callId: textAt(part, 'toolCallId', path),
        name: textAt(part, 'toolName', path),
        input: part['input'] === null ? null : (toPlain(part['input']) ?? {}),
        ...flagOf(part, 'providerExecuted'),
        ...metadata,
      }
    case 'tool-result':
      return {
        type: 'tool-result',
        callId: textAt(part, 'toolCallId', path),
        name: textAt(part, 'toolName', path),
        output: outputFrom(part['output'], `${path}.output`),
        ...metadata,
      }
    case 'tool-approval-request':
      return {
        type: 'tool-approval-request',
        approvalId: textAt(part, 'approvalId', path),
        callId: textAt(part, 'toolCallId', path),
        ...metadata,
      }
    case 'tool-approval-response':
      return {
        type: 'tool-approval-response',
        approvalId: textAt(part, 'approvalId', path),
        approved: part['approved'] === true,
        ...fieldOf(part, 'reason'),
        ...metadata,
      }
    default:
      throw new InvalidValueError(`${path}.type`, `is unknown: ${JSON.stringify(part['type'])}`, 'Convert it first.')
  }
}

function imageType(data: unknown): string {
  const inline = typeof data === 'string' || data instanceof URL ? readDataUrl(String(data)) : undefined
  return inline?.mediaType.startsWith('image/') ? inline.mediaType : 'image/*'
}

function fileFrom(part: Bag, data: unknown, mediaType: string, path: string): FilePart {
  const tagged = typeof data === 'object' && data !== null ? (data as Bag)['originalUrl'] : undefined
  const originalUrl = part['originalUrl'] ?? tagged
  return {
    type: 'file',
    mediaType,
    data: fileDataFrom(data, `${path}.data`),
    ...fieldOf(part, 'filename'),
    ...(typeof originalUrl === 'string' ? { originalUrl } : {}),
  }
}

/** Bytes, base64, a URL, or V4's tagged forms of these. */
export function fileDataFrom(data: unknown, path: string): FileData {
  if (typeof data === 'string') {
    // Base64 contains no colon, so a URL can't be mistaken for it.
    return /^[a-z][a-z0-9+.-]*:/i.test(data) ? urlData(data) : { kind: 'bytes', bytes: fromBase64(data) }
  }
  if (data instanceof URL) return urlData(data.href)
  if (data instanceof Uint8Array) return { kind: 'bytes', bytes: new Uint8Array(data) }
  if (data instanceof ArrayBuffer) return { kind: 'bytes', bytes: new Uint8Array(data.slice(0)) }
  const tagged = bagAt(data, path)
  switch (tagged['type']) {
    case 'data':
    case 'url':
      return fileDataFrom(tagged['type'] === 'data' ? tagged['data'] : tagged['url'], path)
    case 'text':
      return { kind: 'text', text: textAt(tagged, 'text', path) }
    case 'reference':
      return { kind: 'reference', reference: referenceAt(tagged['reference'], `${path}.reference`) }
    default:
      throw new InvalidValueError(path, 'is not file data', 'Pass bytes, base64 or an address.')
  }
}

/** The output of a tool in the AI SDK's shape. */
export function outputFrom(input: unknown, path: string): ToolOutput {
  const output = bagAt(input, path)
  const metadata = providerDataOf(output)
  switch (output['type']) {
    case 'text':
      return { type: 'text', value: textAt(output, 'value', path), ...metadata }
    case 'error-text':
      return { type: 'error', value: textAt(output, 'value', path), ...metadata }
    case 'json':
    case 'error-json':
      return { type: output['type'], value: toPlain(output['value']) ?? null, ...metadata }
    case 'execution-denied':
      return { type: 'denied', ...fieldOf(output, 'reason'), ...metadata }
    case 'content': {
      const items = listAt(output['value'], `${path}.value`)
      return { type: 'content', value: items.map((item, i) => itemFrom(item, `${path}.value[${i}]`)), ...metadata }
    }
    default:
      throw new InvalidValueError(`${path}.type`, `is unknown: ${JSON.stringify(output['type'])}`, 'Convert it first.')
  }
}

function itemFrom(input: unknown, path: string): ContentItem {
  const item = bagAt(input, path)
  const metadata = providerDataOf(item)
  const type = item['type']
  const described = { ...fieldOf(item, 'mediaType'), ...fieldOf(item, 'filename') }
  switch (type) {
    case 'text':
      return { type: 'text', text: textAt(item, 'text', path), ...metadata }
    case 'custom':
      return { type: 'custom', ...metadata }
    case 'media':
    case 'file-data':
    case 'image-data':
    case 'file': {
      const image = type === 'image-data' ? { image: true as const } : {}
      return { type: 'file', data: fileDataFrom(item['data'], `${path}.data`), ...described, ...image, ...metadata }
    }
    case 'file-url':
    case 'image-url': {
      const image = type === 'image-url' ? { image: true as const } : {}
      const data: FileData = { kind: 'url', url: textAt(item, 'url', path) }
      return { type: 'file', data, ...described, ...image, ...metadata }
    }
    case 'file-id':
    case 'image-file-id': {
      const image = type === 'image-file-id' ? { image: true as const } : {}
      const data: FileData = { kind: 'reference', reference: referenceAt(item['fileId'], `${path}.fileId`) }
      return { type: 'file', data, ...described, ...image, ...metadata }
    }
    default:
      throw new InvalidValueError(`${path}.type`, `is unknown: ${JSON.stringify(type)}`, 'Convert it first.')
  }
}

/** `providerOptions` of a prompt, `providerMetadata` of a reply. */
export function providerDataOf(owner: Bag): { readonly providerMetadata?: ProviderData } {
  const data = toPlain(owner['providerOptions'] ?? owner['providerMetadata'])
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return {}
  const entries = Object.entries(data).filter(([, value]) => typeof value === 'object' && value !== null)
  return entries.length === 0 ? {} : { providerMetadata: Object.fromEntries(entries) as ProviderData }
}

function urlData(url: string): FileData {
  const inline = readDataUrl(url)
  return inline === undefined ? { kind: 'url', url } : { kind: 'bytes', bytes: inline.bytes }
}

function referenceAt(value: unknown, path: string): string | Readonly<Record<string, string>> {
  if (typeof value === 'string') return value
  const ids: Record<string, string> = {}
  for (const [provider, id] of Object.entries(bagAt(value, path))) ids[provider] = String(id)
  return ids
}

function bagAt(value: unknown, path: string): Bag {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Bag
  throw new InvalidValueError(path, 'must be an object', "See the AI SDK's message types.")
}

function listAt(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new InvalidValueError(path, 'must be text or an array of parts', "See the AI SDK's message types.")
}

function textAt(owner: Bag, field: string, path: string): string {
  const value = owner[field]
  if (typeof value === 'string') return value
  throw new InvalidValueError(`${path}.${field}`, 'must be a string', "See the AI SDK's message types.")
}

function fieldOf<Field extends string>(owner: Bag, field: Field): { readonly [key in Field]?: string } {
  const value = owner[field]
  return (typeof value === 'string' ? { [field]: value } : {}) as { readonly [key in Field]?: string }
}

function flagOf<Field extends string>(owner: Bag, field: Field): { readonly [key in Field]?: boolean } {
  const value = owner[field]
  return (typeof value === 'boolean' ? { [field]: value } : {}) as { readonly [key in Field]?: boolean }
}
