import type { Figures } from './figures.js'
import type { CounterName } from './names.js'
import { type ModelCall, type ObservedRun, type RunEnd, type RunObserver, UNWATCHED } from './observer.js'

const COUNTED: Readonly<Partial<Record<RunEnd, CounterName>>> = {
  completed: 'holdfast.runs.completed',
  failed: 'holdfast.runs.failed',
  incompatible: 'holdfast.runs.failed',
  cancelled: 'holdfast.runs.cancelled',
  paused: 'holdfast.runs.paused',
}
/** A resume that comes to one of these did what it should. */
const WELL: ReadonlySet<RunEnd> = new Set(['completed', 'paused', 'cancelled'])

/** Counts how one run goes. */
export class WatchedRun implements RunObserver {
  readonly trace = undefined
  readonly within = UNWATCHED.within
  readonly step = UNWATCHED.step
  readonly span = UNWATCHED.span
  readonly #figures: Figures
  readonly #resumed: boolean

  constructor(figures: Figures, { resumed }: ObservedRun) {
    this.#figures = figures
    this.#resumed = resumed
    figures.count(resumed ? 'holdfast.resume.attempts' : 'holdfast.runs.started', 1)
  }

  count(name: CounterName, by = 1): void {
    this.#figures.count(name, by)
  }

  retried(): void {
    this.count('holdfast.retries')
  }

  usage(call: ModelCall): void {
    this.count('holdfast.tokens.input', call.input)
    this.count('holdfast.tokens.output', call.output)
    this.count('holdfast.tokens.cached', call.cached)
    this.#figures.model(`${call.provider}/${call.model}`, call)
  }

  ended(end: RunEnd): void {
    const name = COUNTED[end]
    if (name !== undefined) this.count(name)
    if (this.#resumed && WELL.has(end)) this.count('holdfast.resume.succeeded')
  }
}
