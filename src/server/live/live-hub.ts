import { randomBytes } from 'node:crypto'
import type { RunEvent } from '../../index.js'
import { isLive, type LiveEvent, seqOf } from './event-position.js'

/** Where somebody was in what only this process saw: which process, and the number of the last live event. */
export interface LivePlace {
  readonly hub: string
  readonly n: number
}

/** A live event with its number on its log. */
export interface Numbered {
  readonly n: number
  readonly event: LiveEvent
}

/** How many live events of steps in progress are kept for readers who come back, and how many wait for a slow one. */
const MAX_KEPT = 20_000
const MAX_WAITING = 20_000

/**
 * What happens in the runs of this process, for those who follow a thread. Records are read from the log, which has them
 * all in order; from here come only hints that there is a new one, and what is never recorded: tokens, progress.
 */
export class LiveHub {
  /** Tells this process from others: numbers of live events mean nothing there. */
  readonly id = randomBytes(4).toString('hex')
  readonly #logs = new Map<string, LiveLog>()
  readonly #listen: ListenElsewhere

  /** @param listen hears of what happens in other processes, while somebody follows a log here */
  constructor(listen: ListenElsewhere = () => () => {}) {
    this.#listen = listen
  }

  /** An event of a run of this process. */
  publish(log: string, event: RunEvent): void {
    this.#at(log).publish(event)
  }

  /** A run of this process has ended, in whichever way. */
  ended(log: string): void {
    const live = this.#logs.get(log)
    live?.ended()
    if (live?.isIdle) this.#logs.delete(log)
  }

  /** Hears of what happens on a log: what is kept of steps in progress and was not seen yet, then what comes. */
  subscribe(log: string, place: LivePlace | undefined): LiveSubscription {
    const live = this.#at(log)
    const seen = place?.hub === this.id ? place.n : -1
    const subscription = new LiveSubscription(live.keptAfter(seen), seen, () => {
      live.leave(subscription)
      if (live.isIdle) this.#logs.delete(log)
    })
    live.join(subscription)
    return subscription
  }

  /**
   * Hears of a log from now on, for a reader who comes in a moment: a run that was asked for may have said all it has to
   * say before its reader is ready. Let go of by itself where nobody comes.
   */
  expect(log: string): ExpectedReader {
    return new ExpectedReader(this.subscribe(log, undefined))
  }

  #at(log: string): LiveLog {
    const found = this.#logs.get(log) ?? new LiveLog((heard) => this.#listen(log, heard))
    this.#logs.set(log, found)
    return found
  }
}

/** Calls back with what happens on a log in other processes. Returns a function that ends it. */
export type ListenElsewhere = (log: string, heard: (event: RunEvent) => void) => () => void

class LiveLog {
  readonly #readers = new Set<LiveSubscription>()
  readonly #listen: (heard: (event: RunEvent) => void) => () => void
  #endListening: (() => void) | undefined
  /** Of steps that are in progress: a record takes the place of these when the step has ended. */
  readonly #steps = new Map<string, Numbered[]>()
  #kept = 0
  #n = 0
  #isRunning = false

  constructor(listen: (heard: (event: RunEvent) => void) => () => void) {
    this.#listen = listen
  }

  join(reader: LiveSubscription): void {
    this.#readers.add(reader)
    this.#endListening ??= this.#listen((event) => this.#elsewhere(event))
  }

