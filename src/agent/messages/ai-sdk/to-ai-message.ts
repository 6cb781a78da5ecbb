import { setOwn } from '../../../codec/value.js'
import { InvalidValueError } from '../../../core/errors.js'
import type { AnyAiMessage, SpecVersion } from './ai-sdk-types.js'
import type { Message } from '../message.js'
import type { ContentItem, FileData, FilePart, Part, ProviderData, ToolOutput } from '../message-part.js'
import { readDataUrl, toBase64, toJson } from '../plain.js'

type Loose = Record<string, unknown>

/**
 * One message of the AI SDK's prompt; undefined if nothing of it has a place there.
 * @param index its place among the messages, for what is refused.
 */
export function toAiMessage(message: Message, version: SpecVersion, index: number): AnyAiMessage | undefined {
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
