import { HoldfastClientError } from './transport.js'

/** One server-sent event. */
export interface StreamEvent {
  readonly id: string | undefined
  readonly event: string
  readonly data: string
}

/** The server-sent events of a response. Ends when the connection does, in whatever way. */
async function* readEvents(response: Response): AsyncGenerator<StreamEvent> {
  if (response.body === null) return
  const reader = response.body
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += value
      const blocks = rest.split(/\r?\n\r?\n/)
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = readBlock(block)
        if (event !== undefined) yield event
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function readBlock(block: string): StreamEvent | undefined {
  let id: string | undefined
  let event = 'message'
  const data: string[] = []
  for (const line of block.split(/\r?\n/)) {
    const [, name, value = ''] = /^([^:]+)(?:: ?(.*))?$/.exec(line) ?? []
    if (name === 'id') id = value
    else if (name === 'event') event = value
    else if (name === 'data') data.push(value)
  }
  return data.length === 0 ? undefined : { id, event, data: data.join('\n') }
}

const FIRST_WAIT_MS = 200
const LONGEST_WAIT_MS = 5000

/**
 * A stream that survives its connections: it is requested again from the last event seen, until `isLast` says that it
 * is over, a refusal says that there is no point, or the signal is aborted.
 */
export async function* keepReading(
  connect: (lastId: string | undefined) => Promise<Response>,
  isLast: (event: StreamEvent) => boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent> {
  let lastId: string | undefined
  let wait = FIRST_WAIT_MS
  for (;;) {
    try {
      for await (const event of readEvents(await connect(lastId))) {
        wait = FIRST_WAIT_MS
        if (event.id !== undefined) lastId = event.id
        if (event.event === 'reconnect') break
        yield event
        if (isLast(event)) return
      }
    } catch (error) {
      if (signal?.aborted) throw error
      if (error instanceof HoldfastClientError && !error.problem.retryable) throw error
    }
    signal?.throwIfAborted()
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, wait)
      signal?.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
    })
    signal?.throwIfAborted()
    wait = Math.min(LONGEST_WAIT_MS, wait * 2)
  }
}
