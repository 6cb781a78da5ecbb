import { randomUUID } from 'node:crypto'
import type { Call } from '../../http/route.js'
import type { StartedRun } from '../../run/start-run.js'
import { createThread } from '../threads/change-thread.js'
import { threadId } from '../threads/find-thread.js'
import { hostedOf } from '../graphs/hosted-graph.js'
import { type RunBody, startOn } from './run-target.js'

/** Starts the run of a body, on the thread of the path or on one of its own. */
export async function beginRun(call: Call, body = call.body as RunBody): Promise<StartedRun> {
  if (call.params['thread'] !== undefined) return startOn(call, threadId(call), body)
  const id = randomUUID()
  await createThread(call.hf, id, body.metadata ?? {})
  return startOn(call, id, body)
}

/** Removes the thread that a run brought with it. */
export async function eraseOwn(call: Call, { thread, program }: StartedRun): Promise<void> {
  await hostedOf(program)?.erase(call.principal.tenant, String(thread.id))
  await call.hf.erase(thread.id, { reason: 'a run without a thread is over' })
}

/** Says in the headers which run it was. */
export function withRun(response: Response, { thread, run }: StartedRun): Response {
  response.headers.set('content-location', `/threads/${encodeURIComponent(String(thread.id))}/runs/${run}`)
  return response
}