  leave(reader: LiveSubscription): void {
    this.#readers.delete(reader)
    if (this.#readers.size > 0) return
    this.#endListening?.()
    this.#endListening = undefined
  }

  // For those who are here: whoever comes later reads the records.
  #elsewhere(event: RunEvent): void {
    if (!isLive(event)) return
    const numbered = { n: this.#n++, event }
    for (const reader of this.#readers) reader.push(numbered)
  }

  get isIdle(): boolean {
    return this.#readers.size === 0 && !this.#isRunning
  }

  publish(event: RunEvent): void {
    this.#isRunning = true
    if (!isLive(event)) {
      if (event.type === 'step' && event.status !== 'started') this.#forget(event.step)
      return
    }
    const numbered = { n: this.#n++, event }
    if (event.type === 'superseded') this.#forget(event.step)
    this.#keep(numbered)
    for (const reader of this.#readers) reader.push(numbered)
  }

  ended(): void {
    this.#isRunning = false
    this.#steps.clear()
    this.#kept = 0
  }

  keptAfter(seen: number): Numbered[] {
    const found = [...this.#steps.values()].flat().filter(({ n }) => n > seen)
    return found.sort((a, b) => a.n - b.n)
  }

  // A step that says more than is kept can't be shown whole to who comes late; the record will be.
  #keep(numbered: Numbered): void {
    if (this.#kept >= MAX_KEPT) return
    const { step } = numbered.event
    let kept = this.#steps.get(step) ?? []
    const whole = wholeOf(numbered.event)
    if (whole !== undefined) {
      const others = kept.filter(({ event }) => wholeOf(event) !== whole)
      this.#kept -= kept.length - others.length
      kept = others
    }
    this.#steps.set(step, kept)
    kept.push(numbered)
    this.#kept++
  }

  #forget(step: string): void {
    this.#kept -= this.#steps.get(step)?.length ?? 0
    this.#steps.delete(step)
  }
}

/**
 * What an event tells the whole of, such as the values of a graph: only the newest is kept for who comes late. A graph tells
 * its whole state with every step, and all of them would fill the memory.
 */
function wholeOf(event: LiveEvent): string | undefined {
  if (event.type !== 'custom') return undefined
  const chunk = (event.value as { readonly langgraph?: { mode?: unknown; event?: unknown } } | null)?.langgraph
  return chunk?.mode === 'values' ? String(chunk.event) : undefined
}

/** For how long what is heard is kept for a reader who does not come. */
const EXPECTED_MS = 10_000

/** A subscription that waits for its reader. */
export class ExpectedReader {
  #subscription: LiveSubscription | undefined
  readonly #timer: NodeJS.Timeout

  constructor(subscription: LiveSubscription) {
    this.#subscription = subscription
    this.#timer = setTimeout(() => this.take()?.close(), EXPECTED_MS)
    this.#timer.unref()
  }

  /** Does what its reader is expected for. Lets go if that fails: then nobody comes. */
  async orClose<Result>(asked: Promise<Result>): Promise<Result> {
    try {
      return await asked
    } catch (error) {
      this.take()?.close()
      throw error
    }
  }

  /** Whose it is from now on to close. Undefined when it was taken, or nobody came in time. */
  take(): LiveSubscription | undefined {
    clearTimeout(this.#timer)
    const subscription = this.#subscription
    this.#subscription = undefined
    return subscription
  }
}

/** One reader's view of what happens live on a log. */
export class LiveSubscription {
  readonly #waiting: Numbered[]
  readonly #close: () => void
  #seen: number
  #more: (() => void) | undefined
  #overflowed = false

  constructor(kept: Numbered[], seen: number, close: () => void) {
    this.#waiting = kept
    this.#seen = seen
    this.#close = close
  }

  /** The number of the last live event that was taken. */
  get seen(): number {
    return this.#seen
  }

  /** More came than a reader this slow may have waiting: it has to come back and read the records. */
  get isOverflowed(): boolean {
    return this.#overflowed
  }

  push(numbered: Numbered): void {
    if (this.#waiting.length >= MAX_WAITING) this.#overflowed = true
    else this.#waiting.push(numbered)
    this.#more?.()
  }

  /** The next live event, if all records before it have been seen: those up to `seq`. */
  take(seq: number): Numbered | undefined {
    const [first] = this.#waiting
    if (first === undefined || seqOf(first.event.id) > seq) return undefined
    this.#waiting.shift()
    this.#seen = first.n
    return first
  }

  /** Resolves when a live event has come. */
  async more(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#more = resolve
    })
  }

  close(): void {
    this.#close()
    this.#more?.()
  }
}
