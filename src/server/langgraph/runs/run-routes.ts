import { toJson } from '../../http/json.js'
import { HttpProblem } from '../../http/problem.js'
import { type Call, listOf, nullable, oneOf, type Route, type Schema } from '../../http/route.js'
import { readCursor } from '../../live/follow-thread.js'
import { programNamed } from '../assistant-routes.js'
import { beginRun, eraseOwn, withRun } from './begin-run.js'
import { needThread, threadId } from '../threads/find-thread.js'
import { hostedOf } from '../graphs/hosted-graph.js'
import { notOffered } from '../not-offered.js'
import { type DescribedRun, describeRun, findRun, listRuns } from './run-list.js'
import type { RunBody } from './run-target.js'
import { runValues } from './run-values.js'
import { streamRun } from './stream-run.js'
import { modesOf, readModes } from './stream-writer.js'

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
        const started = await beginRun(call)
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
        const started = await beginRun(call)
        const isOwn = call.params['thread'] === undefined && onCompletion !== 'keep'
        return streamRun(call, started, modes, undefined, onDisconnect === 'cancel', isOwn)
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
        const started = await beginRun(call)
        const values = await runValues(call, started)
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
      return runValues(call, started, { after, live: undefined })
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
      return streamRun(call, started, modes, from, cancels === '1', false)
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
      if (call.query['wait'] === '1') await runValues(call, started, { after, live: undefined })
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
      for (const body of call.body as readonly RunBody[]) runs.push(await describeRun(call, await beginRun(call, body)))
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
