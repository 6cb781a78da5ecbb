import { isHoldfastError } from '../../index.js'
import type { Branch } from '../../types.js'
import { mayDo } from '../access/principal.js'
import { HttpProblem } from '../http/problem.js'
import { type Call, listOf, object, oneOf, ref, type Route } from '../http/route.js'
import { listHistory } from '../run/all-history.js'
import { BRANCH, branchOf, CURSOR, describeThread, given, LIMIT, summaryOf, TEXT, threadOf, viewOf } from './common.js'

/** The past of a thread: history, branches, differences, forks, replay. */
export const historyRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/threads/:thread/history',
    name: 'listHistory',
    summary: 'Checkpoints, newest first, of all branches or of one',
    role: 'read',
    query: {
      branch: { type: 'string', description: 'Default: all branches.' },
      limit: LIMIT,
      cursor: CURSOR,
      all: { type: 'boolean', description: 'Also entries that are not checkpoints: claims, releases, tags.' },
      events: { type: 'boolean', description: 'Also what each entry says of itself: steps, questions, costs.' },
    },
    answer: { schema: ref('History') },
    async handle(call) {
      const {
        branch,
        limit = 100,
        cursor,
        all = false,
        events = false,
      } = call.query as {
        readonly branch?: string
        readonly limit?: number
        readonly cursor?: string
        readonly all?: boolean
        readonly events?: boolean
      }
      const view = viewOf(call, branch ?? 'main')
      const branches = await view.branches()
      if (branches.length === 0) await summaryOf(call, branch ?? 'main')
      return listHistory(call.hf, threadOf(call), branches, { branch, limit, cursor, all, events })
    },
  },
  {
    method: 'GET',
    path: '/v1/threads/:thread/branches',
    name: 'listBranches',
    summary: 'All branches of a thread, as a tree',
    role: 'read',
    answer: { schema: object({ branches: listOf(ref('Branch')) }) },
    async handle(call) {
      const branches: readonly Branch[] = await viewOf(call, 'main').branches()
      if (branches.length === 0) await summaryOf(call, 'main')
      return { branches }
    },
  },
  {
    method: 'GET',
    path: '/v1/threads/:thread/diff',
    name: 'diffCheckpoints',
    summary: 'What changed in the state between two checkpoints, on any branches',
    role: 'read',
    query: { from: TEXT, to: TEXT },
    answer: { schema: object({ differences: ref('Differences') }) },
    async handle(call) {
      const { from, to } = need(call.query, 'from', 'to')
      return { differences: await viewOf(call, 'main').look(from).diff(to) }
    },
  },
  {
    method: 'GET',
    path: '/v1/threads/:thread/compare',
    name: 'compareBranches',
    summary: 'How two branches differ, and where they diverged',
    role: 'read',
    query: { one: TEXT, other: TEXT },
    answer: { schema: ref('Comparison') },
    handle(call) {
      const { one, other } = need(call.query, 'one', 'other')
      return viewOf(call, 'main').compare(one, other)
    },
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/fork',
    name: 'forkThread',
    summary: 'Creates a branch from a checkpoint, with changes. Nothing runs',
    role: 'fork',
    body: object({
      'at?': { type: 'string', description: 'A checkpoint. Default: the newest of the branch.' },
      'branch?': BRANCH,
      'name?': {
        type: 'string',
        minLength: 1,
        maxLength: 128,
        description: 'Of the new branch. Default: a random one.',
      },
      'set?': { type: 'object', description: 'Replaces values of the state as they are.' },
      'update?': { type: 'object', description: "Changes the state through its reducers. Needs the thread's program." },
      'effects?': {
        ...oneOf('ask', 'allow', 'deny'),
        description: 'What effects on the outside world may do there. Default ask; allow needs the role run.',
      },
      'reads?': oneOf('live', 'recorded'),
    }),
    answer: { status: 201, schema: ref('Thread') },
    async handle(call) {
      const {
        at,
        branch = 'main',
        update,
        ...options
      } = call.body as {
        readonly at?: string
        readonly branch?: string
        readonly update?: object
        readonly effects?: 'ask' | 'allow' | 'deny'
      }
      if (options.effects === 'allow' && !mayDo(call.principal, 'run')) {
        throw new HttpProblem(403, 'not-allowed', 'Letting effects happen on a fork needs the role "run".', {
          fields: { role: 'run' },
        })
      }
      const checkpoint = at ?? (await summaryOf(call, branch)).checkpoint
      const look = viewOf(call, branch).look(checkpoint)
      // Values are checked by the schema of the thread's program where it is here. Without it, they are taken as they are.
      const isChecked = update !== undefined || ('set' in options && (await isRunHere(call, look.branch)))
      const fork = !isChecked
        ? await look.fork(given(options))
        : await (await call.core.thread(call.hf, threadOf(call), look.branch)).thread
            .at(checkpoint)
            .fork({ ...given(options), ...(update === undefined ? {} : { update: update as never }) })
      return describeThread(await summaryOf(call, fork.branch))
    },
  },
  {
    method: 'POST',
    path: '/v1/threads/:thread/replay',
    name: 'replayRun',
    summary: 'Replays the last run from its records alone, and says where the current program would differ',
    role: 'read',
    query: { branch: BRANCH },
    answer: { schema: ref('ReplayReport') },
    async handle(call) {
      await summaryOf(call)
      const { thread } = await call.core.thread(call.hf, threadOf(call), branchOf(call))
      try {
        return await thread.replay()
      } catch (error) {
        if (!isHoldfastError(error, 'invalid-program')) throw error
        throw new HttpProblem(409, 'incompatible', "The run can't be replayed with this program.")
      }
    },
  },
]

async function isRunHere(call: Call, branch: string): Promise<boolean> {
  const { metadata } = await summaryOf(call, branch)
  return call.core.programs.has(String(metadata['holdfast.program']))
}

function need<Name extends string>(query: Readonly<Record<string, unknown>>, ...names: Name[]): Record<Name, string> {
  for (const name of names) {
    if (query[name] !== undefined) continue
    throw new HttpProblem(400, 'invalid-option', `The query parameter ${name} is missing.`, { fields: { field: name } })
  }
  return query as Record<Name, string>
}
