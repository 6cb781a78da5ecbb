/** For each signal, what to call when it is aborted. Node warns of a leak at the eleventh listener. */
const WAITING = new WeakMap<AbortSignal, { readonly calls: Set<() => void>; readonly listener: () => void }>()

/**
 * Calls back when the signal is aborted, or immediately if it already is. Any number of runs may share a signal, such
 * as one for the whole process: it gets one listener for all of them, and none once all have called the returned
 * function.
 */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    call()
    return () => {}
  }
  const waiting = WAITING.get(signal) ?? listen(signal)
  // A separate object, so that the same function can wait twice.
  const own = () => call()
  waiting.calls.add(own)
  return () => {
    if (!waiting.calls.delete(own) || waiting.calls.size > 0) return
    signal.removeEventListener('abort', waiting.listener)
    if (WAITING.get(signal) === waiting) WAITING.delete(signal)
  }
}

function listen(signal: AbortSignal) {
  const calls = new Set<() => void>()
  const listener = () => {
    WAITING.delete(signal)
    for (const call of [...calls]) {
      calls.delete(call)
      call()
    }
  }
  const waiting = { calls, listener }
  WAITING.set(signal, waiting)
  signal.addEventListener('abort', listener, { once: true })
  return waiting
}
