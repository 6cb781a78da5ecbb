import { randomBytes } from 'node:crypto'
import type { Part, ProviderData } from './message-part.js'
import type { Usage } from '../model/cost/usage.js'

/** The version of the shape below. Readers accept every released version. */
export const MESSAGE_VERSION = 1

/** Who speaks. Tool results are messages of their own, with the role `tool`. */
export type Role = 'system' | 'user' | 'assistant' | 'tool'

/** Why the model stopped, in one vocabulary. */
export type FinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'interrupted' | 'other'

/**
 * One message as the log keeps it: a superset of OpenAI chat messages and of the AI SDK's prompt, so that a
 * conversation can switch providers without losing anything. Plain data: what it holds is stored exactly.
 */
export type Message = {
  readonly id: string
  readonly v: typeof MESSAGE_VERSION
  readonly role: Role
  readonly parts: readonly Part[]
  /** Milliseconds since 1970. */
  readonly at: number
  /** Distinguishes participants with the same role, like OpenAI's `name`. */
  readonly name?: string
  /** What the model call that made this message used. */
  readonly usage?: Usage
  readonly model?: ModelRef
  readonly finish?: { readonly reason: FinishReason; readonly raw?: string }
  /** What a provider wants to see again, by provider. */
  readonly providerMetadata?: ProviderData
}

/** Which model wrote a message. */
export type ModelRef = {
  readonly provider: string
  readonly id: string
  /** The model that the provider says it used, if different. */
  readonly actual?: string
  /** The provider's id of the reply. */
  readonly responseId?: string
}

/** Optional fields for `makeMessage` besides role and parts. */
export interface MessageOptions {
  /** Default: random. */
  readonly id?: string
  /** Default: now. */
  readonly at?: number
  readonly name?: string
  readonly providerMetadata?: ProviderData
}

/** A message of any role. A string stands for one text part. */
export function makeMessage(role: Role, content: string | readonly Part[], options: MessageOptions = {}): Message {
  const { id = newMessageId(), at = Date.now(), name, providerMetadata } = options
  return {
    id,
    v: MESSAGE_VERSION,
    role,
    parts: typeof content === 'string' ? [{ type: 'text', text: content }] : content,
    at,
    ...(name === undefined ? {} : { name }),
    ...(providerMetadata === undefined ? {} : { providerMetadata }),
  }
}

export function newMessageId(): string {
  return `msg_${randomBytes(12).toString('base64url')}`
}

/** The text of a message, without reasoning and files. */
export function textOf(message: Message): string {
  let text = ''
  for (const part of message.parts) if (part.type === 'text') text += part.text
  return text
}
