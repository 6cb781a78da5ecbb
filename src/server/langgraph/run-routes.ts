import { randomUUID } from 'node:crypto'
import { toJson } from '../http/json.js'
import { HttpProblem } from '../http/problem.js'
import { type Call, listOf, nullable, oneOf, type Route, type Schema } from '../http/route.js'
import { type ServerSentEvent, sseResponse } from '../http/sse.js'
import { type Cursor, readCursor } from '../live/follow-thread.js'
import { followRun } from '../run/follow-run.js'
import type { StartedRun } from '../run/start-run.js'
import { programNamed } from './assistant-routes.js'
import { needThread, threadId } from './find-thread.js'
import { graphValues } from './graph-threads.js'
import { GraphWriter } from './graph-writer.js'
import { hostedOf } from './hosted-graph.js'
import { type DescribedRun, describeRun, findRun, listRuns } from './run-list.js'
import { type RunBody, startOn } from './run-target.js'
import { type Mode, modesOf, readModes, StreamWriter, valuesAt } from './stream-writer.js'
import { createThread, notOffered } from './thread-routes.js'

const NODES: Schema = { anyOf: [{ enum: ['*'] }, listOf({ type: 'string' }), { type: 'null' }] }
const BODY: Schema = {
  type: 'object',
  properties: {
    assistant_id: { type: 'string' },
    command: nullable({ type: 'object' }),
    checkpoint: nullable({ type: 'object', properties: { checkpoint_id: nullable({ type: 'string' }) } }),
    checkpoint_id: nullable({ type: 'string' }),
    metadata: nullable({ type: 'object' }),
    stream_mode: { anyOf: [{ type: 'string' }, listOf({ type: 'string' }), { type: 'null' }] },
    multitask_strategy: nullable(oneOf('reject', 'interrupt', 'rollback', 'enqueue')),
    on_disconnect: nullable(oneOf('cancel', 'continue')),
    if_not_exists: nullable(oneOf('create', 'reject')),
    on_completion: nullable(oneOf('delete', 'keep')),
    config: nullable({ type: 'object', properties: { configurable: nullable({ type: 'object' }) } }),
    stream_subgraphs: nullable({ type: 'boolean' }),
    interrupt_before: NODES,
    interrupt_after: NODES,
    durability: nullable(oneOf('sync', 'async', 'exit')),
  },
  required: ['assistant_id'],
}
const answer = { schema: { type: 'object' } }
const STREAM = { type: 'text/event-stream' }
const JOIN = { cancel_on_disconnect: { type: 'string' }, stream_mode: listOf({ type: 'string' }) } as const

type StreamBody = RunBody & {
  readonly on_disconnect?: 'cancel' | 'continue' | null
  readonly on_completion?: 'delete' | 'keep' | null
}

/** What is used of an outcome. */
interface Ended {
  readonly status: string
  readonly run: string
  readonly error?: { readonly name: string; readonly message: string }
  readonly checkpoint?: string
  readonly limit?: string
  readonly reason?: string
  readonly [field: string]: unknown
}

