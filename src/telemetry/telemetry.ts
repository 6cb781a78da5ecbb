import { Figures } from './figures.js'
import { Flusher, type FlusherOptions, type WriteMetrics } from './flusher.js'
import type { CounterName, HistogramName } from './names.js'
import type { ObservedRun, Observer, RunObserver } from './observer.js'
import { WatchedRun } from './watched-run.js'

/** Counts what happens on one open store and passes it on. */
export class Telemetry implements Observer {
  readonly #figures = new Figures()
  #flusher: Flusher | undefined

  count(name: CounterName, by = 1): void {
    this.#figures.count(name, by)
  }

  record(name: HistogramName, value: number): void {
    this.#figures.record(name, value)
  }

  run(run: ObservedRun): RunObserver {
    return new WatchedRun(this.#figures, run)
  }

  /** From here on, what was counted is reported now and then. */
  reportTo(write: WriteMetrics, options: FlusherOptions): void {
    this.#flusher = new Flusher(this.#figures, write, options)
  }

  async flush(): Promise<void> {
    await this.#flusher?.flush()
  }

  async close(): Promise<void> {
    await this.#flusher?.close()
  }
}
