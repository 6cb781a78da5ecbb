/** How long conversations of killed workers waited until another worker had them. */
export class Takeovers {
  /** Conversations that a killed worker held and nobody has picked up yet, with when it was killed. */
  readonly #waiting = new Map<string, number>()
  readonly #times: number[] = []
  readonly #counts = new Map<string, number>()

  killed(threads: Iterable<string>, at: number): void {
    // A conversation whose next holder is killed as well has waited since the first kill only if nobody had it between.
    for (const thread of threads) if (!this.#waiting.has(thread)) this.#waiting.set(thread, at)
  }

  /** Another worker holds it. True when it had been waiting for that. */
  taken(thread: string, at: number): boolean {
    const since = this.#waiting.get(thread)
    if (since === undefined) return false
    this.#waiting.delete(thread)
    this.#times.push(Math.max(0, at - since))
    this.#counts.set(thread, (this.#counts.get(thread) ?? 0) + 1)
    return true
  }

  /** It needs nobody: its worker had answered before it was killed, and only the word of that was lost. */
  settled(thread: string): void {
    this.#waiting.delete(thread)
  }

  get count(): number {
    return this.#times.length
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** The conversation that changed hands most often. */
  get most(): string | undefined {
    return [...this.#counts].sort(([, a], [, b]) => b - a)[0]?.[0]
  }

  /** The time in milliseconds within which this part of them was picked up; null when there were none. */
  quantile(part: number): number | null {
    const sorted = this.#times.toSorted((a, b) => a - b)
    return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? null
  }
}
