import type { StoreWrite } from '../../log/items/store-write.js'

/** How an attempt ended, as far as that is known. */
export type Ended =
  | { readonly status: 'returned'; readonly result: unknown; readonly writes: readonly StoreWrite[] }
  | { readonly status: 'threw'; readonly error: unknown }
  | { readonly status: 'running' }

/**
 * Attempts of this process at effects that must not be repeated, for as long as they run. One that ran out of time, or
 * whose run was stopped, goes on until it is done: what it does then must not happen behind the back of whoever was told
 * that it did nothing.
 */
export class Attempts {
  readonly #running = new Map<string, Promise<Ended>>()

  track<Result>(effect: string, writes: readonly StoreWrite[], attempt: Promise<Result>): Promise<Result> {
    const ended = attempt.then(
      (result): Ended => ({ status: 'returned', result, writes }),
      (error: unknown): Ended => ({ status: 'threw', error }),
    )
    this.#running.set(effect, ended)
    void ended.then(() => this.#running.get(effect) === ended && this.#running.delete(effect))
    return attempt
  }

  /** Undefined when none runs. Resolves when it has ended, or `limit` does. */
  async ended(effect: string, limit: () => Promise<void>): Promise<Ended | undefined> {
    const running = this.#running.get(effect)
    if (running === undefined) return undefined
    return Promise.race([running, limit().then((): Ended => ({ status: 'running' }))])
  }
}
