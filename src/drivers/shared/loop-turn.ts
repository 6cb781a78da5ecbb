/** For so long may work that waits for nothing keep a thread from its timers and sockets. */
const LONG_MS = 2

/**
 * What goes on since the event loop turned last. A driver that works on the calling thread would never let go of it
 * while a program does nothing but append or read; to let go after each call costs as much as the call.
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
