import { redactCommon } from '../../index.js'
import { writeThreadId } from '../http/ids.js'
import { type Call, listOf, object, oneOf, ref, type Route } from '../http/route.js'
import { BRANCH, CURSOR, describeThread, LIMIT, summaryOf, TEXT, threadOf } from './common.js'
import { readFilters } from './thread-routes.js'

/** As many rows as one answer holds. */
const MOST_ROWS = 1000
const count = { type: 'integer', minimum: 0 } as const

/** What is going on across all threads: who holds what, who answered what, and what would be removed. */
export const fleetRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/workers',
    name: 'listWorkers',
    summary: 'Who holds which threads now, and which wait for a worker, the oldest first',
    role: 'read',
    answer: {
      schema: object({
        workers: listOf(object({ owner: TEXT, threads: count, leaseMs: count })),
        held: listOf(ref('Thread')),
        queue: listOf(ref('Thread')),
        'more?': { type: 'boolean', description: 'There are more than are listed.' },
      }),
    },
    handle: listWorkers,
  },
  {
    method: 'GET',
    path: '/v1/answers',
    name: 'listAnswers',
    summary: 'What people answered: one page of threads, those that changed last first; `limit` counts threads',
    role: 'read',
    query: { thread: TEXT, branch: TEXT, limit: LIMIT, cursor: CURSOR },
    answer: { schema: object({ answers: listOf(ref('Answer')), 'cursor?': TEXT }) },
    async handle(call) {
      const { threads, cursor } = await call.hf.threads({
        ...readFilters(call.query),
        limit: (call.query['limit'] as number | undefined) ?? 50,
        order: 'updated',
      })
      const answers = []
      // One after the other: each may read many entries.
      for (const { thread, branch } of threads) {
        const pathId = writeThreadId(thread)
        for (const answer of await call.hf.inspect(thread, { branch }).answers()) {
          answers.push({ pathId, thread, branch, ...answer })
        }
      }
      return { answers: answers.sort((a, b) => b.at.getTime() - a.at.getTime()), cursor }
    },
  },
  {
    method: 'GET',
    path: '/v1/retention',
    name: 'previewSweep',
    summary: 'How long threads are kept, and what a sweep would remove now. Nothing is removed',
    role: 'admin',
    answer: {
      schema: object({
        policy: TEXT,
        report: { type: 'object', properties: { threads: count, cut: count, entries: count, bytes: count } },
        threads: listOf(
          object({
            id: ref('PathId'),
            thread: ref('ThreadId'),
            'branch?': TEXT,
            why: oneOf('expired', 'capped'),
            branches: count,
            entries: count,
            bytes: count,
          }),
        ),
      }),
    },
    async handle({ hf, request }) {
      const threads: object[] = []
      const report = await hf.sweep({
        dryRun: true,
        signal: request.signal,
        onSwept: ({ thread, branch, why, branches, entries, bytes }) => {
          if (threads.length >= MOST_ROWS) return
          threads.push({ id: writeThreadId(thread), thread, branch, why, branches, entries, bytes })
        },
      })
      return { policy: hf.retention, report, threads }
    },
  },
  {
    method: 'GET',
    path: '/v1/threads/:thread/export',
    name: 'exportThread',
    summary: 'The thread as one portable text, for a test, a report or another store',
    role: 'read',
    query: {
      branch: { ...BRANCH, description: 'Only this branch and those it was forked from. Default: all.' },
      redact: { type: 'boolean', description: 'Removes email addresses, card numbers, keys and similar secrets.' },
    },
    answer: { type: 'application/x-ndjson', description: 'A fixture, as `holdfast import` reads it' },
    async handle(call) {
      const { branch, redact = false } = call.query as { readonly branch?: string; readonly redact?: boolean }
      await summaryOf(call, branch ?? 'main')
      const text = await call.hf.export(threadOf(call), {
        ...(branch === undefined ? {} : { branch }),
        ...(redact ? { redact: redactCommon() } : {}),
      })
      return new Response(text, {
        headers: {
          'content-type': 'application/x-ndjson',
          'content-disposition': 'attachment; filename="thread.holdfast.jsonl"',
          'cache-control': 'no-store',
        },
      })
    },
  },
]

async function listWorkers({ hf }: Call) {
  const [held, queue] = await Promise.all([
    hf.threads({ lease: 'held', order: 'updated', limit: MOST_ROWS }),
    hf.threads({ lease: 'free', due: true, order: 'updated', direction: 'asc', limit: MOST_ROWS }),
  ])
  const workers = new Map<string, { owner: string; threads: number; leaseMs: number }>()
  for (const { claimedBy, leaseMs } of held.threads) {
    if (claimedBy === null) continue
    const known = workers.get(claimedBy) ?? { owner: claimedBy, threads: 0, leaseMs: 0 }
    workers.set(claimedBy, {
      ...known,
      threads: known.threads + 1,
      leaseMs: Math.max(known.leaseMs, Math.round(leaseMs ?? 0)),
    })
  }
  return {
    workers: [...workers.values()],
    held: held.threads.map(describeThread),
    queue: queue.threads.map(describeThread),
    ...(held.cursor === undefined && queue.cursor === undefined ? {} : { more: true }),
  }
}
