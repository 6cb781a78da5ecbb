import { onAbort } from '../../core/async/on-abort.js'
import type { RunEvent } from './events.js'
import type { Outcome } from '../run/state/outcome.js'

const MAX_BUFFERED = 10_000

/**
 * What happens in a run, as it happens. Reading is optional: a run continues whether or not anyone reads, and ending
 * the loop does not end the run. `abort` does.
 */
export class RunStream<Result = Outcome> implements AsyncIterable<RunEvent> {
  readonly outcome: Promise<Result>
  readonly #abort: AbortController
  readonly #buffer: RunEvent[] = []
  #wake: (() => void) | undefined
  #ended = false
  #reading = true

  constructor(start: (emit: (event: RunEvent) => void, signal: AbortSignal) => Promise<Result>, signal?: AbortSignal) {
    this.#abort = new AbortController()
    const letGo = onAbort(signal, () => this.#abort.abort(signal?.reason))
    this.outcome = start((event) => this.#push(event), this.#abort.signal).finally(() => {
      // The signal may be the whole process's, and outlive any number of runs.
      letGo()
      this.#ended = true
      this.#wake?.()
    })
    // A caller that only reads events learns of a failure at the end of the loop, which rethrows it.
    this.outcome.catch(() => {})
  }

  /** Stops the run where it is; it can be resumed. */
  abort(): void {
    this.#abort.abort()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent> {
    try {
      for (;;) {
        const event = this.#buffer.shift()
        if (event !== undefined) {
          yield event
          continue
        }
        if (this.#ended) break
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
      await this.outcome
    } finally {
      this.#reading = false
      this.#buffer.length = 0
    }
  }

  #push(event: RunEvent): void {
    if (!this.#reading) return
    // A reader that fell far behind loses what is not recorded, never what is.
    if (this.#buffer.length >= MAX_BUFFERED && (event.type === 'token' || event.type === 'custom')) return
    this.#buffer.push(event)
    this.#wake?.()
  }
}
