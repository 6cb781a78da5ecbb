import type { RunEvent } from '../../index.js'
import type { ServerCore } from '../core.js'
import { HttpProblem } from '../http/problem.js'
import { type Cursor, type Followed, followThread } from '../live/follow-thread.js'
import { isEndOf, isFinal, outcomeAt, outcomeAtOnce, type WireOutcome } from './run-outcome.js'
import type { StartedRun } from './start-run.js'

/** What happens in a run, then its outcome. */
export type RunNews = Followed | { readonly outcome: WireOutcome; readonly cursor: string }

/**
 * Follows a run from a cursor, by default from where it was asked for, until it rests. The outcome is the last that comes;
 * it is missing only where the signal, or a reader that is too slow, ended it.
 */
export async function* followRun(
  core: ServerCore,
  started: StartedRun,
  signal: AbortSignal,
  from: Cursor = { after: started.checkpoint, live: undefined },
): AsyncGenerator<RunNews> {
  const { thread, program, run } = started
  const known = from.after === started.checkpoint ? await outcomeAtOnce(started) : undefined
  if (known !== undefined) {
    yield { outcome: known, cursor: started.checkpoint ?? '' }
    return
  }
  const newest = (await thread.history({ events: false, limit: 1, all: true }))[0]?.seq ?? -1
  let end: { readonly event: RunEvent; checkpoint?: string } | undefined
  const early = from.live === undefined ? started.early?.take() : undefined
  for await (const followed of followThread(thread, core.hub, from, signal, early)) {
    const { event, cursor } = followed
    yield followed
    if (isEndOf(event, run)) end = { event }
    else if (event.type === 'run' && event.run === run) end = undefined
    // The last event of an entry names its checkpoint.
    if (end === undefined || event.type !== 'checkpoint') continue
    end.checkpoint ??= event.checkpoint
    // A run may have rested before and continued since: of what is past, the last word counts. What the thread does now
    // says nothing of then: it may be over by the time that its rest before the last answer is read. What is over stays
    // over, whatever waits behind it.
    if (!isFinal(end.event)) {
      const goesOn = event.seq < newest || !(await restsAt(thread, event.checkpoint, signal))
      if (signal.aborted) return
      if (goesOn) continue
    }
    yield { outcome: await outcomeAt(thread, program, end.event, end.checkpoint), cursor }
    return
  }
}

/** Whether the thread rests there. While it awaits threads that are in progress, that is not known yet. */
async function restsAt(thread: StartedRun['thread'], checkpoint: string, signal: AbortSignal): Promise<boolean> {
  try {
    return await thread.look(checkpoint).rests({ signal })
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}

/** Waits for a run's outcome. */
export async function waitForRun(
  core: ServerCore,
  started: StartedRun,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<WireOutcome> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), timeoutMs)
  const stop = AbortSignal.any([signal, limit.signal, core.stopping])
  try {
    for await (const news of followRun(core, started, stop)) if ('outcome' in news) return news.outcome
  } finally {
    clearTimeout(timer)
  }
  const fields = { run: started.run, retryable: true }
  if (limit.signal.aborted) {
    const detail = `The run did not come to rest within ${timeoutMs} ms. It is still running.`
    throw new HttpProblem(504, 'timeout', detail, { remedy: 'Wait again with the same key, or follow it.', fields })
  }
  throw new HttpProblem(503, 'stopping', 'The server is stopping. The run continues wherever another worker runs.', {
    remedy: 'Ask again with the same key.',
    fields,
  })
}
