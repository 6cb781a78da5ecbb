/** What the server answers. Text alone stands for `{ text }`. */
export type ScriptedReply = string | ScriptedAnswer

/** What the model says, or how the call fails. */
export interface ScriptedAnswer {
  readonly text?: string
  readonly reasoning?: string
  readonly toolCalls?: readonly ScriptedToolCall[]
  /** Default: `tool_calls` when there are some, else `stop`. */
  readonly finishReason?: string
  /** Default: estimated from the characters. `false` leaves usage out, as some servers do. */
  readonly usage?: ScriptedUsage | false
  /** An HTTP error instead of an answer. */
  readonly error?: ScriptedError
  /** The connection is reset: before anything is sent, or after this many chunks of the stream. */
  readonly drop?: 'before' | { readonly afterChunks: number }
  /** Ends the stream cleanly, but without a finish reason or `[DONE]`, after this many chunks. */
  readonly cutAfterChunks?: number
  /** An error inside the stream, after this many chunks. */
  readonly errorAfterChunks?: { readonly chunks: number; readonly error: Readonly<Record<string, unknown>> }
  /** Nothing more is sent and the connection stays open: immediately, or after this many chunks. */
  readonly hang?: true | { readonly afterChunks: number }
  /** The delay before the first byte. Default: the server's. */
  readonly latencyMs?: number
  /** The delay before each chunk of the stream. Default: the server's. */
  readonly tokenMs?: number
}

/** A tool call that the model makes. */
export interface ScriptedToolCall {
  readonly name: string
  /** A value is sent as JSON; text is sent unchanged, so that you can send malformed arguments. */
  readonly arguments?: unknown
  /** Default: derived from the request. */
  readonly id?: string
}

/** The token counts that the server reports. */
export interface ScriptedUsage {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly reasoning?: number
}

/** An HTTP error, in the shape of the provider. */
export interface ScriptedError {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, or unchanged if it is text. Default: OpenAI's shape, from the fields below. */
  readonly body?: unknown
  readonly message?: string
  readonly type?: string
  readonly code?: string
}

/** A whole answer, with everything decided. */
export interface Completion {
  readonly id: string
  readonly model: string
  readonly text: string
  readonly reasoning: string
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  readonly finishReason: string
  readonly usage: Readonly<Record<string, unknown>> | undefined
}

/** Replies are dated so: what depends on the clock can't be compared between runs. */
const CREATED = 1_735_689_600

export function makeCompletion(
  answer: ScriptedAnswer,
  request: { readonly id: string; readonly model: string; readonly promptTokens: number },
): Completion {
  const toolCalls = (answer.toolCalls ?? []).map((call, i) => ({
    id: call.id ?? `call_${request.id}_${i}`,
    name: call.name,
    arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {}),
  }))
  const text = answer.text ?? ''
  const reasoning = answer.reasoning ?? ''
  return {
    id: `chatcmpl-${request.id}`,
    model: request.model,
    text,
    reasoning,
    toolCalls,
    finishReason: answer.finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop'),
    usage: answer.usage === false ? undefined : toUsage(answer.usage ?? countTokens()),
  }

  function countTokens(): ScriptedUsage {
    const thought = countTextTokens(reasoning)
    const calls = toolCalls.reduce((all, call) => all + countTextTokens(call.name + call.arguments), 0)
    return { input: request.promptTokens, output: countTextTokens(text) + thought + calls, reasoning: thought }
  }
}

/** Four characters to a token: near enough for a server that has no model. */
export function countTextTokens(text: string): number {
  return Math.ceil(text.length / 4)
}

/** The reply to a request without `stream`. */
export function toResponse(completion: Completion): Readonly<Record<string, unknown>> {
  const { text, reasoning, toolCalls } = completion
  return {
    id: completion.id,
    object: 'chat.completion',
    created: CREATED,
    model: completion.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && toolCalls.length > 0 ? null : text,
          ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
          ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(toToolCall) }),
        },
        finish_reason: completion.finishReason,
      },
    ],
    ...(completion.usage === undefined ? {} : { usage: completion.usage }),
  }
}

/** The chunks of a stream, without the closing `[DONE]`. Text comes word by word, arguments in pieces. */
export function* toChunks(completion: Completion, includeUsage: boolean): Generator<Readonly<Record<string, unknown>>> {
  const head = { id: completion.id, object: 'chat.completion.chunk', created: CREATED, model: completion.model }
  const chunk = (delta: object, finishReason: string | null = null) => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  })
  yield chunk({ role: 'assistant', content: '' })
  for (const piece of splitWords(completion.reasoning)) yield chunk({ reasoning_content: piece })
  for (const piece of splitWords(completion.text)) yield chunk({ content: piece })
  for (const [index, call] of completion.toolCalls.entries()) {
    const { id, name } = call
    yield chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })
    for (const piece of splitEvery(call.arguments, 12)) {
      yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] })
    }
  }
  yield chunk({}, completion.finishReason)
  if (includeUsage && completion.usage !== undefined) yield { ...head, choices: [], usage: completion.usage }
}

export function toErrorBody(error: ScriptedError): string {
  if (typeof error.body === 'string') return error.body
  const { message = `The server answered ${error.status}.`, type = 'server_error', code = null } = error
  return JSON.stringify(error.body ?? { error: { message, type, param: null, code } })
}

function toToolCall(call: Completion['toolCalls'][number]): object {
  return { id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } }
}

function toUsage(usage: ScriptedUsage): Readonly<Record<string, unknown>> {
  const { input, output, cachedInput = 0, reasoning = 0 } = usage
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cachedInput },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

function splitWords(text: string): string[] {
  return text.match(/\s*\S+\s*$|\s*\S+|\s+$/g) ?? []
}

function splitEvery(text: string, length: number): string[] {
  const pieces: string[] = []
  for (let i = 0; i < text.length; i += length) pieces.push(text.slice(i, i + length))
  return pieces
}
