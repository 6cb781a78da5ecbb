import type { Route } from '../http/route.js'
import { assistantRoutes } from './assistant-routes.js'
import { notOffered } from './not-offered.js'
import { runRoutes } from './runs/run-routes.js'
import { stateRoutes } from './threads/state-routes.js'
import { storeRoutes } from './store-routes.js'
import { threadRoutes } from './threads/thread-routes.js'

/** What the protocol has and this server has not: told so, and not that there is no such path. */
const MISSING: readonly (readonly [method: Route['method'], path: string, why: string])[] = [
  ['POST', '/assistants', 'There is one assistant for each program.'],
  ['PATCH', '/assistants/:assistant', 'There is one assistant for each program.'],
  ['DELETE', '/assistants/:assistant', 'There is one assistant for each program.'],
  ['POST', '/assistants/:assistant/versions', 'A program has the version that its code says.'],
  ['POST', '/assistants/:assistant/latest', 'A program has the version that its code says.'],
  ['POST', '/threads/prune', 'Set a retention policy instead.'],
  ['GET', '/threads/:thread/stream', 'Follow a run, or /v1/threads/:thread/events.'],
  ['DELETE', '/threads/:thread/runs/:run', 'Records of runs stay; erase the thread.'],
  ['GET', '/runs/:run/stream', 'Give the run a thread, and follow it there.'],
  ['POST', '/threads/:thread/runs/crons', 'Start runs by your own schedule.'],
  ['POST', '/runs/crons', 'Start runs by your own schedule.'],
  ['POST', '/runs/crons/search', 'Start runs by your own schedule.'],
  ['POST', '/runs/crons/count', 'Start runs by your own schedule.'],
  ['PATCH', '/runs/crons/:cron', 'Start runs by your own schedule.'],
  ['DELETE', '/runs/crons/:cron', 'Start runs by your own schedule.'],
]

const missingRoutes = MISSING.map(
  ([method, path, why]): Route => ({
    method,
    path,
    name: `lgMissing${method}${path}`,
    summary: 'Not offered',
    role: 'read',
    answer: {},
    anyQuery: true,
    handle: () => Promise.reject(notOffered(`${method} ${path}`, why)),
  }),
)

/** The protocol of LangGraph's Agent Server, as `@langchain/langgraph-sdk` 1.12 speaks it. Fixed paths come first. */
export const langGraphRoutes: readonly Route[] = [
  ...missingRoutes,
  ...assistantRoutes,
  ...runRoutes,
  ...threadRoutes,
  ...stateRoutes,
  ...storeRoutes,
]
