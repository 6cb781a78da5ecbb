import { setOwn } from '../../codec/value.js'
import { InvalidValueError } from '../../core/errors.js'
import type { AiPrompt, AnyAiMessage, SpecVersion } from './ai-sdk-types.js'
import type { Message } from './message.js'
import type { ContentItem, FileData, FilePart, Part, ProviderData, ToolOutput } from './message-part.js'
import { readDataUrl, toBase64, toJson } from './plain.js'

type Loose = Record<string, unknown>

/**
 * The AI SDK's prompt from messages. What it has no place for is dropped: ids, times, usage, model and finish of a
 * message; sources and approval requests; a tool's version; before V4, the name of a file that a tool returns by URL. A
 * refusal becomes text, arguments that are not JSON become `{}`, dates, bigints and bytes inside values become text,
 * and a message that then holds nothing is left out.
 *
 * V2 also lacks denials (they become errors), approvals, and URLs in a tool's output (they become text). V2 and V3 lack
 * inline text files (they become bytes), custom parts and reasoning files (left out), and files stored by a provider,
 * which are refused.
 */
export function toAiSdkPrompt(messages: readonly Message[], version?: 'v3'): AiPrompt
export function toAiSdkPrompt(messages: readonly Message[], version: SpecVersion): AnyAiMessage[]
export function toAiSdkPrompt(messages: readonly Message[], version: SpecVersion = 'v3'): AnyAiMessage[] {
  const prompt: AnyAiMessage[] = []
  let at = 0
  // What comes first may be made anew for each turn, as instructions are.
  for (; at < messages.length && !Object.isFrozen(messages[at]); at++) {
    const made = toAiMessage(messages[at] as Message, version, at)
    if (made !== undefined) prompt.push(made)
  }
  const first = messages[at]
  if (first === undefined) return prompt
  const known = CONVERTED.get(first)
  const before = known?.version === version ? known : undefined
  let conversion = before ?? { version, messages: [], made: [] }
  for (let i = 0; at < messages.length; i++, at++) {
    const message = messages[at] as Message
    if (conversion.messages[i] !== message) {
      // Another conversation with the same beginning keeps what it has.
      if (i < conversion.messages.length) conversion = startOf(conversion, i)
      conversion.made.push(convert(message, version, at))
      conversion.messages.push(Object.isFrozen(message) ? message : undefined)
    }
    const made = conversion.made[i]
    if (made !== undefined) prompt.push(made.isPlain ? copyPlain(made.message) : copyMessage(made.message))
  }
  if (conversion !== known) CONVERTED.set(first, conversion)
  return prompt
}

/** What was made of the messages of a conversation that can't change anymore; undefined for one that can. */
interface Conversion {
  readonly version: SpecVersion
  readonly messages: (Message | undefined)[]
  readonly made: (Converted | undefined)[]
}

interface Converted {
  readonly message: AnyAiMessage
  /** It has nothing but the parts that long conversations consist of. */
  readonly isPlain: boolean
}

/** The newest conversion of each conversation, by its first message: all of it is needed again for every turn. */
const CONVERTED = new WeakMap<Message, Conversion>()

function startOf({ version, messages, made }: Conversion, length: number): Conversion {
  return { version, messages: messages.slice(0, length), made: made.slice(0, length) }
}

function convert(message: Message, version: SpecVersion, index: number): Converted | undefined {
  const made = toAiMessage(message, version, index)
  if (made === undefined) return undefined
  const isPlain = Object.keys(made).length === 2 && Array.isArray(made.content) && made.content.every(isPlainPart)
  return { message: made, isPlain }
}

function isPlainPart(part: Loose): boolean {
  const { length } = Object.keys(part)
  if (part['type'] === 'tool-call' || part['type'] === 'tool-result') return length === 4
  return (part['type'] === 'text' || part['type'] === 'reasoning') && length === 2
}

// Models and their middleware add options to messages and parts, such as marks for a provider's cache: they must not
// find those of the last turn.
function copyMessage(made: AnyAiMessage): AnyAiMessage {
  return Array.isArray(made.content)
    ? { ...made, content: made.content.map((part: Loose) => ({ ...part })) }
    : { ...made }
}

