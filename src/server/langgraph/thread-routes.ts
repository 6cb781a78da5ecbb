import { randomUUID } from 'node:crypto'
import type { Holdfast } from '../../index.js'
import { HttpProblem } from '../http/problem.js'
import { type Call, listOf, nullable, oneOf, type Route, type Schema } from '../http/route.js'
import { listHistory, MAX_HISTORY } from '../run/all-history.js'
import { describeThread, type Found, findThread, needThread, stateOf, statusOf } from './find-thread.js'
import { graphCheckpoint, graphOf, graphState, type GraphThread } from './graph-threads.js'
import { toLabels } from './labels.js'
import { fromChain } from './messages.js'
import { checkpointOf, parentOf, toThreadState, writeCheckpointId } from './thread-state.js'

const METADATA: Schema = nullable({ type: 'object' })
const ID: Schema = nullable({ type: 'string', minLength: 1, maxLength: 512 })
const CHECKPOINT: Schema = nullable({ type: 'object', properties: { checkpoint_id: nullable({ type: 'string' }) } })
const open = (properties: Readonly<Record<string, Schema>>): Schema => ({ type: 'object', properties })
const answer = { schema: { type: 'object' } }
const SEARCH = open({
  metadata: METADATA,
  ids: listOf({ type: 'string' }),
  limit: { type: 'integer', minimum: 1, maximum: 1000 },
  offset: { type: 'integer', minimum: 0, maximum: 10_000 },
  status: nullable(oneOf('idle', 'busy', 'interrupted', 'error')),
  sort_by: nullable(oneOf('thread_id', 'status', 'created_at', 'updated_at')),
  sort_order: nullable(oneOf('asc', 'desc')),
})
const SUBGRAPHS = { subgraphs: { type: 'string' } } as const

