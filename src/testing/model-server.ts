import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ModelFaults, pickFault, RequestDice } from './model-server/faults.js'
import { countTextTokens, makeCompletion, type ScriptedAnswer, type ScriptedReply } from './model-server/reply.js'
import { type Sent, sendAnswer, sendJson } from './model-server/send.js'

export type { ModelFaults } from './model-server/faults.js'
export type {
  ScriptedAnswer,
  ScriptedError,
  ScriptedReply,
  ScriptedToolCall,
  ScriptedUsage,
} from './model-server/reply.js'

type Json = Readonly<Record<string, unknown>>

/** One request to the chat endpoint, as the handler sees it. */
export interface ModelServerRequest {
  /** From 0, in the order of arrival. */
  readonly index: number
  readonly model: string
  readonly messages: readonly (Json & { readonly role: string })[]
  readonly tools: readonly Json[]
  readonly stream: boolean
  /** The whole body. */
  readonly body: Json
  /** Header names in lower case; the API key is left out. */
  readonly headers: Readonly<Record<string, string>>
  /** Estimated from the characters of the prompt. */
  readonly promptTokens: number
}

/** A request and what happened to it. */
export interface RecordedRequest extends ModelServerRequest {
  /** Undefined while it is being answered; `left` if the client disconnected first. */
  readonly outcome: Sent | undefined
  /** The fault that was injected instead of the scripted reply. */
  readonly fault: ScriptedAnswer | undefined
}

/** Plays the model: gets a request and returns the reply. */
export type ReplyHandler = (request: ModelServerRequest) => ScriptedReply | Promise<ScriptedReply>

/** What the model says, and what goes wrong on the way. */
export interface ModelServerOptions {
  /** A function of the request, or replies that are used in order; when they run out, the server answers 400. */
  readonly reply: ReplyHandler | readonly ScriptedReply[]
  readonly faults?: ModelFaults
  /** Prompts of more tokens are answered with 400 `context_length_exceeded`. */
  readonly windowTokens?: number
  /** The delay before each reply, in milliseconds. Default 0. */
  readonly latencyMs?: number
  /** The delay before each chunk of a stream, in milliseconds. Default 0. */
  readonly tokenMs?: number
  /** Requests with another key are answered with 401. Default: any key, or none. */
  readonly apiKey?: string
  /** What `GET /v1/models` lists. Default: `scripted`. */
  readonly models?: readonly string[]
  /** How many of the newest requests are remembered. Default 1,000. */
  readonly keep?: number
  /** Lets the process exit while the server is open. Default false. */
  readonly unref?: boolean
}

/** What happened to all requests so far. */
export interface ModelServerCounters {
  /** Requests to the chat endpoint. */
  readonly requests: number
  readonly answered: number
  readonly errors: number
  readonly dropped: number
  readonly hung: number
  /** The client disconnected before it had its answer. */
  readonly left: number
  /** The most requests that were open at the same time. */
  readonly peak: number
}

/** A local server that speaks the OpenAI chat completions protocol over real HTTP and says what it is told to. */
export interface ModelServer extends AsyncDisposable {
  /** For the `baseURL` of a client; ends in `/v1`. */
  readonly url: string
  readonly port: number
  readonly requests: readonly RecordedRequest[]
  readonly counters: ModelServerCounters
  /** Clears requests and counts; the script continues where it is. */
  clear(): void
  close(): Promise<void>
}

const MAX_BODY_BYTES = 64 * 1024 * 1024
/** Created once: without a reason, each abort creates an error with a stack. */
const OVER = new Error('The response is over.')

