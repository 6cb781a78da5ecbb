import type { Clock } from '../../core/time/clock.js'

/** How long a suspect waits for the others to make room before it runs in company after all. */
const PATIENCE_MS = 60_000

/**
 * Who runs in this process. When a process dies, each thread that ran in it and recorded nothing may be the cause. So a
 * thread that was there more than once is run alone until it records something: only a crash while it ran alone is
 * evidence against it.
 */
export class Company {
  readonly #present = new Set<Place>()
  readonly #changed = new Set<() => void>()
  /** Called when others may run again. */
  readonly onOpen = new Set<() => void>()
  #suspect: Place | undefined
  readonly #listening = new Map<string, Set<() => void>>()

  /** Tells a run of this process about what others in it write to its log. Returns a function that ends that. */
  listen(log: string, hear: () => void): () => void {
    const all = this.#listening.get(log) ?? new Set()
    this.#listening.set(log, all.add(hear))
    return () => {
      all.delete(hear)
      if (all.size === 0 && this.#listening.get(log) === all) this.#listening.delete(log)
    }
  }

  /** Something was written to a log that a run of this process may hold. */
  tell(log: string): void {
    for (const hear of this.#listening.get(log) ?? []) hear()
  }

  /** While it is true, workers take nothing: a suspect runs alone, or waits to. */
  get isClosed(): boolean {
    return this.#suspect !== undefined
  }

  /** The turn to run alone. False while another has it. */
  reserve(place: Place): boolean {
    this.#suspect ??= place
    return this.#suspect === place
  }

  join(place: Place): void {
    this.#present.add(place)
  }

  /** A run that can't be asked to make room announces itself before it joins: the suspect is no longer alone. */
  async accompany(place: Place): Promise<void> {
    const suspect = this.#suspect
    if (suspect !== undefined && suspect !== place) await suspect.accompanied()
  }

  /** True if nobody else is here; false if some stayed for too long. */
  async solitude(place: Place, clock: Clock, signal: AbortSignal): Promise<boolean> {
    const others = () => [...this.#present].filter((other) => other !== place)
    for (const other of others()) other.makeRoom?.()
    const over = new AbortController()
    let isLate = false
    const wait = async () => {
      await clock.sleep(PATIENCE_MS, AbortSignal.any([signal, over.signal]))
      isLate = true
    }
    const patience = wait().catch(() => {})
    try {
      while (others().length > 0 && !isLate) {
        signal.throwIfAborted()
        await Promise.race([patience, this.#change()])
      }
    } finally {
      over.abort()
    }
    signal.throwIfAborted()
    return others().length === 0
  }

  /** It recorded something, or it is gone. */
  clear(place: Place): void {
    if (this.#suspect !== place) return
    this.#suspect = undefined
    for (const tell of this.onOpen) tell()
  }

  leave(place: Place): void {
    this.#present.delete(place)
    this.clear(place)
    for (const tell of this.#changed) tell()
    this.#changed.clear()
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#changed.add(resolve))
  }
}

/** One run's place in the company of its process. */
export class Place {
  /** Ends the run at its next step. Absent if someone is waiting for its outcome. */
  readonly makeRoom: (() => void) | undefined
  readonly #company: Company
  #isSuspect = false
  /** Durably notes that the run is alone, or no longer is. */
  #note: ((alone: boolean) => Promise<void>) | undefined
  #marked: Promise<void> | undefined
  #hush = () => {}

  constructor(company: Company, makeRoom?: () => void) {
    this.#company = company
    this.makeRoom = makeRoom
  }

  /** The log says that this claim runs alone. */
  get isAlone(): boolean {
    return this.#marked !== undefined
  }

  /** From now on, until it leaves, the run is told what others in this process write to its log. */
  listen(log: string, hear: () => void): void {
    this.#hush = this.#company.listen(log, hear)
  }

  /** For a suspect: takes the turn to run alone, if it is available now. */
  reserve(): boolean {
    this.#isSuspect = this.#company.reserve(this)
    return this.#isSuspect
  }

  /** Before the program starts, where nothing has to be waited for: true if it has entered. */
  enterAtOnce(): boolean {
    if (this.#isSuspect || this.#company.isClosed) return false
    this.#company.join(this)
    return true
  }

  /** Before the program starts. False if a suspect is here and this run can be put off. */
  async enter(clock: Clock, signal: AbortSignal, note: (alone: boolean) => Promise<void>): Promise<boolean> {
    if (this.#isSuspect) {
      this.#company.join(this)
      if (await this.#company.solitude(this, clock, signal)) {
        this.#note = note
        this.#marked = note(true)
        await this.#marked
      } else this.#company.clear(this)
      return true
    }
    if (!this.#company.isClosed) {
      this.#company.join(this)
      return true
    }
    if (this.makeRoom) return false
    await this.#company.accompany(this)
    this.#company.join(this)
    return true
  }

  /** Someone else runs here from now on: if the process dies, that says nothing about this run. */
  async accompanied(): Promise<void> {
    const marked = this.#marked
    if (marked === undefined) return
    this.#marked = undefined
    await marked.then(
      () => this.#note?.(false),
      () => {},
    )
  }

  /** The run recorded something. */
  progressed(): void {
    if (!this.#isSuspect) return
    this.#isSuspect = false
    this.#marked = undefined
    this.#company.clear(this)
  }

  leave(): void {
    this.#hush()
    this.#isSuspect = false
    this.#marked = undefined
    this.#company.leave(this)
  }
}