/** Threads as LangGraph's clients know them: all branches are one thread, whose state is that of the newest. */
export const threadRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/threads',
    name: 'lgCreateThread',
    summary: 'Makes a thread',
    role: 'run',
    body: open({ thread_id: ID, metadata: METADATA, if_exists: nullable(oneOf('raise', 'do_nothing')) }),
    answer,
    async handle(call) {
      const {
        thread_id: given,
        metadata,
        if_exists: ifExists,
      } = call.body as {
        thread_id?: string | null
        metadata?: Record<string, unknown> | null
        if_exists?: string | null
      }
      const id = given ?? randomUUID()
      const isNew = await createThread(call.hf, id, metadata ?? {})
      if (!isNew && ifExists !== 'do_nothing')
        throw new HttpProblem(409, 'conflict', `The thread "${id}" exists already.`)
      return describeThread(call, await needThread(call, id))
    },
  },
  {
    method: 'POST',
    path: '/threads/search',
    name: 'lgSearchThreads',
    summary: 'Threads by metadata and status',
    role: 'read',
    body: SEARCH,
    answer,
    async handle(call) {
      const { limit = 10, offset = 0 } = call.body as { limit?: number; offset?: number }
      const found = (await search(call, offset + limit)).slice(offset)
      return Promise.all(found.map((one) => describeThread(call, one)))
    },
  },
  {
    method: 'POST',
    path: '/threads/count',
    name: 'lgCountThreads',
    summary: 'How many threads there are',
    role: 'read',
    body: SEARCH,
    answer,
    handle: async (call) => (await search(call, 10_000)).length,
  },
  {
    method: 'GET',
    path: '/threads/:thread',
    name: 'lgGetThread',
    summary: 'One thread',
    role: 'read',
    query: { include: listOf({ type: 'string' }) },
    answer,
    handle: async (call) => describeThread(call, await needThread(call)),
  },
  {
    method: 'PATCH',
    path: '/threads/:thread',
    name: 'lgPatchThread',
    summary: 'Changes the metadata of a thread',
    role: 'run',
    body: open({ metadata: METADATA }),
    answer,
    async handle(call) {
      const found = await needThread(call)
      const { metadata } = call.body as { metadata?: Record<string, unknown> | null }
      await label(call.hf, found, metadata ?? {})
      return describeThread(call, await needThread(call))
    },
  },
  {
    method: 'DELETE',
    path: '/threads/:thread',
    name: 'lgDeleteThread',
    summary: 'Removes a thread with all its branches',
    role: 'admin',
    answer: { status: 204 },
    async handle(call) {
      const found = await needThread(call)
      const graph = graphOf(call, found)
      await graph?.hosted.erase(graph.tenant, found.id)
      await call.hf.erase(found.id, { reason: `erased by ${call.principal.subject}` })
    },
  },
  {
    method: 'POST',
    path: '/threads/:thread/copy',
    name: 'lgCopyThread',
    summary: 'Makes another thread with the same past. It runs when somebody runs it',
    role: 'fork',
    answer,
    async handle(call) {
      const found = await needThread(call)
      const { id } = found
      const copy = randomUUID()
      const graph = graphOf(call, found)
      if (graph !== undefined && (await graph.hosted.state(graph.tenant, id)) !== undefined) {
        // First the states: a thread that is there has all of them.
        await call.hf.import(await call.hf.export({ langgraph: id }), { thread: { langgraph: copy } })
      }
      await call.hf.import(await call.hf.export(id), { thread: copy })
      return describeThread(call, await needThread(call, copy))
    },
  },
  {
    method: 'GET',
    path: '/threads/:thread/state',
    name: 'lgGetState',
    summary: 'The newest state',
    role: 'read',
    query: SUBGRAPHS,
    answer,
    handle: (call) => readState(call, {}),
  },
  {
    method: 'POST',
    path: '/threads/:thread/state/checkpoint',
    name: 'lgGetStateAtCheckpoint',
    summary: 'The state at a checkpoint',
    role: 'read',
    body: open({ checkpoint: CHECKPOINT, subgraphs: nullable({ type: 'boolean' }) }),
    answer,
    handle: (call) => readState(call, call.body as object),
  },
  {
    method: 'GET',
    path: '/threads/:thread/state/:checkpoint',
    name: 'lgGetStateAt',
    summary: 'The state at a checkpoint, by its id',
    role: 'read',
    query: SUBGRAPHS,
    answer,
    handle: (call) => readState(call, { checkpoint_id: call.params['checkpoint'] ?? '' }),
  },
  {
    method: 'POST',
    path: '/threads/:thread/state',
    name: 'lgUpdateState',
    summary: 'Changes the state through its reducers, on a branch of its own',
    role: 'fork',
    body: open({ values: { type: ['object', 'array', 'null'] }, checkpoint: CHECKPOINT, checkpoint_id: ID }),
    answer,
    async handle(call) {
      const found = await needThread(call)
      const { values, as_node: node } = call.body as {
        values?: Record<string, unknown> | null
        as_node?: string | null
      }
      const graph = graphOf(call, found)
      if (graph !== undefined) return updateGraph(call, found, graph, values, node ?? undefined)
      if (node !== undefined && node !== null)
        throw notOffered('as_node', 'A state is changed as a whole, not as if by a node.')
      const checkpoint = checkpointOf(call.body as object) ?? found.summary.checkpoint
      const branch = await updateState(call, found, checkpoint, values ?? {})
      const { id, at } = await headOf(call.hf, found.id, branch)
      const ref = { thread_id: found.id, checkpoint_ns: '', checkpoint_id: writeCheckpointId(at, id) }
      return { checkpoint: ref, configurable: ref }
    },
  },
  {
    method: 'PATCH',
    path: '/threads/:thread/state',
    name: 'lgPatchState',
    summary: 'Changes the metadata of a thread',
    role: 'run',
    body: open({ metadata: METADATA }),
    answer: { status: 204 },
    async handle(call) {
      const { metadata } = call.body as { metadata?: Record<string, unknown> | null }
      await label(call.hf, await needThread(call), metadata ?? {})
    },
  },
  {
    method: 'POST',
    path: '/threads/:thread/history',
    name: 'lgGetHistory',
    summary: 'States of all branches, newest first',
    role: 'read',
    body: open({ limit: { type: 'integer', minimum: 1, maximum: 1000 }, metadata: METADATA, checkpoint: CHECKPOINT }),
    answer,
    handle: history,
  },
]

interface StateBody {
  readonly checkpoint?: { readonly checkpoint_id?: string | null } | null
  readonly checkpoint_id?: string | null
  readonly subgraphs?: boolean | null
}

async function readState(call: Call, body: StateBody) {
  const found = await needThread(call)
  const graph = graphOf(call, found)
  if (graph === undefined) return stateOf(call, found, checkpointOf(body))
  const subgraphs = body.subgraphs === true || call.query['subgraphs'] === 'true'
  return graphState(graph, found.facts, { ...graphCheckpoint(body), subgraphs })
}

/** Changes the state of a graph as LangGraph does: in the name of a node, if one is given. */
async function updateGraph(call: Call, found: Found, graph: GraphThread, values: unknown, node: string | undefined) {
  if (statusOf(found) === 'busy') {
    throw new HttpProblem(409, 'busy', 'The thread is running, and its writes would conflict with this change.', {
      remedy: 'Wait for its run, or cancel it.',
      fields: { retryable: true },
    })
  }
  const at = graphCheckpoint(call.body)
  const change = { values: values ?? null, ...at, ...(node === undefined ? {} : { asNode: node }) }
  const { ns, id } = await graph.hosted.update(graph.tenant, graph.id, change)
  const ref = { thread_id: graph.id, checkpoint_ns: ns, checkpoint_id: id }
  return { checkpoint: ref, configurable: ref }
}

