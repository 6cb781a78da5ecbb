import type { Clock } from '../../core/clock.js'
import { onAbort } from '../../core/on-abort.js'
import { StoppedError } from './run.js'

/** How long a run that was stopped may take to let go of its thread. */
const LET_GO_MS = 2000
const OVER = new Error('The run has ended.')

/**
 * The outcome of a run, or an error soon after its caller stopped it: while the store hangs, letting go of the thread may
 * take as long as the store does. It goes on behind the caller's back; if it comes to nothing, the lease runs out.
 */
export async function stopInTime<Result>(
  running: Promise<Result>,
  signal: AbortSignal | undefined,
  clock: Clock,
): Promise<Result> {
  if (signal === undefined) return running
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
