import type { Json } from '../messages/plain.js'
import type { FinishReason, Message } from '../messages/message.js'
import type { ToolCallPart } from '../messages/message-part.js'
import type { ModelFailure } from './attempt/model-failure.js'
import type { Usage } from './cost/usage.js'

/**
 * An AI SDK language model, spec V2, V3 or V4: the part of it that is used. `never` lets every version match; what is
 * passed is built for the version that the model names.
 */
export interface LanguageModel {
  readonly specificationVersion: string
  readonly provider: string
  readonly modelId: string
  doGenerate?(options: never): PromiseLike<unknown>
  /** Omitted, as mocks do: replies arrive in one piece. */
  doStream?(options: never): PromiseLike<unknown>
}

export type JsonObject = { readonly [key: string]: Json }
type ProviderOptions = { readonly [provider: string]: JsonObject }

/** A tool as it is shown to the model. */
export type ModelTool =
  | {
      readonly type: 'function'
      readonly name: string
      readonly description?: string
      readonly inputSchema: JsonObject
      readonly strict?: boolean
      readonly providerOptions?: ProviderOptions
    }
  | {
      /** A tool that the provider runs itself; `id` is `<provider>.<tool>`. */
      readonly type: 'provider'
      readonly id: string
      readonly name: string
      readonly args: JsonObject
    }

/** Whether the model may, must or must not call a tool, or which one it must call. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string }

/** The settings that providers share. What a provider does not know comes back as a warning. */
export interface ModelSettings {
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly stopSequences?: readonly string[]
  readonly seed?: number
  /** How much the model should think, for models of spec V4. */
  readonly reasoning?: string
  readonly responseFormat?:
    | { readonly type: 'text' }
    | { readonly type: 'json'; readonly schema?: JsonObject; readonly name?: string; readonly description?: string }
  readonly providerOptions?: ProviderOptions
  readonly headers?: Readonly<Record<string, string>>
}

export interface ModelRequest {
  readonly messages: readonly Message[]
  readonly tools?: readonly ModelTool[]
  readonly toolChoice?: ToolChoice
  readonly settings?: ModelSettings
}

/** A setting that the provider ignored, or something similar. */
export type ModelWarning = { readonly type: string; readonly feature?: string; readonly message?: string }

/** One finished call. */
export interface ModelReply {
  /** The assistant's message, including usage, model and finish reason. */
  readonly message: Message
  readonly finish: FinishReason
  readonly usage: Usage
  readonly warnings: readonly ModelWarning[]
  /** How many attempts it took. */
  readonly attempts: number
}

/** What happens during a call, as it happens. `attempt` counts from 1. */
export type ModelEvent = { readonly attempt: number } & (
  | { readonly type: 'attempt' }
  | { readonly type: 'text-delta'; readonly id: string; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly id: string; readonly text: string }
  | { readonly type: 'tool-input-start'; readonly callId: string; readonly name: string }
  | { readonly type: 'tool-input-delta'; readonly callId: string; readonly text: string }
  | { readonly type: 'tool-call'; readonly part: ToolCallPart }
  /** Nothing that this attempt streamed counts: it broke off. */
  | { readonly type: 'superseded' }
  /** The attempt failed; the next begins after `delayMs`, or never if that is undefined. */
  | { readonly type: 'failure'; readonly failure: ModelFailure; readonly delayMs: number | undefined }
)