/** Starts a model server on 127.0.0.1, at a free port. */
export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const script = options.reply
  const handler: ReplyHandler = typeof script === 'function' ? script : takeInOrder(script)
  const dice = new RequestDice(options.faults?.seed ?? 0)
  const keep = options.keep ?? 1000
  let records: { -readonly [Key in keyof RecordedRequest]: RecordedRequest[Key] }[] = []
  const none = { requests: 0, answered: 0, errors: 0, dropped: 0, hung: 0, left: 0, peak: 0 }
  let counters = { ...none }
  let open = 0
  let arrived = 0
  const waiting = new Set<AbortController>()

  const server = createServer((request, response) => {
    route(request, response).catch((error: unknown) => {
      // The handler is the test's own code: what it throws is shown where the test looks, and not retried.
      const message = `The reply handler threw: ${error instanceof Error ? error.message : String(error)}`
      if (response.headersSent) response.destroy()
      else sendError(response, 400, message, 'handler_failed')
    })
  })
  // Thousands of clients of one test may come from the same process.
  server.keepAliveTimeout = 30_000
  server.requestTimeout = 0
  // Its side of a connection as well; whoever waits for a reply holds the other.
  if (options.unref === true) server.unref().on('connection', (socket) => socket.unref())

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname
    if (options.apiKey !== undefined && request.headers.authorization !== `Bearer ${options.apiKey}`) {
      return sendError(response, 401, 'Incorrect API key provided.', 'invalid_api_key')
    }
    if (request.method === 'GET' && path === '/v1/models') {
      const data = (options.models ?? ['scripted']).map((id) => ({ id, object: 'model', created: 0, owned_by: 'test' }))
      return sendJson(response, 200, JSON.stringify({ object: 'list', data }))
    }
    if (request.method !== 'POST' || path !== '/v1/chat/completions') {
      return sendError(response, 404, `There is no ${request.method} ${path}.`, 'not_found')
    }
    const text = await readBody(request)
    if (text === undefined) return sendError(response, 413, 'The request is too large.', 'request_too_large')
    const body = parseObject(text)
    if (body === undefined || !Array.isArray(body['messages'])) {
      return sendError(response, 400, 'The body must be JSON with messages.', 'invalid_request')
    }
    open++
    counters.requests++
    counters.peak = Math.max(counters.peak, open)
    try {
      await answer(request, response, text, body)
    } finally {
      open--
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse, text: string, body: Json): Promise<void> {
    const gone = new AbortController()
    response.on('close', () => gone.abort(OVER))
    waiting.add(gone)
    const { id, numbers } = dice.roll(text)
    const seen = readRequest(arrived++, body, request)
    const fault = options.faults === undefined ? undefined : pickFault(options.faults, numbers)
    const record = { ...seen, outcome: undefined as Sent | undefined, fault }
    records.push(record)
    if (records.length > keep) records.shift()
    try {
      const reply = await decide(seen, fault)
      const completion = makeCompletion(reply, { id, model: seen.model, promptTokens: seen.promptTokens })
      record.outcome = await sendAnswer(response, reply, completion, {
        stream: seen.stream,
        includeUsage: (body['stream_options'] as Json | undefined)?.['include_usage'] === true,
        latencyMs: reply.latencyMs ?? options.latencyMs ?? 0,
        tokenMs: reply.tokenMs ?? options.tokenMs ?? 0,
        gone: gone.signal,
      })
    } finally {
      waiting.delete(gone)
      record.outcome ??= 'error'
      counters[record.outcome === 'error' ? 'errors' : record.outcome]++
    }
  }

  async function decide(seen: ModelServerRequest, fault: ScriptedAnswer | undefined): Promise<ScriptedAnswer> {
    const { windowTokens } = options
    if (windowTokens !== undefined && seen.promptTokens > windowTokens) {
      const message = `This model's maximum context length is ${windowTokens} tokens. However, your messages resulted in ${seen.promptTokens} tokens. Please reduce the length of the messages.`
      return { error: { status: 400, message, type: 'invalid_request_error', code: 'context_length_exceeded' } }
    }
    // A connection that drops halfway has begun to answer, so the handler is asked; other faults come before it.
    if (fault !== undefined && typeof fault.drop !== 'object') return fault
    const reply = await handler(seen)
    const answer = typeof reply === 'string' ? { text: reply } : reply
    return fault === undefined ? answer : { ...answer, ...fault }
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async () => {
    if (!server.listening) return
    for (const gone of waiting) gone.abort()
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    get requests() {
      return records
    },
    get counters() {
      return counters
    },
    clear() {
      records = []
      counters = { ...none }
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function takeInOrder(replies: readonly ScriptedReply[]): ReplyHandler {
  let next = 0
  return () => {
    const reply = replies[next++]
    if (reply !== undefined) return reply
    const message = `The script has ${replies.length} replies, and this is request ${next}.`
    return { error: { status: 400, message, type: 'invalid_request_error', code: 'script_over' } }
  }
}

function readRequest(index: number, body: Json, request: IncomingMessage): ModelServerRequest {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers)) {
    if (name !== 'authorization' && value !== undefined) headers[name] = String(value)
  }
  const tools = Array.isArray(body['tools']) ? (body['tools'] as Json[]) : []
  const prompt = JSON.stringify(body['messages']) + (tools.length === 0 ? '' : JSON.stringify(tools))
  return {
    index,
    model: String(body['model'] ?? ''),
    messages: body['messages'] as ModelServerRequest['messages'],
    tools,
    stream: body['stream'] === true,
    body,
    headers,
    promptTokens: countTextTokens(prompt),
  }
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Json) : undefined
  } catch {
    return undefined
  }
}

function sendError(response: ServerResponse, status: number, message: string, code: string): void {
  sendJson(response, status, JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code } }))
}
