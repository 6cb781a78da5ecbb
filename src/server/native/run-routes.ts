import { writeThreadId } from '../http/ids.js'
import { toJson } from '../http/json.js'
import { type Call, object, oneOf, ref, type Route, type Schema } from '../http/route.js'
import { type ServerSentEvent, sseResponse } from '../http/sse.js'
import { type Cursor, followThread, readCursor } from '../live/follow-thread.js'
import { followRun, waitForRun } from '../run/follow-run.js'
import { type StartedRun, startRun } from '../run/start-run.js'
import { BRANCH, KEY, summaryOf, TEXT, threadOf, viewOf } from './common.js'

const MAX_WAIT_MS = 600_000
const BODY: Schema = object({
  'input?': { description: 'What the run works on. For an agent: text, or messages.' },
  'program?': { type: 'string', description: 'Needed for a new thread where the server has several.' },
  'branch?': BRANCH,
  'key?': KEY,
  'busy?': {
    ...oneOf('queue', 'reject', 'interrupt'),
    description: 'While a run is not over: wait behind it (default), be refused, or cancel it.',
  },
})
const STREAM = { type: 'text/event-stream', description: 'Events; `data` is JSON with the `type` of the event.' }

/** Runs: start, wait, follow, cancel, signal, try again. */
export const runRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/threads/:thread/runs',
    name: 'startRun',
    summary: 'Leaves input for a worker, durably, and returns at once',
    role: 'run',
    body: BODY,
    answer: { status: 202, schema: ref('StartedRun') },
    handle: async (call) => describe(await start(call)),
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/runs/wait',
    name: 'waitForRun',
    summary: 'The same, and waits until the run completes, pauses or fails',
    role: 'run',
    query: { timeoutMs: { type: 'integer', minimum: 1, maximum: MAX_WAIT_MS, description: 'Default 60,000.' } },
    body: BODY,
    answer: { schema: ref('Outcome') },
    async handle(call) {
      const { timeoutMs = 60_000 } = call.query as { readonly timeoutMs?: number }
      return waitForRun(call.core, await start(call), call.request.signal, timeoutMs)
    },
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/runs/stream',
    name: 'streamRun',
    summary: 'The same, as a stream of what happens. The last event is the outcome',
    role: 'run',
    body: BODY,
    answer: STREAM,
    async handle(call) {
      const from = cursorOf(call)
      return stream(call, async function* (signal) {
        const started = await start(call)
        yield { event: 'started', data: toJson({ type: 'started', ...describe(started) }) }
        for await (const news of followRun(call.core, started, signal, from)) {
          const data = 'outcome' in news ? { type: 'outcome', outcome: news.outcome } : news.event
          yield { id: news.cursor, event: data.type, data: toJson(data) }
        }
      })
    },
  },
  {
    method: 'GET',
    path: '/v1/threads/:thread/events',
    name: 'followThread',
    summary: 'What happens on a thread, from now on or from an event; reconnect with Last-Event-ID',
    role: 'read',
    query: {
      branch: BRANCH,
      after: { type: 'string', description: 'An event id, or `start`. The header Last-Event-ID wins. Default: now.' },
    },
    answer: STREAM,
    async handle(call) {
      const { after } = call.query as { readonly after?: string }
      const given = cursorOf(call) ?? readAfter(after)
      const from = given ?? { after: (await summaryOf(call)).checkpoint, live: undefined }
      return stream(call, async function* (signal) {
        for await (const { cursor, event } of followThread(viewOf(call), call.core.hub, from, signal)) {
          yield { id: cursor, event: event.type, data: toJson(event) }
        }
      })
    },
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/cancel',
    name: 'cancelRun',
    summary: 'Ends the run that is in progress or waiting',
    role: 'run',
    query: { branch: BRANCH },
    body: object({ 'reason?': { type: 'string', maxLength: 1000 } }),
    optionalBody: true,
    answer: { status: 204 },
    async handle(call) {
      const { reason } = (call.body ?? {}) as { readonly reason?: string }
      const view = viewOf(call)
      await view.cancel({ by: call.principal.subject, ...(reason === undefined ? {} : { reason }) })
    },
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/resume',
    name: 'resumeRun',
    summary: 'Requests another attempt at a run that failed, was parked, or waits on a fork',
    role: 'run',
    query: { branch: BRANCH },
    answer: { schema: object({ resumed: { type: 'boolean' } }) },
    async handle(call) {
      const view = viewOf(call)
      const resumed = await view.wake()
      return { resumed }
    },
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/signals',
    name: 'sendSignal',
    summary: 'Sends something to a program that waits for it, or will',
    role: 'run',
    query: { branch: BRANCH },
    body: object({ name: TEXT, 'value?': {}, 'key?': KEY }),
    answer: { schema: object({ signal: oneOf('sent', 'known') }) },
    async handle(call) {
      const { name, value, key } = call.body as {
        readonly name: string
        readonly value?: unknown
        readonly key?: string
      }
      const view = viewOf(call)
      const sent = await view.signal(name, value, key === undefined ? {} : { key })
      return sent
    },
  },
]

function start(call: Call): Promise<StartedRun> {
  const { branch = 'main', ...request } = call.body as { readonly branch?: string; readonly input?: unknown }
  return startRun(call.core, call.hf, { ...request, input: request.input, thread: threadOf(call), branch })
}

function describe({ thread, run, input, checkpoint }: StartedRun) {
  return { id: writeThreadId(thread.id), thread: thread.id, branch: thread.branch, input, run, checkpoint }
}

function cursorOf({ request }: Call): Cursor | undefined {
  const id = request.headers.get('last-event-id')
  return id === null || id === '' ? undefined : readCursor(id)
}

function readAfter(after: string | undefined): Cursor | undefined {
  if (after === undefined) return undefined
  return after === 'start' ? { after: undefined, live: undefined } : readCursor(after)
}

/** A stream with a place of its own, whose maker stops when its reader goes. */
async function stream(call: Call, make: (signal: AbortSignal) => AsyncGenerator<ServerSentEvent>): Promise<Response> {
  const { core, principal, request } = call
  const slot = core.slots.take(principal)
  const gone = new AbortController()
  const events = make(AbortSignal.any([gone.signal, request.signal]))
  try {
    // What is wrong with the request is an answer, not an event. A stream that is only followed may wait long for its first.
    const isFollowing = call.request.method === 'GET'
    const first = isFollowing ? undefined : await events.next()
    return sseResponse(first === undefined ? events : startingWith(first, events), {
      ...core.limits,
      slot,
      stopping: core.stopping,
      onEnd: () => gone.abort(),
    })
  } catch (error) {
    slot.release()
    gone.abort()
    throw error
  }
}

function startingWith<Item>(first: IteratorResult<Item>, rest: AsyncGenerator<Item>): AsyncIterator<Item> {
  let isFirst = true
  return {
    next: async () => {
      if (!isFirst) return rest.next()
      isFirst = false
      return first
    },
    return: (value) => rest.return(value),
  }
}
