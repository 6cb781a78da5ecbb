/** What to call when the process is asked to end. Node warns of a leak at the eleventh listener. */
const CALLS = new Set<() => void>()
const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/**
 * Calls back once when the process gets SIGTERM or SIGINT. Any number may wait: the process gets one listener for all
 * of them, and none once all have called the returned function. The listener is removed when it is called, so that a
 * second Ctrl-C ends a process whose work takes too long to stop.
 */
export function onProcessSignal(call: () => void): () => void {
  if (CALLS.size === 0) for (const signal of SIGNALS) process.on(signal, notify)
  // A separate object, so that the same function can wait twice.
  const own = () => call()
  CALLS.add(own)
  return () => {
    if (CALLS.delete(own) && CALLS.size === 0) leave()
  }
}

function notify(): void {
  leave()
  for (const call of [...CALLS]) {
    CALLS.delete(call)
    call()
  }
}

function leave(): void {
  for (const signal of SIGNALS) process.off(signal, notify)
}
