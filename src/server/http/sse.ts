import { onAbort } from '../../core/async/on-abort.js'
import type { StreamSlots } from './stream-slots.js'

/** One server-sent event. `data` is text without line breaks, such as JSON. */
export interface ServerSentEvent {
  readonly id?: string
  readonly event?: string
  readonly data: string
}

/** How a stream is kept alive and when its reader is given up. */
export interface SseOptions {
  readonly heartbeatMs: number
  /** A reader that takes nothing for this long, while there is something, is cut off. */
  readonly stallMs: number
  readonly headers?: Readonly<Record<string, string>>
  readonly slot: ReturnType<StreamSlots['take']>
  /** Aborted when the server stops: the stream ends with an event that tells clients to come back. */
  readonly stopping: AbortSignal
  /** Stops whatever makes the events. Called once, however the stream ends. */
  readonly onEnd: () => void
  /** What is sent last when the server stops. Default: an event `reconnect`. */
  readonly farewell?: ServerSentEvent
}

const FAREWELL: ServerSentEvent = { event: 'reconnect', data: '{"retryMs":1000}' }
const HEARTBEAT = ': still here\n\n'
const encoder = new TextEncoder()

/**
 * An answer of server-sent events. They are asked for one at a time, when the connection has room: a slow reader slows
 * down whoever makes them, and fills no memory here.
 */
export function sseResponse(events: AsyncIterator<ServerSentEvent>, options: SseOptions): Response {
  const { heartbeatMs, stallMs, headers, slot, stopping, onEnd, farewell = FAREWELL } = options
  let next: Promise<IteratorResult<ServerSentEvent>> | undefined
  let stalled: NodeJS.Timeout | undefined
  let ended = false
  const end = () => {
    if (ended) return
    ended = true
    clearTimeout(stalled)
    slot.release()
    onEnd()
    void Promise.resolve(events.return?.()).catch(() => {})
  }
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(stalled)
        if (ended) return
        if (next === undefined) {
          next = events.next()
          next.catch(() => {})
        }
        const what = await waitFor(next, heartbeatMs, stopping)
        if (ended) return
        if (what === 'heartbeat') controller.enqueue(encoder.encode(HEARTBEAT))
        else if (what === 'stopping') {
          controller.enqueue(encoder.encode(`retry: 1000\n${format(farewell)}`))
          end()
          controller.close()
        } else if (what.done) {
          end()
          controller.close()
        } else {
          next = undefined
          controller.enqueue(encoder.encode(format(what.value)))
        }
        if (ended) return
        stalled = setTimeout(() => {
          end()
          controller.error(new Error('The reader took nothing for too long.'))
        }, stallMs)
        stalled.unref()
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      // Some proxies collect answers before they hand them on.
      'x-accel-buffering': 'no',
      ...headers,
    },
  })
}

function format({ id, event, data }: ServerSentEvent): string {
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`
}

async function waitFor<Result>(next: Promise<Result>, ms: number, stopping: AbortSignal) {
  let timer: NodeJS.Timeout | undefined
  let letGo = () => {}
  const beat = new Promise<'heartbeat'>((resolve) => {
    timer = setTimeout(() => resolve('heartbeat'), ms)
    timer.unref()
  })
  const stopped = new Promise<'stopping'>((resolve) => {
    // By one listener for all streams: adding the thousandth to a signal takes a look at all the others.
    letGo = onAbort(stopping, () => resolve('stopping'))
  })
  try {
    return await Promise.race([next, beat, stopped])
  } finally {
    clearTimeout(timer)
    letGo()
  }
}