async function history(call: Call) {
  const found = await needThread(call)
  const {
    limit = 10,
    before,
    metadata,
  } = call.body as {
    limit?: number
    before?: string | { configurable?: { checkpoint_id?: string }; checkpoint_id?: string } | null
    metadata?: Record<string, unknown> | null
  }
  const until = typeof before === 'string' ? before : (before?.configurable?.checkpoint_id ?? before?.checkpoint_id)
  const graph = graphOf(call, found)
  if (graph !== undefined) {
    const { ns } = graphCheckpoint(call.body)
    return graph.hosted.history(graph.tenant, graph.id, {
      limit,
      ...(until === undefined ? {} : { before: until }),
      ...(metadata ? { metadata } : {}),
      ...(ns === undefined ? {} : { ns }),
    })
  }
  const branches = await call.hf.inspect(found.id).branches()
  const { checkpoints } = await listHistory(call.hf, found.id, branches, {
    limit: until || metadata ? MAX_HISTORY : limit,
  })
  const times = new Map(checkpoints.map(({ id, at }) => [id, at]))
  const older = checkpoints.filter(({ id, at }) => until === undefined || writeCheckpointId(at, id) < until)
  const states = []
  for (const item of older) {
    if (states.length >= limit) break
    const facts = await call.hf.inspect(found.id).look(item.id).facts()
    const at = item.parent === undefined ? undefined : times.get(item.parent)
    const parent = at === undefined ? await parentOf(call.hf, found.id, item) : { id: item.parent as string, at }
    const state = toThreadState(found.id, facts, found.isFlow, parent)
    const isMeant = Object.entries(metadata ?? {}).every(([name, value]) => state.metadata[name] === value)
    if (isMeant) states.push(state)
  }
  return states
}

async function search(call: Call, most: number): Promise<Found[]> {
  const {
    metadata,
    status,
    ids,
    sort_by: by,
    sort_order: order,
  } = call.body as {
    metadata?: Record<string, unknown> | null
    status?: string | null
    ids?: readonly string[]
    sort_by?: string | null
    sort_order?: 'asc' | 'desc' | null
  }
  const labels = Object.fromEntries(Object.entries(toLabels(metadata ?? {})).filter(([, value]) => value !== null))
  const found: Found[] = []
  let cursor: string | undefined
  do {
    const page = await call.hf.threads({
      branch: 'main',
      metadata: labels as never,
      order: by === 'created_at' ? 'created' : 'updated',
      direction: order ?? 'desc',
      limit: 100,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const { thread } of page.threads) {
      if (typeof thread !== 'string' || (ids !== undefined && !ids.includes(thread))) continue
      const one = await findThread(call, thread)
      if (one !== undefined && (!status || (await describeThread(call, one)).status === status)) found.push(one)
      if (found.length >= most) return found
    }
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}

/** Makes an empty thread with labels. False when there is one. */
export async function createThread(
  hf: Holdfast,
  id: string,
  metadata: Readonly<Record<string, unknown>>,
): Promise<boolean> {
  const log = await hf.log(id)
  const { entries } = await log.update((fold) =>
    fold.seq >= 0 ? undefined : [{ kind: 'tag', ops: [], index: { status: 'idle', metadata: toLabels(metadata) } }],
  )
  return entries.length > 0
}

/** Writes labels to all branches, since any of them may be the newest. */
export async function label(hf: Holdfast, found: Found, metadata: Readonly<Record<string, unknown>>): Promise<void> {
  const labels = toLabels(metadata)
  const { threads } = await hf.threads({ thread: found.id, limit: 1000 })
  for (const { branch, metadata: known } of threads) {
    if (Object.entries(labels).every(([name, value]) => (known[name] ?? null) === value)) continue
    await (await hf.log(found.id, { branch })).update(() => [{ kind: 'tag', ops: [], index: { metadata: labels } }])
  }
}

/** A branch of a checkpoint with its state changed through its reducers. */
export async function updateState(
  call: Call,
  found: Found,
  checkpoint: string,
  values: Readonly<Record<string, unknown>>,
): Promise<string> {
  const { thread, program } = await call.core.thread(call.hf, found.id, found.summary.branch)
  const isAgent = program.plan.kind === 'graph' && program.plan.role === 'agent'
  const { messages, ...rest } = values
  const update =
    isAgent && messages !== undefined ? { ...rest, messages: fromChain(messages, 'values.messages') } : values
  return (await thread.at(checkpoint).fork({ update: update as never })).branch
}

async function headOf(hf: Holdfast, id: string, branch: string) {
  const [newest] = await hf.inspect(id, { branch }).history({ events: false, limit: 1 })
  return newest as { id: string; at: Date }
}

/** What this server does not do, said so. */
export function notOffered(what: string, why: string): HttpProblem {
  return new HttpProblem(501, 'not-offered', `${what} is not offered by this server. ${why}`, {
    fields: { field: what },
  })
}
