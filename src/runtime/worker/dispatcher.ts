import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import { ClosedError, InvalidOptionError, isHoldfastError } from '../../core/errors.js'
import { checkWhole } from '../../core/wording/choices.js'
import type { TenantId } from '../../core/ids.js'
import type { DuePage } from '../../log/contract.js'
import type { LogNews } from '../../log/news/messages.js'
import type { DueWatch } from '../../log/news/news.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { programOfLabel, scheduleLabel } from '../schedule/schedule-state.js'
import { describeDue, type DueThread } from './worker-options.js'
import { planOf } from '../program/check-program.js'

/** Which due threads are handed out, to whom, and how soon again. */
export interface DispatchOptions {
  /** By name, or the programs themselves. */
  readonly programs: readonly (string | { readonly plan: { readonly name: string } })[]
  /**
   * Receives the threads that are due, to put them into another engine's queue. A thread that is still due after `everyMs`
   * is handed out again, whether this resolved or rejected.
   */
  readonly hand: (due: readonly DueThread[]) => Promise<void>
  /** How soon a thread that is still due and that nobody runs is handed out again, in milliseconds. Default 15,000. */
  readonly everyMs?: number
  /** Called with errors; the dispatcher continues on its own. */
  readonly onError?: (error: unknown) => void
}

const OPTIONS: OptionNames<DispatchOptions> = { programs: true, hand: true, everyMs: true, onError: true }
const EVERY_MS = 15_000
const AT_ONCE = 100
/** On backends that can't reserve: everything that is due, again and again. The engine knows what it already has. */
const AT_ONCE_UNRESERVED = 10_000
const AFTER_ERROR_MS = 1000

/**
 * Finds what is due and hands it to another engine, which brings it to a worker: `worker.work(due)`. Any number of
 * processes may do this at the same time. Each thread is handed out once, and again every `everyMs` until somebody runs
 * it, because an engine may lose what it was given.
 */
export class Dispatcher {
  readonly #environment: RuntimeEnvironment
  readonly #tenant: TenantId | undefined
  readonly #options: DispatchOptions
  readonly #names: ReadonlySet<string>
  readonly #labels: readonly string[]
  readonly #everyMs: number
  readonly #over = new AbortController()
  readonly #due: DueWatch
  readonly #looking: Promise<void>
  #wake = new AbortController()
  /** The tenant whose turn was last. */
  #turn: TenantId | undefined
  /** There was news since the last look began. */
  #hasNews = false

  constructor(environment: RuntimeEnvironment, tenant: TenantId | undefined, options: DispatchOptions) {
    checkOptionNames('hf.dispatch()', options, OPTIONS)
    if (!Array.isArray(options.programs) || options.programs.length === 0) {
      throw new InvalidOptionError(
        'programs',
        'names no program',
        'Pass the programs whose threads are to be handed out.',
      )
    }
    const names = options.programs.map((program, i) =>
      typeof program === 'string' ? program : planOf(`programs[${i}]`, program).name,
    )
    if (environment.workers.closing) throw new ClosedError('This Holdfast')
    this.#environment = environment
    this.#tenant = tenant
    this.#options = options
    this.#names = new Set(names)
    this.#labels = [...this.#names].flatMap((name) => [name, scheduleLabel(name)])
    this.#everyMs = checkWhole('everyMs', options.everyMs ?? EVERY_MS, 3_600_000)
    environment.workers.running.add(this)
    this.#due = environment.logs.news.onDue((news) => this.#hear(news))
    this.#looking = this.#look()
  }

  /** Looks now instead of at the next interval. */
  nudge(): void {
    this.#hasNews = true
    this.#wake.abort()
  }

  /** Hands out nothing more. What was handed out stays where it is. */
  async stop(): Promise<void> {
    this.#over.abort()
    this.#wake.abort()
    await this.#looking
    this.#due.close()
    this.#environment.workers.running.delete(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #hear(news: LogNews | undefined): void {
    if (news === undefined) return this.nudge()
    const isOurs = this.#tenant === undefined || news.log.tenant === this.#tenant
    // News of what is due later counts too: only a look tells how long to sleep.
    if (isOurs && this.#names.has(programOfLabel(news.program))) this.nudge()
  }

  async #look(): Promise<void> {
    const { clock, random } = this.#environment
    while (!this.#over.signal.aborted) {
      let restMs = this.#everyMs * (0.75 + 0.5 * random())
      this.#hasNews = false
      try {
        const nextMs = await this.#handOut()
        if (nextMs !== null) restMs = Math.min(restMs, nextMs + 1 + 20 * random())
      } catch (error) {
        if (isHoldfastError(error, 'closed')) return
        this.#tell(error)
        restMs = Math.min(restMs, AFTER_ERROR_MS)
        // Each piece of news would be another failure.
        await clock.sleep(restMs, this.#over.signal).catch(() => {})
      }
      if (!this.#hasNews && !this.#over.signal.aborted) await clock.sleep(restMs, this.#wake.signal).catch(() => {})
      if (this.#wake.signal.aborted) this.#wake = new AbortController()
    }
  }

  /** Hands out everything that is due. Returns how many milliseconds to wait for the next. */
  async #handOut(): Promise<number | null> {
    const { clock, logs } = this.#environment
    for (;;) {
      const page: DuePage = await logs.takeDue({
        programs: this.#labels,
        now: clock.canBeWrong ? 'now' : clock.now(),
        limit: logs.reservesDue ? AT_ONCE : AT_ONCE_UNRESERVED,
        reserveMs: this.#everyMs,
        ...(this.#turn === undefined ? {} : { after: this.#turn }),
        ...(this.#tenant === undefined ? {} : { tenant: this.#tenant }),
      })
      this.#turn = page.heads.at(-1)?.log.tenant ?? this.#turn
      if (page.heads.length > 0) await this.#options.hand(page.heads.map(describeDue))
      if (!page.more || !logs.reservesDue || this.#over.signal.aborted) return page.nextMs
    }
  }

  // A listener that throws must not end the dispatcher.
  #tell(error: unknown): void {
    try {
      this.#options.onError?.(error)
    } catch {}
  }
}
