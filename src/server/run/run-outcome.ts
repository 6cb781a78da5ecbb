import { type CheckpointFacts, isHoldfastError, type Outcome, type RunEvent, type ThreadView } from '../../index.js'
import type { AnyThread } from '../core.js'
import type { ServerProgram } from '../options.js'
import { writeThreadId } from '../http/ids.js'
import type { StartedRun } from './start-run.js'

type RunEventOf = Extract<RunEvent, { readonly type: 'run' }>

/** How a run ended, as it is sent. */
export type WireOutcome = Readonly<Record<string, unknown>> & { readonly status: string; readonly run: string }

/** Whether an event says that a run has come to rest. */
export function isEndOf(event: RunEvent, run: string | undefined): boolean {
  if (event.type === 'parked') return true
  return event.type === 'run' && event.run === run && isRest(event.status)
}

/** Whether a run is over for good: one that paused or failed may continue. */
export function isFinal(event: RunEvent): boolean {
  return event.type === 'run' && ['completed', 'limited', 'cancelled'].includes(event.status)
}

function isRest(status: RunEventOf['status']): boolean {
  return status !== 'started' && status !== 'resumed' && status !== 'interrupted'
}

/** The outcome of a run that rests already when it is asked for; undefined while it continues. */
export async function outcomeAtOnce(started: StartedRun): Promise<WireOutcome | undefined> {
  const { thread, run, ended, request } = started
  if (started.input !== 'taken') return undefined
  // Only tells how it ended: the key is known, so nothing runs again.
  if (ended) return toWire(await thread.run({ input: request.input, ...(request.key ? { key: request.key } : {}) }))
  try {
    const outcome = await thread.waitFor({ timeoutMs: 0 })
    return outcome.run === run ? toWire(outcome) : undefined
  } catch (error) {
    if (isHoldfastError(error, 'timeout')) return undefined
    throw error
  }
}

/** Whether a thread is at rest now: nothing of it continues by itself. */
export async function rests(thread: AnyThread): Promise<boolean> {
  try {
    await thread.waitFor({ timeoutMs: 0 })
    return true
  } catch (error) {
    if (isHoldfastError(error, 'timeout')) return false
    throw error
  }
}

/** The outcome that a thread was left with at the checkpoint of a run's end. */
export async function outcomeAt(
  view: ThreadView<unknown, unknown>,
  { plan }: ServerProgram,
  end: RunEvent,
  checkpoint: string,
): Promise<WireOutcome> {
  const facts = await view.look(checkpoint).facts()
  const { run, state, pauses } = facts
  const base = {
    id: writeThreadId(view.id),
    thread: view.id,
    branch: view.branch,
    run: run?.id ?? '',
    resumed: Math.max(0, (run?.takes ?? 1) - 1),
    checkpoint,
    state,
  }
  if (end.type === 'parked') return { ...base, status: 'failed', error: end.error, canResume: true, pauses }
  switch (run?.status) {
    case 'completed':
      return {
        ...base,
        status: 'completed',
        ...(run.limit ? { ...run.limit, status: 'limited' } : {}),
        ...outputOf(facts, plan),
      }
    case 'failed':
    case 'cancelled': {
      const error = run.error ?? { name: 'Error', message: 'The run failed.' }
      return { ...base, status: 'failed', error, canResume: run.status === 'failed', pauses }
    }
    case 'incompatible':
      return { ...base, status: 'incompatible', reason: run.error?.message ?? 'The run does not fit the program.' }
    default:
      return { ...base, status: 'paused', pauses, waiting: run?.waiting ?? [] }
  }
}

function outputOf({ run, state }: CheckpointFacts, plan: ServerProgram['plan']): { readonly output?: unknown } {
  if (plan.kind === 'flow') return run?.output === undefined ? {} : { output: run.output }
  return { output: plan.output === undefined ? (run?.output ?? state) : plan.output(state) }
}

/** An outcome of the library, with what is meant for callers in this process left out. */
function toWire(outcome: Outcome<unknown, unknown>): WireOutcome {
  const { restarted: _, input: ___, ...rest } = outcome
  const { remedy: ____, canResume, wakeAt: _____, ...told } = rest as Record<string, unknown>
  const resumable = outcome.status === 'failed' ? { canResume } : {}
  return { ...told, ...resumable, id: writeThreadId(outcome.thread), status: outcome.status, run: outcome.run }
}
