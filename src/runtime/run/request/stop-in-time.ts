import type { Clock } from '../../../core/time/clock.js'
import { onAbort } from '../../../core/async/on-abort.js'

/** How long a run that was stopped may take to release its thread. */
const LET_GO_MS = 2000
const OVER = new Error('The run has ended.')

/**
 * The outcome of a run, or an error soon after its caller stopped it: while the store hangs, releasing the thread may
 * take as long as the store does. It continues in the background; if it never succeeds, the lease runs out.
 */
export function stopInTime<Result>(
  running: Promise<Result>,
  signal: AbortSignal | undefined,
  clock: Clock,
): Promise<Result> {
  return signal === undefined ? running : raceStop(running, signal, clock)
}

async function raceStop<Result>(running: Promise<Result>, signal: AbortSignal, clock: Clock): Promise<Result> {
  const over = new AbortController()
  let letGo = () => {}
  const late = new Promise<never>((_, reject) => {
    letGo = onAbort(signal, () => {
      clock.sleep(LET_GO_MS, over.signal).then(
        () => reject(new StoppedError('hanging')),
        () => {},
      )
    })
  })
  running.catch(() => {})
  try {
    return await Promise.race([running, late])
  } finally {
    over.abort(OVER)
    letGo()
  }
}

/** The caller asked to stop; anyone can resume the run. */
export class StoppedError extends Error {
  constructor(store: 'hanging' | 'fine' = 'fine') {
    super(
      store === 'fine'
        ? 'The run was stopped; it can be resumed.'
        : 'The run was stopped, but the store does not answer. It can be resumed when the store does, at the latest when ' +
            'its lease has run out.',
    )
    this.name = 'AbortError'
  }
}