/** The same, at a third of the cost. */
function copyPlain({ role, content }: AnyAiMessage): AnyAiMessage {
  const parts = content as unknown as readonly PlainPart[]
  const [only] = parts
  const copies = parts.length === 1 && only !== undefined ? [copyPart(only)] : parts.map(copyPart)
  return { role, content: copies } as AnyAiMessage
}

type PlainPart =
  | { readonly type: 'text' | 'reasoning'; readonly text: unknown }
  | { readonly type: 'tool-call'; readonly toolCallId: unknown; readonly toolName: unknown; readonly input: unknown }
  | { readonly type: 'tool-result'; readonly toolCallId: unknown; readonly toolName: unknown; readonly output: unknown }

function copyPart(part: PlainPart): PlainPart {
  switch (part.type) {
    case 'tool-call':
      return { type: part.type, toolCallId: part.toolCallId, toolName: part.toolName, input: part.input }
    case 'tool-result':
      return { type: part.type, toolCallId: part.toolCallId, toolName: part.toolName, output: part.output }
    default:
      return { type: part.type, text: part.text }
  }
}

function toAiMessage(message: Message, version: SpecVersion, index: number): AnyAiMessage | undefined {
  if (message.role === 'system') {
    const texts = message.parts.filter((part) => part.type === 'text')
    const merged = texts.reduce(
      (data, part) => mergeProviderData(data, part.providerMetadata),
      message.providerMetadata,
    )
    return { role: 'system', content: texts.map(({ text }) => text).join('\n'), ...optionsOf(merged) }
  }
  const content: Loose[] = []
  for (let i = 0; i < message.parts.length; i++) {
    const part = message.parts[i] as Part
    // The path is for the few parts that can be refused: it is not built for every part of every turn.
    const path = mayBeRefused(part) ? `$[${index}].parts[${i}]` : ''
    const converted = toAiPart(part, version, path)
    if (converted === undefined) continue
    if (part.providerMetadata !== undefined) converted['providerOptions'] = toJson(part.providerMetadata)
    content.push(converted)
  }
  // Providers refuse a message without content.
  if (content.length === 0) return undefined
  if (message.providerMetadata === undefined) return { role: message.role, content }
  return { role: message.role, content, ...optionsOf(message.providerMetadata) }
}

function mayBeRefused(part: Part): boolean {
  if (part.type === 'tool-result') return part.output.type === 'content'
  return part.type === 'file' || part.type === 'reasoning-file'
}

function toAiPart(part: Part, version: SpecVersion, path: string): Loose | undefined {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, text: part.text }
    case 'refusal':
      return { type: 'text', text: part.text }
    case 'file':
      return toAiFile(part, version, path)
    case 'reasoning-file':
      if (version !== 'v4') return undefined
      return { type: 'reasoning-file', mediaType: part.mediaType, data: toTaggedData(part.data, path) }
    case 'custom':
      return version === 'v4' ? { type: 'custom', kind: part.kind } : undefined
    case 'tool-call':
      return {
        type: 'tool-call',
        toolCallId: part.callId,
        toolName: part.name,
        // Providers that require an object refuse anything else; the error that answers the call quotes what was
        // written.
        input: part.invalid ? {} : toJson(part.input),
        ...(part.providerExecuted === undefined ? {} : { providerExecuted: part.providerExecuted }),
      }
    case 'tool-result':
      return {
        type: 'tool-result',
        toolCallId: part.callId,
        toolName: part.name,
        output: toAiOutput(part.output, version, path),
      }
    case 'tool-approval-response':
      if (version === 'v2') return undefined
      return {
        type: 'tool-approval-response',
        approvalId: part.approvalId,
        approved: part.approved,
        ...(part.reason === undefined ? {} : { reason: part.reason }),
      }
    case 'tool-approval-request':
    case 'source':
      return undefined
  }
}

function toAiFile(part: FilePart, version: SpecVersion, path: string): Loose {
  const filename = part.filename === undefined ? {} : { filename: part.filename }
  if (version === 'v4') {
    const data = toTaggedData(part.data, path, part.originalUrl)
    return { type: 'file', mediaType: part.mediaType, data, ...filename }
  }
  const originalUrl = part.originalUrl === undefined || version === 'v2' ? {} : { originalUrl: part.originalUrl }
  return { type: 'file', mediaType: part.mediaType, data: toPlainData(part.data, path), ...filename, ...originalUrl }
}

