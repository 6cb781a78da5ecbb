import { setMaxListeners } from 'node:events'
import { onAbort } from './on-abort.js'

/** What ends an attempt, with the signal that tells its work so. */
export interface Abortable {
  readonly reason: unknown
  readonly signal: AbortSignal
  throwIfAborted(): void
  onAbort(call: () => void): () => void
}

/**
 * Ends what is in progress. The signal that programs see is made when one of them asks for it: a signal, its
 * listeners and its event cost as much as an append, and most runs never look.
 */
export class LazyAbort implements Abortable {
  #aborted: { readonly reason: unknown } | undefined
  #controller: AbortController | undefined
  readonly #calls = new Set<() => void>()

  get aborted(): boolean {
    return this.#aborted !== undefined
  }

  get reason(): unknown {
    return this.#aborted?.reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      // Each step that runs may listen; Node warns of a leak at the eleventh.
      setMaxListeners(0, this.#controller.signal)
      if (this.#aborted) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#aborted.reason
  }

  /** Calls back when it is aborted, or immediately if it already is, until the returned function is called. */
  onAbort(call: () => void): () => void {
    if (this.#aborted) {
      call()
      return letGoOfNothing
    }
    // A separate object, so that the same function can wait twice.
    const own = () => call()
    this.#calls.add(own)
    return () => void this.#calls.delete(own)
  }

  /** Only the first counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = { reason }
    for (const call of this.#calls) {
      this.#calls.delete(call)
      call()
    }
    this.#controller?.abort(reason)
  }
}

/** Something that only its signal ends. */
export function abortedBy(signal: AbortSignal): Abortable {
  return {
    signal,
    get reason() {
      return signal.reason as unknown
    },
    throwIfAborted: () => signal.throwIfAborted(),
    onAbort: (call) => onAbort(signal, call),
  }
}

function letGoOfNothing(): void {}
