import type { ThreadQuery } from '../../index.js'
import { mayDo } from '../access/principal.js'
import { readName, readThreadId } from '../http/ids.js'
import { HttpProblem } from '../http/problem.js'
import { type Call, listOf, object, oneOf, ref, type Route } from '../http/route.js'
import { hostedOf } from '../langgraph/graphs/hosted-graph.js'
import { BRANCH, branchOf, CURSOR, describeThread, given, LIMIT, summaryOf, TEXT, threadOf, viewOf } from './common.js'

const FILTERS = {
  thread: { type: 'string', description: 'One thread, by its id as paths hold it: all of its branches.' },
  branch: TEXT,
  status: listOf(TEXT),
  tag: listOf(TEXT),
  metadata: { ...listOf(TEXT), description: 'name=value; JSON numbers and booleans are read as such.' },
  updatedBefore: { type: 'string', format: 'date-time' },
  updatedAfter: { type: 'string', format: 'date-time' },
  limit: LIMIT,
  cursor: CURSOR,
} as const

/** Threads: find, look at, verify, erase. */
export const threadRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/threads',
    name: 'listThreads',
    summary: 'One page of threads, a row for each branch',
    role: 'read',
    query: { ...FILTERS, order: oneOf('created', 'updated'), direction: oneOf('asc', 'desc') },
    answer: { schema: ref('ThreadPage') },
    async handle({ hf, query }) {
      const { threads, cursor } = await hf.threads(readFilters(query))
      return { threads: threads.map(describeThread), cursor }
    },
  },
  {
    method: 'GET',
    path: '/v1/threads/:thread',
    name: 'showThread',
    summary: 'What the index says of a thread, and all of its branches',
    role: 'read',
    query: { branch: BRANCH },
    answer: { schema: object({ thread: ref('Thread'), branches: listOf(ref('Branch')) }) },
    async handle(call) {
      // Before anything is in progress: what throws here must leave no promise behind that nobody handles.
      const view = viewOf(call)
      const [summary, branches] = await Promise.all([summaryOf(call), view.branches()])
      return { thread: describeThread(summary), branches }
    },
  },
  {
    method: 'GET',
    path: '/v1/threads/:thread/state',
    name: 'readState',
    summary: 'The state, run and open questions, now or at a checkpoint',
    role: 'read',
    query: { branch: BRANCH, at: { type: 'string', description: 'A checkpoint. Default: the newest.' } },
    answer: { schema: ref('Facts') },
    async handle(call) {
      const at = (call.query['at'] as string | undefined) ?? (await summaryOf(call)).checkpoint
      return viewOf(call).look(at).facts()
    },
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/verify',
    name: 'verifyThread',
    summary: 'Walks every entry of a branch and says what is wrong with it',
    role: 'read',
    query: { branch: BRANCH },
    body: object({ 'repair?': { type: 'boolean', description: 'Repairs the index. Needs the role admin.' } }),
    optionalBody: true,
    answer: { schema: ref('Verification') },
    async handle(call) {
      const { repair = false } = (call.body ?? {}) as { readonly repair?: boolean }
      if (repair && !mayDo(call.principal, 'admin')) {
        throw new HttpProblem(403, 'not-allowed', 'A repair needs the role "admin".', { fields: { role: 'admin' } })
      }
      await summaryOf(call)
      return call.hf.verify(threadOf(call), { branch: branchOf(call), repair })
    },
  },
  {
    method: 'DELETE',
    path: '/v1/threads/:thread',
    name: 'eraseThread',
    summary: 'Removes a thread with all its branches',
    role: 'admin',
    answer: { schema: object({ erased: { type: 'integer' } }) },
    async handle(call) {
      const id = threadOf(call)
      const [known] = (await call.hf.threads({ thread: id, branch: 'main', limit: 1 })).threads
      const graph = hostedOf(call.core.programs.get(String(known?.metadata['holdfast.program'])))
      // First the states of a graph: without its thread nobody would find them.
      if (typeof id === 'string') await graph?.erase(call.principal.tenant, id)
      return call.hf.erase(id, { reason: `erased by ${call.principal.subject}` })
    },
  },
  {
    method: 'PUT',
    path: '/v1/threads/:thread/tags/:tag',
    name: 'tagCheckpoint',
    summary: 'Names a checkpoint: it can be found by the name, and pruning keeps it',
    role: 'fork',
    query: { branch: BRANCH },
    body: object({ 'at?': { type: 'string', description: 'A checkpoint. Default: the newest.' } }),
    optionalBody: true,
    answer: { schema: object({ tag: TEXT, checkpoint: TEXT }) },
    async handle(call) {
      const tag = readName(call.params['tag'] ?? '', 'tag')
      const { at } = (call.body ?? {}) as { readonly at?: string }
      const checkpoint = at ?? (await summaryOf(call)).checkpoint
      const look = viewOf(call).look(checkpoint)
      const { seq } = await look.fold()
      await (await call.hf.log(threadOf(call), { branch: look.branch })).tag(tag, seq)
      return { tag, checkpoint }
    },
  },
  {
    method: 'DELETE',
    path: '/v1/threads/:thread/tags/:tag',
    name: 'untagCheckpoint',
    summary: 'Removes a tag from its checkpoint, which stays',
    role: 'fork',
    query: { branch: BRANCH },
    answer: { schema: object({ tag: TEXT }) },
    async handle(call) {
      const tag = readName(call.params['tag'] ?? '', 'tag')
      const { branch } = await summaryOf(call)
      const { entries } = await (await call.hf.log(threadOf(call), { branch })).untag(tag)
      if (entries.length > 0) return { tag }
      throw new HttpProblem(404, 'not-found', `The branch has no tag "${tag.slice(0, 100)}".`)
    },
  },
]

/** The filters of a list of threads. */
export function readFilters(query: Call['query']): ThreadQuery {
  const { tag, metadata, updatedBefore, updatedAfter, thread, ...rest } = query as Record<string, never> & {
    readonly tag?: readonly string[]
    readonly metadata?: readonly string[]
    readonly thread?: string
    readonly updatedBefore?: string
    readonly updatedAfter?: string
  }
  return given({
    ...rest,
    thread: thread === undefined ? undefined : readThreadId(thread),
    tags: tag,
    metadata: metadata === undefined ? undefined : Object.fromEntries(metadata.map(readLabel)),
    updatedBefore: updatedBefore === undefined ? undefined : new Date(updatedBefore),
    updatedAfter: updatedAfter === undefined ? undefined : new Date(updatedAfter),
  }) as ThreadQuery
}

function readLabel(text: string): readonly [string, string | number | boolean] {
  const at = text.indexOf('=')
  if (at < 1) {
    throw new HttpProblem(400, 'invalid-option', `The label "${text.slice(0, 100)}" is not of the form name=value.`, {
      fields: { field: 'metadata' },
    })
  }
  const value = text.slice(at + 1)
  if (value === 'true' || value === 'false') return [text.slice(0, at), value === 'true']
  return [text.slice(0, at), /^-?\d{1,15}(\.\d+)?$/.test(value) ? Number(value) : value]
}
