import type { Figures } from './figures.js'
import type { ProcessMetrics } from './process-metrics.js'
import { SeriesKeeper } from './series.js'

/** Writes what a process has counted over its previous report. */
export type WriteMetrics = (metrics: ProcessMetrics) => Promise<void>

export interface FlusherOptions {
  readonly everyMs: number
  /** Identifies the process to people. */
  readonly process: string
  readonly now: () => number
}

/** How long the last report may delay closing, if the store does not answer. */
const CLOSING_MS = 2000

/**
 * Passes a process's metrics on now and then: not with each step, and never in a way that a run would notice. What is
 * counted after the last report of a process that is killed is lost.
 */
export class Flusher {
  readonly #figures: Figures
  readonly #write: WriteMetrics
  readonly #options: FlusherOptions
  readonly #timer: NodeJS.Timeout
  /** As of the last report that was acknowledged. */
  #reported = 0
  readonly #series = new SeriesKeeper()
  #flushing: Promise<void> | undefined

  constructor(figures: Figures, write: WriteMetrics, options: FlusherOptions) {
    this.#figures = figures
    this.#write = write
    this.#options = options
    this.#timer = setInterval(() => void this.#reportNext(), options.everyMs)
    // A program that has nothing else to do may exit.
    this.#timer.unref()
  }

  /** Reports all that was counted so far. */
  async flush(): Promise<void> {
    // One that is in progress may be older than what was counted last.
    if (this.#flushing) await this.#flushing
    await this.#reportNext()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSING_MS)
    })
    await Promise.race([this.flush(), patience])
    clearTimeout(timer)
  }

  /** Reports what is new. While a report is in progress there is no second one. */
  #reportNext(): Promise<void> {
    this.#flushing ??= this.#report().finally(() => {
      this.#flushing = undefined
    })
    return this.#flushing
  }

  async #report(): Promise<void> {
    const { changes } = this.#figures
    // A process that only reads leaves nothing behind, least of all a write.
    if (changes === this.#reported || this.#figures.measured('holdfast.checkpoint.bytes') === 0) return
    const { process, now } = this.#options
    const startedAt = Math.round(performance.timeOrigin)
    try {
      const [at, figures] = [now(), this.#figures.snapshot()]
      await this.#write({ process, startedAt, at, ...figures, series: this.#series.add(at, figures) })
      this.#reported = changes
    } catch {
      // The store is down. What was counted is still there, and is sent with the next report.
    }
  }
}
