import { ClosedError, isHoldfastError } from '../../core/errors.js'
import type { Claim } from '../../log/write/claim.js'
import type { SqlSession } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import type { State } from '../../log/entry/ops.js'
import type { Updated } from '../../log/write/update.js'
import { isStoreFailure } from '../errors.js'
import { applyOps, DONE, draftsOf, Flight, mergeAll, type Note, Step, View } from './notes.js'
import { lagOf, type RecordPolicy, stepsPerWrite } from './record-policy.js'
import type { RunState } from './run-state.js'

/** Called with each entry of ours that is acknowledged. */
export type OnRecorded = (draft: Draft, updated: Updated, before: State) => void

/** What a run writes with: a claim, or a stand-in for one. */
export type RunClaim = Pick<Claim, 'post' | 'update' | 'conclude' | 'transact'> & {
  readonly log: { readonly fold: Fold }
  /** False when nothing is kept: what needs a durable record is refused then. */
  readonly isDurable?: boolean
}

/**
 * A run's only access to the log. Writes as the owner of the claim, and holds the state as the run sees it:
 * acknowledged entries and what is waiting to be written. The first failure is kept: nothing is written after it.
 *
 * Each run has its own. Steps of a cancelled run may still be finishing when the next run of the thread begins: what
 * they would record then would be taken for the next one's. Once it is closed nothing is noted, and whoever waits for a
 * record waits forever.
 */
export class RunLog {
  /** False when nothing is kept: what needs a durable record is refused then. */
  readonly durable: boolean
  readonly #claim: RunClaim
  readonly #every: number
  readonly #lag: number
  readonly #onRecorded: OnRecorded
  readonly #flights: Flight[] = []
  /** What waits to be written, as one entry. */
  #pending: Note[] = []
  #steps = 0
  #view: View | undefined
  /** Written ahead of the program, and refused by the log: what came after it must not be written either. */
  #refused: { readonly error: unknown } | undefined
  #exclusive: Promise<unknown> = Promise.resolve()
  #deciding = 0
  #failure: { readonly error: unknown } | undefined
  #isClosed = false

  constructor(claim: RunClaim, policy: RecordPolicy, onRecorded: OnRecorded) {
    this.#claim = claim
    this.durable = claim.isDurable ?? true
    this.#every = stepsPerWrite(policy.frequency)
    this.#lag = lagOf(policy.durability)
    this.#onRecorded = onRecorded
  }

