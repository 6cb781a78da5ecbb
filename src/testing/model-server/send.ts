import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type Completion, type ScriptedAnswer, toChunks, toErrorBody, toResponse } from './reply.js'

export type Sent = 'answered' | 'error' | 'dropped' | 'hung' | 'left'

export interface SendOptions {
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly latencyMs: number
  readonly tokenMs: number
  /** Aborted when the client has gone or the server closes. */
  readonly gone: AbortSignal
}

/** Plays an answer over HTTP, faults included. Returns how it ended. */
export async function sendAnswer(
  response: ServerResponse,
  answer: ScriptedAnswer,
  completion: Completion,
  options: SendOptions,
): Promise<Sent> {
  try {
    await pause(options.latencyMs, options.gone)
    if (options.gone.aborted) return 'left'
    if (answer.drop === 'before') return drop(response)
    if (answer.hang === true) return await hang(options.gone)
    if (answer.error !== undefined) {
      sendJson(response, answer.error.status, toErrorBody(answer.error), answer.error.headers)
      return 'error'
    }
    if (options.stream) return await sendStream(response, answer, completion, options)
    return await sendWhole(response, answer, completion, options)
  } catch (error) {
    // A write fails before the end of the connection is reported.
    if (options.gone.aborted || response.destroyed || response.socket?.destroyed !== false) return 'left'
    throw error
  }
}

async function sendWhole(
  response: ServerResponse,
  answer: ScriptedAnswer,
  completion: Completion,
  { gone }: SendOptions,
): Promise<Sent> {
  const body = JSON.stringify(toResponse(completion))
  const half = body.slice(0, body.length / 2)
  if (answer.drop !== undefined || answer.hang !== undefined) {
    // Without a stream, "after so many chunks" is in the middle of the body.
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    await write(response, half)
    return answer.drop === undefined ? hang(gone) : drop(response)
  }
  if (answer.errorAfterChunks !== undefined) {
    sendJson(response, 500, JSON.stringify({ error: answer.errorAfterChunks.error }))
    return 'error'
  }
  sendJson(response, 200, answer.cutAfterChunks === undefined ? body : half)
  return 'answered'
}

async function sendStream(
  response: ServerResponse,
  answer: ScriptedAnswer,
  completion: Completion,
  { includeUsage, tokenMs, gone }: SendOptions,
): Promise<Sent> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  const chunks = Array.from(toChunks(completion, includeUsage), (chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  const fault = streamFault(answer)
  // A fault that is due after more chunks than there are comes before the end, so that it is never missed.
  const sent = fault === undefined ? chunks : chunks.slice(0, fault.after)
  if (tokenMs === 0) {
    await write(response, sent.join(''))
  } else {
    for (const chunk of sent) {
      await pause(tokenMs, gone)
      await write(response, chunk)
    }
  }
  if (gone.aborted) return 'left'
  if (fault !== undefined) return fault.play(response, gone)
  response.end('data: [DONE]\n\n')
  return 'answered'
}

interface StreamFault {
  /** How many chunks are sent before it. */
  readonly after: number
  readonly play: (response: ServerResponse, gone: AbortSignal) => Sent | Promise<Sent>
}

function streamFault(answer: ScriptedAnswer): StreamFault | undefined {
  const { drop: dropped, hang: hung, cutAfterChunks, errorAfterChunks } = answer
  if (typeof dropped === 'object') return { after: dropped.afterChunks, play: drop }
  if (typeof hung === 'object') return { after: hung.afterChunks, play: (_response, gone) => hang(gone) }
  if (cutAfterChunks !== undefined) {
    const cut = (response: ServerResponse): Sent => {
      response.end()
      return 'answered'
    }
    return { after: cutAfterChunks, play: cut }
  }
  if (errorAfterChunks === undefined) return undefined
  const fail = (response: ServerResponse): Sent => {
    response.end(`data: ${JSON.stringify({ error: errorAfterChunks.error })}\n\n`)
    return 'error'
  }
  return { after: errorAfterChunks.chunks, play: fail }
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(body)
}

/** Waits until what is written has left the process: a reset would otherwise overtake it. */
function write(response: ServerResponse, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(text, (error) => (error ? reject(error) : resolve()))
  })
}

async function drop(response: ServerResponse): Promise<Sent> {
  // What was written should reach the client before the reset does, or a break halfway would look like one at the
  // start.
  if (response.headersSent) await delay(5)
  response.socket?.resetAndDestroy()
  return 'dropped'
}

function hang(gone: AbortSignal): Promise<Sent> {
  return new Promise((resolve) => {
    if (gone.aborted) resolve('hung')
    gone.addEventListener('abort', () => resolve('hung'), { once: true })
  })
}

async function pause(ms: number, gone: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal: gone })
}
