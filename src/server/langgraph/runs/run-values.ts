import { HttpProblem } from '../../http/problem.js'
import type { Call } from '../../http/route.js'
import type { Cursor } from '../../live/follow-thread.js'
import { followRun } from '../../run/follow-run.js'
import type { StartedRun } from '../../run/start-run.js'
import { graphValues } from '../graphs/graph-threads.js'
import { hostedOf } from '../graphs/hosted-graph.js'
import { valuesAt } from './stream-writer.js'

/** What is used of an outcome. */
export interface Ended {
  readonly status: string
  readonly run: string
  readonly error?: { readonly name: string; readonly message: string }
  readonly checkpoint?: string
  readonly limit?: string
  readonly reason?: string
  readonly [field: string]: unknown
}

/** Waits for a run, and tells its values as these clients want them: with the error inside, if it failed. */
export async function runValues(call: Call, started: StartedRun, from?: Cursor): Promise<Record<string, unknown>> {
  const signal = AbortSignal.any([call.request.signal, call.core.stopping])
  for await (const news of followRun(
    call.core,
    started,
    signal,
    from ?? { after: started.checkpoint, live: undefined },
  )) {
    if (!('outcome' in news)) continue
    const { checkpoint } = news.outcome as Ended
    const error = errorOf(news.outcome as Ended)
    if (error) return { __error__: error }
    const hosted = hostedOf(started.program)
    return hosted === undefined
      ? valuesAt(started, checkpoint as string)
      : graphValues(call, hosted, started, checkpoint as string)
  }
  throw new HttpProblem(503, 'stopping', 'The server is stopping. The run continues wherever another worker runs.', {
    fields: { retryable: true },
  })
}

/** What went wrong, as these clients are told. A limit of the program is an error to them, as a recursion limit is. */
export function errorOf({ status, error, limit, reason }: Ended): { error: string; message: string } | undefined {
  if (status === 'limited') return { error: `Limit: ${limit}`, message: reason ?? '' }
  if (status !== 'failed') return undefined
  return { error: error?.name ?? 'Error', message: error?.message ?? 'The run failed.' }
}
