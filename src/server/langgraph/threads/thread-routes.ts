import { randomUUID } from 'node:crypto'
import { HttpProblem } from '../../http/problem.js'
import { type Call, listOf, nullable, oneOf, type Route } from '../../http/route.js'
import { createThread, label } from './change-thread.js'
import { describeThread, type Found, findThread, needThread } from './find-thread.js'
import { graphOf } from '../graphs/graph-threads.js'
import { toLabels } from './labels.js'
import { answer, ID, METADATA, open } from './thread-body.js'

const SEARCH = open({
  metadata: METADATA,
  ids: listOf({ type: 'string' }),
  limit: { type: 'integer', minimum: 1, maximum: 1000 },
  offset: { type: 'integer', minimum: 0, maximum: 10_000 },
  status: nullable(oneOf('idle', 'busy', 'interrupted', 'error')),
  sort_by: nullable(oneOf('thread_id', 'status', 'created_at', 'updated_at')),
  sort_order: nullable(oneOf('asc', 'desc')),
})

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
]

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
