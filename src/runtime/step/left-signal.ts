/**
 * Tells the work of an activation that it was left hanging. Like an AbortSignal, which costs more than most steps do
 * themselves: one is made only for what takes nothing else.
 */
export class LeftSignal {
  #left: { readonly reason: unknown } | undefined
  #calls: (() => void)[] = []
  #controller: AbortController | undefined

  get aborted(): boolean {
    return this.#left !== undefined
  }

  get reason(): unknown {
    return this.#left?.reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#left) this.#controller.abort(this.#left.reason)
    }
    return this.#controller.signal
  }

  throwIfAborted(): void {
    if (this.#left) throw this.#left.reason
  }

  abort(reason: unknown): void {
    if (this.#left) return
    this.#left = { reason }
    this.#controller?.abort(reason)
    const calls = this.#calls
    this.#calls = []
    for (const call of calls) call()
  }

  /** Calls back when the work is left, or immediately if it was, until the returned function is called. */
  onAbort(call: () => void): () => void {
    if (this.#left) {
      call()
      return () => {}
    }
    this.#calls.push(call)
    return () => {
      const at = this.#calls.indexOf(call)
      if (at >= 0) this.#calls.splice(at, 1)
    }
  }
}