function toPlainData(data: FileData, path: string): Uint8Array | URL {
  switch (data.kind) {
    case 'bytes':
      return data.bytes
    case 'text':
      return new Uint8Array(Buffer.from(data.text))
    case 'url':
      return readDataUrl(data.url)?.bytes ?? parseUrl(data.url, path)
    case 'reference':
      throw new InvalidValueError(
        `${path}.data`,
        "is a file in a provider's keeping, which this model's interface can't name",
        'Use a model of spec V4, or send the bytes or an address.',
      )
  }
}

function toTaggedData(data: FileData, path: string, originalUrl?: string): Loose {
  switch (data.kind) {
    case 'bytes':
      return { type: 'data', data: data.bytes }
    case 'text':
      return { type: 'text', text: data.text }
    case 'url': {
      const url = parseUrl(data.url, path)
      return { type: 'url', url, ...(originalUrl === undefined ? {} : { originalUrl }) }
    }
    case 'reference':
      if (typeof data.reference === 'string') {
        throw new InvalidValueError(
          `${path}.data.reference`,
          'does not say whose id it is',
          "Name the provider: { openai: 'file-…' }.",
        )
      }
      return { type: 'reference', reference: { ...data.reference } }
  }
}

function toAiOutput(output: ToolOutput, version: SpecVersion, path: string): Loose {
  const options = version === 'v2' || output.type === 'content' ? undefined : optionsOf(output.providerMetadata)
  switch (output.type) {
    case 'text':
      return { type: 'text', value: output.value, ...options }
    case 'error':
      return { type: 'error-text', value: output.value, ...options }
    case 'json':
    case 'error-json':
      return { type: output.type, value: toJson(output.value), ...options }
    case 'denied': {
      if (version === 'v2') return { type: 'error-text', value: output.reason ?? 'The call was denied.' }
      return { type: 'execution-denied', ...(output.reason === undefined ? {} : { reason: output.reason }), ...options }
    }
    case 'content': {
      const value = output.value
        .map((item, i) => toAiItem(item, version, `${path}.output.value[${i}]`))
        .filter((item) => item !== undefined)
      return { type: 'content', value }
    }
  }
}

function toAiItem(item: ContentItem, version: SpecVersion, path: string): Loose | undefined {
  const options = version === 'v2' ? undefined : optionsOf(item.providerMetadata)
  if (item.type === 'text') return { type: 'text', text: item.text, ...options }
  if (item.type === 'custom') return version === 'v2' ? undefined : { type: 'custom', ...options }
  const mediaType = item.mediaType ?? (item.image ? 'image/*' : 'application/octet-stream')
  const filename = item.filename === undefined ? {} : { filename: item.filename }
  if (version === 'v4') {
    return { type: 'file', data: toTaggedData(item.data, path), mediaType, ...filename, ...options }
  }
  const kind = item.image ? 'image' : 'file'
  switch (item.data.kind) {
    case 'bytes':
    case 'text': {
      const bytes = item.data.kind === 'bytes' ? item.data.bytes : Buffer.from(item.data.text)
      const data = toBase64(bytes)
      if (version === 'v2') return { type: 'media', data, mediaType }
      return { type: `${kind}-data`, data, mediaType, ...(item.image ? {} : filename), ...options }
    }
    case 'url': {
      if (version === 'v2') return { type: 'text', text: item.data.url }
      const media = item.image || item.mediaType === undefined ? {} : { mediaType: item.mediaType }
      return { type: `${kind}-url`, url: item.data.url, ...media, ...options }
    }
    case 'reference':
      if (version === 'v2') return undefined
      return { type: item.image ? 'image-file-id' : 'file-id', fileId: item.data.reference, ...options }
  }
}

/** Later data wins, key by key. */
export function mergeProviderData(older: ProviderData | undefined, newer: ProviderData | undefined) {
  if (newer === undefined) return older
  if (older === undefined) return newer
  const merged: Record<string, ProviderData[string]> = { ...older }
  for (const [provider, data] of Object.entries(newer)) setOwn(merged, provider, { ...older[provider], ...data })
  return merged as ProviderData
}

function optionsOf(data: ProviderData | undefined): Loose | undefined {
  return data === undefined ? undefined : { providerOptions: toJson(data) }
}

function parseUrl(url: string, path: string): URL {
  try {
    return new URL(url)
  } catch {
    throw new InvalidValueError(`${path}.data.url`, 'is not an absolute URL', 'Pass one such as https://….')
  }
}
