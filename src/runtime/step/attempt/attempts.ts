import type { StoreWrite } from '../../../log/items/store-write.js'
import { isHoldfastError } from '../../../core/errors.js'

/** How an attempt ended, as far as that is known. */
export type Ended =
  | { readonly status: 'returned'; readonly result: unknown; readonly writes: readonly StoreWrite[] }
  | { readonly status: 'threw'; readonly error: unknown }
  | { readonly status: 'running' }

/**
 * Attempts of this process at effects, for as long as they run. One that timed out, or whose run was stopped, continues
 * until it is done: what it does then must not happen unknown to those who were told that it did nothing.
 */
export class Attempts {
  /** Of an idempotent effect several may run at once, with the same key. */
  readonly #running = new Map<string, Set<Promise<Ended>>>()

  track<Result>(effect: string, writes: readonly StoreWrite[], attempt: Promise<Result>): Promise<Result> {
    const ended = attempt.then(
      (result): Ended => ({ status: 'returned', result, writes }),
      (error: unknown): Ended => ({ status: 'threw', error }),
    )
    const all = this.#running.get(effect) ?? new Set()
    this.#running.set(effect, all.add(ended))
    void ended.then(() => all.delete(ended) && all.size === 0 && this.#running.delete(effect))
    return attempt
  }

  /** Undefined if none is running. Resolves when one has succeeded, all have ended, or `limit` does. */
  async ended(effect: string, limit: () => Promise<void>): Promise<Ended | undefined> {
    const running = this.#running.get(effect)
    if (running === undefined) return undefined
    const over = [landed([...running]), limit().then((): Ended => ({ status: 'running' }))]
    return Promise.race(over)
  }
}

/**
 * The first that brings a result. Otherwise all have thrown, and the first error that leaves the outcome open counts.
 */
async function landed(attempts: readonly Promise<Ended>[]): Promise<Ended> {
  try {
    return await Promise.any(attempts.map(async (attempt) => orThrow(await attempt)))
  } catch {
    const all = await Promise.all(attempts)
    return (
      all.find((ended) => ended.status === 'threw' && !isHoldfastError(ended.error, 'not-executed')) ??
      (all[0] as Ended)
    )
  }
}

function orThrow(ended: Ended): Ended {
  if (ended.status === 'threw') throw ended.error
  return ended
}
