import type { ThreadPause } from '../../index.js'
import { readName, writeThreadId } from '../http/ids.js'
import { HttpProblem } from '../http/problem.js'
import { type Call, listOf, object, ref, type Route } from '../http/route.js'
import { BRANCH, CURSOR, LIMIT, viewOf } from './common.js'
import { readFilters } from './thread-routes.js'

const LIST = {
  thread: { type: 'string', description: 'Only of one thread, by its id as paths hold it.' },
  deferred: { type: 'boolean', description: 'false leaves out what someone put off until later.' },
  limit: LIMIT,
  cursor: CURSOR,
} as const

/** Questions that wait for a person, and effects whose outcome nobody knows, which are questions too. */
export const questionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/pauses',
    name: 'listPauses',
    summary: 'One page of open questions across all threads; `limit` counts threads',
    role: 'read',
    query: LIST,
    answer: { schema: ref('PausePage') },
    handle: (call) => listQuestions(call, () => true),
  },
  {
    method: 'GET',
    path: '/v1/effects',
    name: 'listUnknownEffects',
    summary: 'Effects whose outcome is unknown: someone has to say what happened',
    role: 'read',
    query: LIST,
    answer: { schema: ref('PausePage') },
    handle: (call) => listQuestions(call, ({ kind }) => kind === 'unknown-effect'),
  },
  {
    method: 'GET',
    path: '/v1/threads/:thread/pauses',
    name: 'listThreadPauses',
    summary: 'The open questions of a thread',
    role: 'read',
    query: { branch: BRANCH },
    answer: { schema: object({ pauses: listOf(ref('Pause')) }) },
    handle: async (call) => ({ pauses: await viewOf(call).pauses() }),
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/pauses/:pause/answer',
    name: 'answerPause',
    summary: 'Answers a question. The first answer counts; who answered is the subject of the token',
    role: 'answer',
    query: { branch: BRANCH },
    body: object({ value: { description: 'Fits the schema of the question.' } }),
    answer: { status: 204 },
    handle: (call) => answer(call, false),
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/effects/:pause/resolve',
    name: 'resolveEffect',
    summary: 'Records the outcome of an effect that was unknown',
    role: 'answer',
    query: { branch: BRANCH },
    body: object({ value: { description: 'Fits the schema of the question.' } }),
    answer: { status: 204 },
    handle: (call) => answer(call, true),
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/pauses/:pause/defer',
    name: 'deferPause',
    summary: 'Postpones a question: it stays open at least until then',
    role: 'answer',
    query: { branch: BRANCH },
    body: object({ until: { type: 'string', format: 'date-time' } }),
    answer: { status: 204 },
    async handle(call) {
      const { until } = call.body as { readonly until: string }
      const view = viewOf(call)
      await view.defer(pauseOf(call), { until: new Date(until), by: call.principal.subject })
    },
  },
]

async function listQuestions(call: Call, isMeant: (pause: ThreadPause) => boolean) {
  const { deferred, ...filters } = call.query
  const page = await call.hf.pauses({
    ...readFilters(filters),
    ...(deferred === undefined ? {} : { deferred: deferred as boolean }),
  })
  return {
    pauses: page.pauses.filter(isMeant).map((pause) => ({ pathId: writeThreadId(pause.thread), ...pause })),
    unreadable: page.unreadable.map(({ thread, branch }) => ({ thread, branch })),
    cursor: page.cursor,
  }
}

async function answer(call: Call, isEffect: boolean): Promise<void> {
  const { value } = call.body as { readonly value: unknown }
  const view = viewOf(call)
  const id = pauseOf(call)
  if (isEffect) {
    const pause = (await view.pauses()).find((open) => open.id === id)
    if (pause !== undefined && pause.kind !== 'unknown-effect') {
      throw new HttpProblem(409, 'conflict', 'This question is not about an effect of unknown outcome.', {
        remedy: 'Answer it at …/pauses/…/answer.',
      })
    }
  }
  // Never from the request: who answered is who was let in.
  await view.answer(id, value, { by: call.principal.subject })
}

function pauseOf({ params }: Call): string {
  return readName(params['pause'] ?? '', 'pause')
}
