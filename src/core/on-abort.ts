/** By signal, what is to be called when it is aborted. Node warns of a leak from the eleventh listener on. */
const WAITING = new WeakMap<AbortSignal, { readonly calls: Set<() => void>; readonly listener: () => void }>()

/**
 * Calls back when the signal is aborted, or at once if it is. Any number of runs may share a signal, such as the one of
 * the whole process: it gets one listener for all of them, and none when all have let go by calling what is returned.
 */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    call()
    return () => {}
  }
  const waiting = WAITING.get(signal) ?? listen(signal)
  // Its own, so that the same function can wait twice.
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
