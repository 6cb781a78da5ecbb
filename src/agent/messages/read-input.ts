import { InvalidValueError } from '../../core/errors.js'
import type { AnyAiMessage } from './ai-sdk/ai-sdk-types.js'
import { checkMessages, toMessage } from './check-message.js'
import { fromAiSdkMessages } from './ai-sdk/from-ai-sdk.js'
import { fromOpenAiMessages } from './openai/from-openai.js'
import { fromUiMessages, isUiMessage, type UiMessage } from './ai-sdk/from-ui-messages.js'
import type { Message } from './message.js'
import type { OpenAiMessage } from './openai/openai-types.js'

/**
 * What a run of an agent takes: text, Holdfast messages, or messages as the AI SDK (`ModelMessage`, `UIMessage`) and
 * OpenAI's chat have them.
 */
export type AgentInput = string | AgentMessage | readonly AgentMessage[]

type AgentMessage = Message | AnyAiMessage | UiMessage | OpenAiMessage

/** The input as Holdfast messages. */
export function readInput(input: unknown): readonly Message[] {
  if (input === undefined) return []
  const all: readonly unknown[] = Array.isArray(input) ? input : [input]
  if (all.length === 0) {
    throw new InvalidValueError('input', 'holds no message', 'Pass text, or at least one message.')
  }
  if (all.every(isForeign)) {
    return all.some(isOfOpenAi)
      ? fromOpenAiMessages(all as readonly OpenAiMessage[])
      : fromAiSdkMessages(all as readonly AnyAiMessage[])
  }
  if (all.every(isUiMessage)) return fromUiMessages(all)
  if (!Array.isArray(input)) return [toMessage(input)]
  checkMessages(input)
  return input
}

/** `{ role, content }`, where Holdfast messages have `parts`. */
function isForeign(message: unknown): message is { readonly content: unknown } {
  return typeof message === 'object' && message !== null && 'content' in message && !('parts' in message)
}

const OPENAI_FIELDS = ['tool_calls', 'tool_call_id', 'function_call', 'refusal', 'reasoning_content']
const OPENAI_PARTS = new Set<unknown>(['image_url', 'input_audio', 'refusal'])
const OPENAI_ROLES = new Set<unknown>(['developer', 'function'])

/** Where the two differ. A text alone is the same in both. */
function isOfOpenAi(message: unknown): boolean {
  const { role, content } = message as { readonly role?: unknown; readonly content: unknown }
  if (OPENAI_ROLES.has(role) || OPENAI_FIELDS.some((field) => field in (message as object))) return true
  return (
    Array.isArray(content) &&
    content.some((part: { type?: unknown; file?: unknown }) => OPENAI_PARTS.has(part?.type) || isFileOfOpenAi(part))
  )
}

function isFileOfOpenAi(part: { readonly type?: unknown; readonly file?: unknown } | undefined): boolean {
  return part?.type === 'file' && part.file !== undefined
}
