import type { Output } from './output.js'

const WIDTH = 24

/** A bar on a terminal, for work whose length is known or guessed. Silent elsewhere. */
export class Progress {
  readonly #output: Output
  readonly #what: string
  #total: number
  #done = 0
  #shownAt = 0

  constructor(output: Output, what: string, total: number) {
    this.#output = output
    this.#what = what
    this.#total = total
  }

  /** One more is done; `total` corrects the guess. */
  step(total: number = this.#total): void {
    this.#done++
    this.#total = Math.max(total, this.#done)
    const now = Date.now()
    if (!this.#output.terminal || (now - this.#shownAt < 80 && this.#done < this.#total)) return
    this.#shownAt = now
    const filled = Math.round((this.#done / this.#total) * WIDTH)
    const bar = `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)}`
    this.#output.live(`${this.#what} ${bar} ${this.#done}/${this.#total}`)
  }

  /** Takes the bar away. */
  end(): void {
    if (this.#output.terminal && this.#done > 0) this.#output.live('')
  }
}
