/** An OpenAI chat completions message, as sent and as received, with whatever else a compatible server adds. */
export interface OpenAiMessage {
  readonly role: string
  readonly content?: string | null | readonly OpenAiContentPart[]
  readonly name?: string
  readonly refusal?: string | null
  readonly tool_calls?: readonly OpenAiToolCall[] | null
  readonly tool_call_id?: string
  /** DeepSeek, vLLM and others: what the model thought. */
  readonly reasoning_content?: string | null
  readonly [field: string]: unknown
}

/** One part of an OpenAI message's content. Unknown fields are kept. */
export interface OpenAiContentPart {
  readonly type: string
  readonly [field: string]: unknown
}

/** A tool call in an OpenAI message. Unknown fields are kept. */
export interface OpenAiToolCall {
  readonly id: string
  readonly type: string
  readonly [field: string]: unknown
}
