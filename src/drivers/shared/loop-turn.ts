/** For so long may work that waits for nothing keep a thread from its timers and sockets. */
const LONG_MS = 2

/**
 * What goes on since the event loop turned last. A program that does nothing but append would never let go of
 * its thread; to let go after each of them costs as much as a statement of SQLite.
 */
export class LoopTurn {
  #began: number | undefined

  /** Whether the event loop turned since the last time: only then can this thread have done anything else. */
  begin(now: number): boolean {
    if (this.#began !== undefined) return false
    this.#began = now
    setImmediate(this.#end)
    return true
  }

  get isLong(): boolean {
    return this.#began !== undefined && performance.now() - this.#began >= LONG_MS
  }

  readonly #end = (): void => {
    this.#began = undefined
  }
}
