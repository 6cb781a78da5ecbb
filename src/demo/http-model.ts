import { Agent, request, type RequestOptions } from 'node:http'
import { urlToHttpOptions } from 'node:url'
import type { LanguageModel } from '../index.js'
import type { AnyAiMessage } from '../agent/messages/index.js'

type Json = Readonly<Record<string, unknown>>

interface ToolGiven {
  readonly name: string
  readonly description?: string
  readonly inputSchema: unknown
}

interface CallOptions {
  readonly prompt: readonly AnyAiMessage[]
  readonly tools?: readonly ToolGiven[]
  readonly abortSignal?: AbortSignal
}

/**
 * The demo's model: chat completions over HTTP, as a language model of the AI SDK. It is part of the package, which
 * needs no provider package; programs of your own use `@ai-sdk/openai-compatible` or any other.
 */
export function httpModel(url: string, name: string): LanguageModel {
  const agent = new Agent({ keepAlive: true, maxSockets: 512 })
  const endpoint = { ...urlToHttpOptions(new URL(`${url}/chat/completions`)), method: 'POST', agent }
  const written = new Written()
  return {
    specificationVersion: 'v3',
    provider: 'demo',
    modelId: name,
    async doGenerate({ prompt, tools = [], abortSignal }: CallOptions) {
      const messages = written.join(prompt, toChatMessages)
      const body = `{"model":${JSON.stringify(name)},"messages":${messages},"tools":${written.join(tools, toFunctions)}}`
      return readReply(await post(endpoint, body, abortSignal))
    },
    doStream() {
      throw new Error('The demo asks for whole replies.')
    },
  } as LanguageModel
}

/** The JSON of what comes again with every call: all of a conversation does, and only the end of it is new. */
class Written {
  readonly #known = new WeakMap<object, string>()

  /** An array of what each of them becomes. */
  join<Given extends object>(all: readonly Given[], convert: (one: Given) => readonly Json[]): string {
    const parts: string[] = []
    for (const one of all) {
      const text = this.#known.get(one) ?? this.#write(one, convert)
      if (text !== '') parts.push(text)
    }
    return `[${parts.join(',')}]`
  }

  #write<Given extends object>(one: Given, convert: (one: Given) => readonly Json[]): string {
    const text = convert(one)
      .map((made) => JSON.stringify(made))
      .join(',')
    // Whatever may still change is written anew.
    if (Object.isFrozen(one)) this.#known.set(one, text)
    return text
  }
}

function toFunctions({ name, description, inputSchema }: ToolGiven): readonly Json[] {
  return [{ type: 'function', function: { name, description, parameters: inputSchema } }]
}

function toChatMessages({ role, content }: AnyAiMessage): readonly Json[] {
  if (role === 'system') return [{ role, content }]
  const parts = content as readonly Json[]
  if (role === 'tool') {
    return parts.map(({ toolCallId, output }) => ({ role, tool_call_id: toolCallId, content: toText(output as Json) }))
  }
  const text = parts.flatMap((part) => (part['type'] === 'text' ? [String(part['text'])] : [])).join('\n')
  const calls = parts.filter(({ type }) => type === 'tool-call')
  if (calls.length === 0) return [{ role, content: text }]
  const toolCalls = calls.map(({ toolCallId, toolName, input }) => ({
    id: toolCallId,
    type: 'function',
    function: { name: toolName, arguments: JSON.stringify(input) },
  }))
  return [{ role, content: text === '' ? null : text, tool_calls: toolCalls }]
}

function toText({ value }: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function readReply(body: Json) {
  const [{ message, finish_reason: finish }] = body['choices'] as [{ message: Json; finish_reason: string }]
  const usage = body['usage'] as { prompt_tokens: number; completion_tokens: number }
  const calls = (message['tool_calls'] ?? []) as readonly {
    id: string
    function: { name: string; arguments: string }
  }[]
  return {
    content: [
      ...(typeof message['content'] === 'string' ? [{ type: 'text', text: message['content'] }] : []),
      ...calls.map(({ id, function: { name, arguments: input } }) => ({
        type: 'tool-call',
        toolCallId: id,
        toolName: name,
        input,
      })),
    ],
    finishReason: { unified: finish === 'tool_calls' ? 'tool-calls' : 'stop', raw: finish },
    usage: { inputTokens: { total: usage.prompt_tokens }, outputTokens: { total: usage.completion_tokens } },
    warnings: [],
    response: { id: body['id'], modelId: body['model'] },
  }
}

function post(endpoint: RequestOptions, body: string, signal: AbortSignal | undefined): Promise<Json> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const sent = request({ ...endpoint, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('error', fail)
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => {
        signal?.removeEventListener('abort', leave)
        if (response.statusCode === 200) resolve(JSON.parse(text) as Json)
        else reject(Object.assign(new Error(`The model answered ${response.statusCode}.`), { responseBody: text }))
      })
    })
    // Given the signal, the request would watch its own end as well, for the sake of removing one listener.
    const leave = () => sent.destroy(new Error('The call was given up.', { cause: signal?.reason }))
    const fail = (error: Error) => {
      signal?.removeEventListener('abort', leave)
      reject(error)
    }
    signal?.addEventListener('abort', leave)
    sent.on('error', fail)
    sent.end(body)
    if (signal?.aborted) leave()
  })
}
