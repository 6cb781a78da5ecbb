import type { Value } from '../../../codec/value.js'
import type { Message } from '../message.js'
import type { FileData, FilePart, Part, ToolCallPart, ToolOutput } from '../message-part.js'
import type { OpenAiContentPart, OpenAiMessage, OpenAiToolCall } from './openai-types.js'
import { toBase64, toDataUrl, toJson } from '../plain.js'

type Fields = Readonly<Record<string, unknown>>

/**
 * OpenAI chat messages from Holdfast messages. What the format has no place for: ids, times, usage, model and finish;
 * the kind of a tool's output (everything becomes text) and the tool's name; the order of reasoning, text and tool
 * calls inside one message; sources, approvals, files written by the model, and tools that the provider ran itself,
 * with their results. A file that is not an image becomes a URL in the text if it has one. One message with several
 * tool results becomes several.
 */
export function toOpenAiMessages(messages: readonly Message[]): OpenAiMessage[] {
  return messages.flatMap((message) => {
    switch (message.role) {
      case 'system':
        return [{ role: openAiRole(message), content: toContent(message.parts), ...commonFields(message) }]
      case 'user':
        return [{ role: 'user', content: toContent(message.parts), ...commonFields(message) }]
      case 'assistant':
        return [toAssistant(message)]
      case 'tool':
        return toToolMessages(message)
    }
  })
}

function openAiRole(message: Message): string {
  return message.providerMetadata?.['openai']?.['role'] === 'developer' ? 'developer' : 'system'
}

function commonFields(message: Message): Fields {
  return { ...(message.name === undefined ? {} : { name: message.name }), ...extraFields(message) }
}

function toContent(parts: readonly Part[]): string | OpenAiContentPart[] {
  const [first] = parts
  if (parts.length === 1 && first?.type === 'text' && first.providerMetadata === undefined) return first.text
  return parts.flatMap((part): OpenAiContentPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text, ...extraFields(part) }]
    return part.type === 'file' ? [{ ...toFilePart(part), ...extraFields(part) }] : []
  })
}

function toFilePart(part: FilePart): OpenAiContentPart {
  const { data, mediaType } = part
  if (data.kind === 'text') return { type: 'text', text: data.text }
  if (data.kind === 'reference') return { type: 'file', file: { file_id: referenceId(data), ...filenameOf(part) } }
  if (mediaType.startsWith('image/')) {
    const detail = part.providerMetadata?.['openai']?.['imageDetail']
    const url =
      data.kind === 'url' ? data.url : toDataUrl(mediaType === 'image/*' ? 'image/jpeg' : mediaType, data.bytes)
    return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' ? { detail } : {}) } }
  }
  if (data.kind === 'url') return { type: 'text', text: data.url }
  const format = audioFormat(mediaType)
  if (format !== undefined) return { type: 'input_audio', input_audio: { data: toBase64(data.bytes), format } }
  return { type: 'file', file: { ...filenameOf(part), file_data: toDataUrl(mediaType, data.bytes) } }
}

function toAssistant(message: Message): OpenAiMessage {
  const texts = message.parts.filter((part) => part.type === 'text')
  const reasoning = message.parts.filter((part) => part.type === 'reasoning').map(({ text }) => text)
  const refusals = message.parts.filter((part) => part.type === 'refusal').map(({ text }) => text)
  const calls = message.parts.filter((part) => part.type === 'tool-call' && part.providerExecuted !== true)
  return {
    role: 'assistant',
    // Null is refused where there is nothing else.
    content: texts.length > 0 ? toContent(texts) : calls.length + refusals.length === 0 ? '' : null,
    ...(reasoning.length === 0 ? {} : { reasoning_content: reasoning.join('') }),
    ...(refusals.length === 0 ? {} : { refusal: refusals.join('') }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => toToolCall(call as ToolCallPart)) }),
    ...commonFields(message),
  }
}

function toToolCall(call: ToolCallPart): OpenAiToolCall {
  if (call.providerMetadata?.['openai']?.['custom'] === true) {
    return { id: call.callId, type: 'custom', custom: { name: call.name, input: call.input }, ...extraFields(call) }
  }
  const text = call.raw ?? JSON.stringify(toJson(call.input))
  return { id: call.callId, type: 'function', function: { name: call.name, arguments: text }, ...extraFields(call) }
}

function toToolMessages(message: Message): OpenAiMessage[] {
  return message.parts.flatMap((part) => {
    if (part.type !== 'tool-result') return []
    return [{ role: 'tool', tool_call_id: part.callId, content: toToolContent(part.output), ...extraFields(message) }]
  })
}

function toToolContent(output: ToolOutput): string | OpenAiContentPart[] {
  switch (output.type) {
    case 'text':
    case 'error':
      return output.value
    case 'json':
    case 'error-json':
      return JSON.stringify(toJson(output.value))
    case 'denied':
      return output.reason ?? 'The call was denied.'
    case 'content':
      return output.value.map((item) => {
        if (item.type === 'text') return { type: 'text', text: item.text }
        const what = item.type === 'custom' ? 'custom content' : describeFile(item.data, item.mediaType)
        return { type: 'text', text: `[${what}]` }
      })
  }
}

function describeFile(data: FileData, mediaType = 'file'): string {
  if (data.kind === 'url') return `${mediaType}: ${data.url}`
  return data.kind === 'text' ? data.text : mediaType
}

function referenceId(data: FileData & { readonly kind: 'reference' }): string | undefined {
  const { reference } = data
  return typeof reference === 'string' ? reference : (reference['openai'] ?? Object.values(reference)[0])
}

function filenameOf(part: FilePart): Fields {
  return part.filename === undefined ? {} : { filename: part.filename }
}

function audioFormat(mediaType: string): string | undefined {
  if (mediaType === 'audio/wav') return 'wav'
  return mediaType === 'audio/mpeg' || mediaType === 'audio/mp3' ? 'mp3' : undefined
}

/** Unknown fields that came in are sent out again unchanged. */
function extraFields(owner: Message | Part): Fields {
  const fields: Value | undefined = owner.providerMetadata?.['openai']?.['fields']
  return typeof fields === 'object' && fields !== null ? (toJson(fields) as Fields) : {}
}
