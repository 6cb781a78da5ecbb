import type { Holdfast } from '../../../index.js'
import { HttpProblem } from '../../http/problem.js'
import { type Call, nullable, type Route, type Schema } from '../../http/route.js'
import { listHistory, MAX_HISTORY } from '../../run/all-history.js'
import { label, updateState } from './change-thread.js'
import { type Found, needThread, stateOf, statusOf } from './find-thread.js'
import { graphCheckpoint, graphOf, graphState, type GraphThread } from '../graphs/graph-threads.js'
import { notOffered } from '../not-offered.js'
import { answer, ID, METADATA, open } from './thread-body.js'
import { checkpointOf, parentOf, toThreadState, writeCheckpointId } from './thread-state.js'

const CHECKPOINT: Schema = nullable({ type: 'object', properties: { checkpoint_id: nullable({ type: 'string' }) } })
const SUBGRAPHS = { subgraphs: { type: 'string' } } as const

/** States of a thread, now and before. */
export const stateRoutes: readonly Route[] = [
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

async function headOf(hf: Holdfast, id: string, branch: string) {
  const [newest] = await hf.inspect(id, { branch }).history({ events: false, limit: 1 })
  return newest as { id: string; at: Date }
}