/** Runs on a thread, and runs that bring their own. */
export const runRoutes: readonly Route[] = [
  ...(['/threads/:thread/runs', '/runs'] as const).flatMap((path): Route[] => [
    {
      method: 'POST',
      path,
      name: `lgCreateRun${path.length}`,
      summary: 'Starts a run and returns at once',
      role: 'run',
      body: BODY,
      answer,
      async handle(call) {
        const started = await begin(call)
        return withRun(Response.json(await describeRun(call, started)), started)
      },
    },
    {
      method: 'POST',
      path: `${path}/stream`,
      name: `lgStreamRun${path.length}`,
      summary: 'Starts a run and tells what happens',
      role: 'run',
      body: BODY,
      answer: STREAM,
      async handle(call) {
        const { stream_mode: asked, on_disconnect: onDisconnect, on_completion: onCompletion } = call.body as StreamBody
        const modes = readModes(asked, hostedOf(programNamed(call.core, (call.body as RunBody).assistant_id)))
        const started = await begin(call)
        const isOwn = call.params['thread'] === undefined && onCompletion !== 'keep'
        return stream(call, started, modes, undefined, onDisconnect === 'cancel', isOwn)
      },
    },
    {
      method: 'POST',
      path: `${path}/wait`,
      name: `lgWaitForRun${path.length}`,
      summary: 'Starts a run and waits for its values',
      role: 'run',
      body: BODY,
      answer,
      async handle(call) {
        const started = await begin(call)
        const values = await outcome(call, started)
        const isOwn = call.params['thread'] === undefined && (call.body as StreamBody).on_completion !== 'keep'
        if (isOwn) await eraseOwn(call, started)
        return withRun(new Response(toJson(values), { headers: { 'content-type': 'application/json' } }), started)
      },
    },
  ]),
  {
    method: 'GET',
    path: '/threads/:thread/runs',
    name: 'lgListRuns',
    summary: 'Runs of a thread, newest first',
    role: 'read',
    query: {
      limit: { type: 'integer', minimum: 1, maximum: 1000 },
      offset: { type: 'integer', minimum: 0 },
      status: { type: 'string' },
      select: listOf({ type: 'string' }),
    },
    answer,
    async handle(call) {
      const { limit = 10, offset = 0, status } = call.query as { limit?: number; offset?: number; status?: string }
      const { id } = await needThread(call)
      const runs = (await listRuns(call, id)).filter((run) => status === undefined || run.status === status)
      return runs.slice(offset, offset + limit)
    },
  },
  {
    method: 'GET',
    path: '/threads/:thread/runs/:run',
    name: 'lgGetRun',
    summary: 'One run',
    role: 'read',
    answer,
    handle: async (call) => (await findRun(call, threadId(call), call.params['run'] ?? '')).described,
  },
  {
    method: 'GET',
    path: '/threads/:thread/runs/:run/join',
    name: 'lgJoinRun',
    summary: 'Waits for the values of a run',
    role: 'read',
    query: { cancel_on_disconnect: { type: 'string' } },
    answer,
    async handle(call) {
      const { started, after } = await findRun(call, threadId(call), call.params['run'] ?? '')
      return outcome(call, started, { after, live: undefined })
    },
  },
  {
    method: 'GET',
    path: '/threads/:thread/runs/:run/stream',
    name: 'lgJoinStream',
    summary: 'What happens in a run: from an event on, from its beginning (-1), or from now',
    role: 'read',
    query: JOIN,
    answer: STREAM,
    async handle(call) {
      const { stream_mode: asked, cancel_on_disconnect: cancels } = call.query as {
        stream_mode?: string[]
        cancel_on_disconnect?: string
      }
      // Who joins says which ones, or gets all: which were asked for at first is not recorded.
      const { started, after } = await findRun(call, threadId(call), call.params['run'] ?? '')
      const hosted = hostedOf(started.program)
      const modes = asked === undefined || asked.length === 0 ? modesOf(hosted) : readModes(asked, hosted)
      const last = call.request.headers.get('last-event-id')
      const from = last === '-1' ? { after, live: undefined } : last ? readCursor(last) : undefined
      return stream(call, started, modes, from, cancels === '1', false)
    },
  },
  {
    method: 'POST',
    path: '/threads/:thread/runs/:run/cancel',
    name: 'lgCancelRun',
    summary: 'Ends a run',
    role: 'run',
    query: { wait: { type: 'string' }, action: { type: 'string' } },
    answer: { status: 202 },
    async handle(call) {
      const { started, after } = await cancelRun(call, threadId(call), call.params['run'] ?? '')
      if (call.query['wait'] === '1') await outcome(call, started, { after, live: undefined })
      return new Response(null, { status: 202 })
    },
  },
  {
    method: 'POST',
    path: '/runs/batch',
    name: 'lgCreateBatch',
    summary: 'Starts several runs, each on a thread of its own',
    role: 'run',
    body: { ...listOf(BODY), maxItems: 100 },
    answer,
    async handle(call) {
      const runs: DescribedRun[] = []
      for (const body of call.body as readonly RunBody[]) runs.push(await describeRun(call, await begin(call, body)))
      return runs
    },
  },
  {
    method: 'POST',
    path: '/runs/cancel',
    name: 'lgCancelRuns',
    summary: 'Ends several runs of a thread',
    role: 'run',
    query: { action: { type: 'string' } },
    body: {
      type: 'object',
      properties: { thread_id: { type: 'string' }, run_ids: { ...listOf({ type: 'string' }), maxItems: 100 } },
    },
    answer: { status: 204 },
    async handle(call) {
      const { thread_id: thread, run_ids: runs } = call.body as { thread_id?: string; run_ids?: readonly string[] }
      if (thread === undefined || runs === undefined) throw notOffered('status', 'Name the thread and its runs.')
      for (const run of runs) await cancelRun(call, thread, run)
    },
  },
]

/** Starts the run of a body, on the thread of the path or on one of its own. */
async function begin(call: Call, body = call.body as RunBody): Promise<StartedRun> {
  if (call.params['thread'] !== undefined) return startOn(call, threadId(call), body)
  const id = randomUUID()
  await createThread(call.hf, id, body.metadata ?? {})
  return startOn(call, id, body)
}

