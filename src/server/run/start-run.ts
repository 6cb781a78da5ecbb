import type { Holdfast, ThreadIdInput } from '../../index.js'
import { nameLog } from '../../core/log-name.js'
import type { AnyThread, ServerCore } from '../core.js'
import type { ExpectedReader } from '../live/live-hub.js'
import { HttpProblem } from '../http/problem.js'
import type { ServerProgram } from '../options.js'

/** What somebody wants a thread to do. */
export interface RunRequest {
  readonly thread: ThreadIdInput
  readonly branch: string
  readonly program?: string | undefined
  readonly input: unknown
  readonly key?: string | undefined
  readonly busy?: 'queue' | 'reject' | 'interrupt' | undefined
}

/** A run that was asked for: durable from here on, and driven by a worker, here or elsewhere. */
export interface StartedRun {
  readonly thread: AnyThread
  readonly program: ServerProgram
  readonly request: RunRequest
  readonly input: 'queued' | 'taken'
  /** Undefined for a key whose run ended in entries that were pruned. */
  readonly run: string | undefined
  readonly ended: boolean
  readonly checkpoint: string | undefined
  /** Listens to the run since before it was asked for. */
  readonly early?: ExpectedReader
}

/**
 * Leaves input for a worker. Nothing of a run depends on the connection that asked for it: who hung up, or lost this
 * server, asks again with the same key, or follows the thread.
 */
export async function startRun(core: ServerCore, hf: Holdfast, request: RunRequest): Promise<StartedRun> {
  const { thread, program } = await core.thread(hf, request.thread, request.branch, request.program)
  const { key, busy = 'queue' } = request
  const early = core.hub.expect(nameLog(thread.key))
  const { input, ...enqueued } = await early.orClose(
    thread.enqueue(request.input, { busy, ...(key === undefined ? {} : { key }) }),
  )
  if (input === 'refused') {
    early.take()?.close()
    throw new HttpProblem(409, 'busy', 'The thread has a run that is not over, and the input was refused.', {
      remedy: 'Wait for it, or send busy: "queue" or "interrupt".',
      fields: { retryable: true },
    })
  }
  return { thread, program, request, input, early, ...enqueued }
}
