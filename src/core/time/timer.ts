import type { Clock } from './clock.js'
import { LONGEST_MS, systemSleep } from './system-clock.js'

/** Calls back after `ms`, unless the returned function is called first. */
export function callAfter(clock: Clock, ms: number, call: () => void): () => void {
  // Most time limits end early: on the machine's own clock they need neither a promise nor a signal.
  if (clock.sleep === systemSleep) {
    const timer = setTimeout(call, Math.min(ms, LONGEST_MS))
    return () => clearTimeout(timer)
  }
  const stop = new AbortController()
  const { signal } = stop
  clock.sleep(ms, signal).then(
    () => signal.aborted || call(),
    () => {},
  )
  return () => stop.abort(STOPPED)
}

/** Created once: without a reason, each abort creates an error with a stack. */
const STOPPED = new Error('Nobody waits anymore.')
