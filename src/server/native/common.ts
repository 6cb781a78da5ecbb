import type { ThreadSummary } from '../../index.js'
import { HttpProblem } from '../http/problem.js'
import { readThreadId, writeThreadId } from '../http/ids.js'
import type { Call, Schema } from '../http/route.js'

export const TEXT: Schema = { type: 'string' }
export const LIMIT: Schema = { type: 'integer', minimum: 1, maximum: 1000 }
export const BRANCH: Schema = { type: 'string', description: 'Default: main.' }
export const CURSOR: Schema = { type: 'string', description: 'From the page before.' }
export const KEY: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 512,
  description: 'Names the input: sent again, it is not taken twice for as long as the thread lives.',
}

/** The thread of the path. */
export function threadOf({ params }: Call) {
  return readThreadId(params['thread'] ?? '')
}

/** The branch of the query. */
export function branchOf({ query }: Call): string {
  return (query['branch'] as string | undefined) ?? 'main'
}

/** The thread of the path without its program, on the branch of the query. */
export function viewOf(call: Call, branch = branchOf(call)) {
  return call.hf.inspect(threadOf(call), { branch })
}

/** What the index says of a branch. */
export async function summaryOf(call: Call, branch = branchOf(call)): Promise<ThreadSummary> {
  const thread = threadOf(call)
  const [found] = (await call.hf.threads({ thread, branch, limit: 1 })).threads
  if (found !== undefined) return found
  throw new HttpProblem(
    404,
    'not-found',
    `There is no thread "${writeThreadId(thread)}" with the branch "${branch}".`,
    {
      remedy: 'Check its id; a token sees the threads of its own tenant only.',
    },
  )
}

export function describeThread(summary: ThreadSummary) {
  return { id: writeThreadId(summary.thread), ...summary }
}

/** Leaves out what is undefined, which options of the library do not take. */
export function given<Options extends object>(
  options: Options,
): { [Name in keyof Options]: NonNullable<Options[Name]> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never
}