/** Ends a run if it is not over. */
async function cancelRun(call: Call, thread: string, run: string) {
  if (call.query['action'] === 'rollback') {
    throw notOffered('action=rollback', 'Cancel it, and run from an older checkpoint.')
  }
  const found = await findRun(call, thread, run)
  if (!found.isOver) {
    // By its id: by now another may be in progress, which nobody wants to end.
    const isEnded = await found.started.thread.cancel({ by: call.principal.subject, run })
    if (!isEnded && found.described.status === 'pending') {
      throw new HttpProblem(
        409,
        'conflict',
        'The run is queued behind another one, and can be ended once it has started.',
      )
    }
  }
  return found
}

/** Waits for a run, and tells its values as these clients want them: with the error inside, if it failed. */
async function outcome(call: Call, started: StartedRun, from?: Cursor): Promise<Record<string, unknown>> {
  const signal = AbortSignal.any([call.request.signal, call.core.stopping])
  for await (const news of followRun(
    call.core,
    started,
    signal,
    from ?? { after: started.checkpoint, live: undefined },
  )) {
    if (!('outcome' in news)) continue
    const { checkpoint } = news.outcome as Ended
    const error = errorOf(news.outcome as Ended)
    if (error) return { __error__: error }
    const hosted = hostedOf(started.program)
    return hosted === undefined
      ? valuesAt(started, checkpoint as string)
      : graphValues(call, hosted, started, checkpoint as string)
  }
  throw new HttpProblem(503, 'stopping', 'The server is stopping. The run continues wherever another worker runs.', {
    fields: { retryable: true },
  })
}

/** What went wrong, as these clients are told. A limit of the program is an error to them, as a recursion limit is. */
function errorOf({ status, error, limit, reason }: Ended): { error: string; message: string } | undefined {
  if (status === 'limited') return { error: `Limit: ${limit}`, message: reason ?? '' }
  if (status !== 'failed') return undefined
  return { error: error?.name ?? 'Error', message: error?.message ?? 'The run failed.' }
}

function stream(
  call: Call,
  started: StartedRun,
  modes: readonly Mode[],
  from: Cursor | undefined,
  cancelsWhenLeft: boolean,
  isErased: boolean,
): Response {
  const { core, principal, request } = call
  const slot = core.slots.take(principal)
  const gone = new AbortController()
  const hosted = hostedOf(started.program)
  const writer =
    hosted === undefined
      ? new StreamWriter(started, modes)
      : new GraphWriter(started, modes, (checkpoint) => graphValues(call, hosted, started, checkpoint))
  let isOver = false
  const events = async function* (): AsyncGenerator<ServerSentEvent> {
    yield writer.first()
    const signal = AbortSignal.any([gone.signal, request.signal])
    for await (const news of followRun(core, started, signal, from)) {
      if (!('outcome' in news)) {
        for (const event of await writer.write(news.event)) yield { ...event, id: news.cursor }
        continue
      }
      isOver = true
      const { checkpoint } = news.outcome as Ended
      const error = errorOf(news.outcome as Ended)
      if (checkpoint !== undefined)
        for (const event of await writer.values(checkpoint)) yield { ...event, id: news.cursor }
      if (error) yield { event: 'error', data: toJson(error) }
      yield { event: 'end', data: 'null' }
    }
    if (isErased) await eraseOwn(call, started)
  }
  const response = sseResponse(events(), {
    ...core.limits,
    slot,
    stopping: core.stopping,
    onEnd() {
      gone.abort()
      // Not when the server stops: its clients come back.
      if (cancelsWhenLeft && !isOver && !core.stopping.aborted) {
        void started.thread.cancel({ by: principal.subject, reason: 'its client left' }).catch(() => {})
      }
    },
  })
  const path = `/threads/${encodeURIComponent(String(started.thread.id))}/runs/${started.run}`
  const query = new URLSearchParams(modes.map((mode): [string, string] => ['stream_mode', mode]))
  if (!cancelsWhenLeft) response.headers.set('location', `${path}/stream?${query}`)
  return withRun(response, started)
}

async function eraseOwn(call: Call, { thread, program }: StartedRun): Promise<void> {
  await hostedOf(program)?.erase(call.principal.tenant, String(thread.id))
  await call.hf.erase(thread.id, { reason: 'a run without a thread is over' })
}

function withRun(response: Response, { thread, run }: StartedRun): Response {
  response.headers.set('content-location', `/threads/${encodeURIComponent(String(thread.id))}/runs/${run}`)
  return response
}