  /** The state as this run sees it. */
  get state(): RunState {
    return (this.#view?.state ?? this.#claim.log.fold.state) as RunState
  }

  /** What others sent, as of the newest known entry: inputs, answers, signals, cancellations. */
  get seen(): RunState {
    return this.#claim.log.fold.state as RunState
  }

  get fold(): Fold {
    return this.#claim.log.fold
  }

  /** Notes something that is written with whatever is written next. */
  add(draft: Draft): void {
    if (!this.#isClosed) this.#note({ draft, step: undefined })
  }

  /** Like `add`, but nothing is written just for its sake. */
  along(name: string, draft: Draft): void {
    if (this.#isClosed) return
    this.drop(name)
    this.#note({ draft, step: undefined, along: name })
  }

  /** Takes back what was noted under this name, unless it is already being written. */
  drop(name: string): void {
    if (!this.#isClosed) this.#pending = this.#pending.filter(({ along }) => along !== name)
  }

  /** Records the end of a step: written now or later, as the policy says. */
  record(draft: Draft): Promise<void> {
    if (this.#isClosed) return never()
    const step = new Step()
    const note: Note = { draft, step }
    try {
      this.#note(note)
    } catch (error) {
      return Promise.reject(error)
    }
    if (++this.#steps < this.#every) return DONE
    step.waits = this.#lag === 0
    if (this.#lag > 0 || this.#deciding > 0) return this.#recordInTurn(note, step)
    this.#write()
    return step.written
  }

  async #recordInTurn(note: Note, step: Step): Promise<void> {
    // What is being decided on holds entries noted earlier: if nothing comes of it they are put back, and go first.
    while (this.#deciding > 0) await this.#exclusive
    this.#check()
    if (this.#pending.includes(note)) this.#write()
    if (this.#lag === 0) return step.written
    while (this.#flights.length > this.#lag) await this.#flights[0]?.over()
    this.#check()
  }

  /** Everything noted so far is acknowledged when this resolves: what must precede an effect on the outside world. */
  barrier(): Promise<void> {
    if (this.#isClosed) return never()
    const isClear = this.#deciding === 0 && this.#pending.length === 0 && this.#flights.length === 0
    return isClear && this.#failure === undefined && this.#refused === undefined ? DONE : this.#clear()
  }

  async #clear(): Promise<void> {
    for (;;) {
      // Looked at right before the rest: what is being decided on holds entries that were noted before, and so does what
      // is in flight. Both may put them back, and then they still wait.
      while (this.#deciding > 0) await this.#exclusive
      this.#check()
      if (this.#pending.some(({ along }) => along === undefined)) await this.#written()
      else if (this.#flights.length > 0) await this.#flights[0]?.over()
      else return
    }
  }

  /**
   * Decides on the newest state, including guests' entries, and writes that together with everything that is waiting.
   * Deciding on nothing leaves what is waiting as it is.
   */
  decide(decide: (fold: Fold) => Draft | undefined): Promise<Updated | undefined> {
    return this.#isClosed ? never() : this.#decide(decide, false)
  }

  /** Like `decide`, for the end of the run: steps that are still finishing are not waited for. */
  conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined> {
    return this.#decide(decide, release)
  }

  /** From now on nothing from its steps is written anymore. */
  close(): void {
    this.#isClosed = true
  }

  #decide(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined> {
    return this.#alone(async (pending) => {
      let draft: Draft | undefined
      let before: State = {}
      const decided = (fold: Fold): readonly Draft[] | undefined => {
        before = fold.state
        const last = decide(pending === undefined ? fold : { ...fold, state: applyOps(fold.state, pending) })
        draft = last && (pending === undefined ? last : mergeAll([pending, last]))
        return draft && [draft]
      }
      const updated = await (release ? this.#claim.conclude(decided) : this.#claim.update(decided))
      if (draft === undefined) return undefined
      this.#onRecorded(draft, updated, before)
      return updated
    })
  }

  /** Runs SQL and what it decides in one transaction, together with everything that is waiting. */
  async transact<Result>(
    work: (sql: SqlSession) => Promise<Result>,
    decide: (result: Result) => Draft,
    timeoutMs: number | undefined,
  ): Promise<Result> {
    if (this.#isClosed) return never()
    const done = await this.#alone(async (pending) => {
      let draft: Draft | undefined
      let before: State = {}
      const { result, updated } = await this.#claim.transact(
        work,
        (fold, value) => {
          before = fold.state
          const made = mergeAll(pending === undefined ? [decide(value)] : [pending, decide(value)]) as Draft
          draft = made
          return [made]
        },
        timeoutMs === undefined ? {} : { timeoutMs },
      )
      this.#onRecorded(draft as Draft, updated, before)
      return { result }
    })
    return (done as { readonly result: Result }).result
  }

  /** Makes every later write fail with this error. */
  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  /** Drops what is waiting to be written, after the log refused it, and closes: the state is what the log says. */
  async discard(): Promise<void> {
    this.close()
    while (this.#flights.length > 0) await this.#flights[0]?.over()
    for (const { step } of this.#take()) step?.reject(new ClosedError('This run'))
    if (this.#failure) throw this.#failure.error
  }

  #note(note: Note): void {
    this.#check()
    this.#view ??= new View(this.#claim.log.fold.state)
    this.#view.add(note.draft)
    this.#pending.push(note)
  }

  #take(): readonly Note[] {
    const notes = this.#pending
    this.#pending = []
    this.#steps = 0
    return notes
  }

  #restore(notes: readonly Note[]): void {
    this.#pending = [...notes, ...this.#pending]
  }

  /** One at a time, after everything in progress, holding what is waiting. Put back if nothing was written. */
  #alone<Result>(write: (pending: Draft | undefined) => Promise<Result | undefined>): Promise<Result | undefined> {
    this.#deciding++
    const turn = this.#exclusive.then(async () => {
      try {
        return await this.#writeWith(write)
      } catch (error) {
        if (!isRefusal(error) || !this.#pending.some(({ step }) => step)) throw error
        // Of a record that waits, perhaps: that is told to its own step, and then it is known.
        await this.#written()
        return await this.#writeWith(write)
      }
    })
    const decided = () => {
      this.#deciding--
    }
    this.#exclusive = turn.then(decided, decided)
    return turn
  }

  async #writeWith<Result>(write: (pending: Draft | undefined) => Promise<Result | undefined>) {
    await this.#drain()
    const notes = this.#take()
    const flight = new Flight()
    this.#flights.push(flight)
    try {
      const result = await this.#guard(write(mergeAll(draftsOf(notes))))
      if (result === undefined) this.#restore(notes)
      else for (const { step } of notes) step?.resolve()
      return result
    } catch (error) {
      this.#restore(notes)
      throw error
    } finally {
      this.#landed(flight)
    }
  }

  /**
   * Writes everything that is waiting. The outcome is reported to the steps it belongs to, and to whoever waits for
   * this write.
   */
  #write(): Flight {
    const notes = this.#take()
    const previous = this.#flights.at(-1)
    const flight = new Flight()
    this.#flights.push(flight)
    const landed = () => this.#landed(flight)
    this.#send(notes, flight, previous, landed, (error) => void this.#recover(error, notes, flight, previous))
    return flight
  }

  /** Rejects if nothing can be written anymore, or the failure is not a step's. */
  async #written(): Promise<void> {
    const flight = this.#write()
    await flight.over()
    if (flight.failure) throw flight.failure.error
  }

  #send(
    notes: readonly Note[],
    flight: Flight,
    previous: Flight | undefined,
    landed: () => void,
    failed: (error: unknown) => void,
  ): void {
    const draft = mergeAll(draftsOf(notes)) as Draft
    let before: State = {}
    const decided = (fold: Fold) => {
      // What was noted earlier, such as the beginning of the run, and what the program made of it, must come first.
      if (previous !== undefined && (previous.refused || fold.seq <= previous.on)) throw new AfterRefused()
      flight.on = fold.seq
      before = fold.state
      return [draft]
    }
    const reject = (error: unknown) => {
      flight.refused = true
      // Values that can't be stored are the step's fault, not the log's.
      if (isStoreFailure(error)) this.fail(error)
      failed(error)
    }
    const resolve = (updated: Updated) => {
      try {
        this.#onRecorded(draft, updated, before)
      } catch (error) {
        return reject(error)
      }
      for (const { step } of notes) step?.resolve()
      landed()
    }
    this.#claim.post(decided, { resolve, reject })
  }

  async #recover(error: unknown, notes: readonly Note[], flight: Flight, previous: Flight | undefined): Promise<void> {
    const isLater = error instanceof AfterRefused && this.#lag === 0
    try {
      await (isLater ? this.#writeAfter(notes, flight, previous) : this.#refuse(error, notes, flight))
      this.#landed(flight)
    } catch (unmended) {
      this.#landed(flight, { error: unmended })
    }
  }

  async #writeAfter(notes: readonly Note[], flight: Flight, previous: Flight | undefined): Promise<void> {
    await previous?.over()
    const left = previous?.left.filter((note) => this.#pending.includes(note)) ?? []
    this.#pending = this.#pending.filter((note) => !left.includes(note))
    return this.#writeEach([...left, ...notes], flight)
  }

  // A value that can't be stored concerns the step that brought it, and no other that was to be written with it. But a
  // program that is ahead of its records has continued from there, and ends.
  async #refuse(error: unknown, notes: readonly Note[], flight: Flight): Promise<void> {
    if (isStoreFailure(error) || this.#lag > 0) {
      if (!isStoreFailure(error) && !(error instanceof AfterRefused)) this.#refused ??= { error }
      for (const { step } of notes) step?.reject(error)
      throw error
    }
    if (notes.filter(({ step }) => step).length > 1) return this.#writeEach(notes, flight)
    flight.left = notes.filter(({ step }) => step === undefined)
    this.#restore(flight.left)
    const step = notes.find((note) => note.step)?.step
    if (step === undefined) throw error
    this.#tell(step, error)
  }

  /** Each step by itself, with what was noted before it. */
  async #writeEach(notes: readonly Note[], flight: Flight): Promise<void> {
    let group: readonly Note[] = []
    for (const [i, note] of notes.entries()) {
      group = [...group, note]
      if (note.step === undefined) continue
      try {
        const sent = group
        await new Promise<void>((resolve, reject) => this.#send(sent, new Flight(), undefined, resolve, reject))
        group = []
      } catch (error) {
        if (isStoreFailure(error)) return this.#refuse(error, notes.slice(i), flight)
        this.#tell(note.step, error)
        group = group.filter(({ step }) => step === undefined)
      }
    }
    flight.left = group
    this.#restore(group)
  }

  #tell(step: Step, error: unknown): void {
    if (!step.waits) this.#refused ??= { error }
    step.reject(error)
  }

  // Once everything is acknowledged, the log's own fold is the state, including guests' entries. What is noted in the
  // meantime is on top of it: an older view would lack what was just decided.
  #landed(flight: Flight, failure?: { readonly error: unknown }): void {
    this.#flights.splice(this.#flights.indexOf(flight), 1)
    if (this.#flights.length === 0) this.#lookAnew()
    flight.end(failure)
  }

  #lookAnew(): void {
    this.#view = this.#pending.length === 0 ? undefined : new View(this.#claim.log.fold.state, draftsOf(this.#pending))
  }

  async #guard<Result>(write: Promise<Result>): Promise<Result> {
    try {
      return await write
    } catch (error) {
      // Values that can't be stored and SQL of the user's own that fails are the step's fault, not the log's.
      if (isStoreFailure(error)) this.fail(error)
      throw error
    }
  }

  async #drain(): Promise<void> {
    while (this.#flights.length > 0) await this.#flights[0]?.over()
    this.#check()
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error
    if (this.#refused) throw this.#refused.error
  }
}

/** Not written because of what came before it, which was refused. */
class AfterRefused extends Error {}

// Created anew each time, so that it can be collected together with whoever waits for it.
function never(): Promise<never> {
  return new Promise(() => {})
}

/** The log can't hold a value. */
function isRefusal(error: unknown): boolean {
  return isHoldfastError(error, 'invalid-value') || isHoldfastError(error, 'too-large')
}
