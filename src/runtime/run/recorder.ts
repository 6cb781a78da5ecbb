import { ClosedError, isHoldfastError } from '../../core/errors.js'
import type { Claim } from '../../log/write/claim.js'
import type { SqlSession } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import type { State } from '../../log/entry/ops.js'
import type { Updated } from '../../log/write/update.js'
import { isStoreFailure } from '../errors.js'
import { applyOps, mergeAll } from './merge-drafts.js'
import { lagOf, type RecordPolicy, stepsPerWrite } from './record-policy.js'
import type { RunState } from './run-state.js'

/** Called with each entry of ours that is acknowledged. */
export type OnRecorded = (draft: Draft, updated: Updated, before: State) => void

/** Where a run writes what it does. */
export interface Recorder {
  /** The state as this run sees it. */
  readonly state: RunState
  /** What others sent, as of the newest entry known: inputs, answers, signals, cancellations. */
  readonly seen: RunState
  readonly fold: Fold
  /** False when nothing is kept: what needs a durable record is refused then. */
  readonly durable: boolean
  /** Notes something that is written with whatever is written next. */
  add(draft: Draft): void
  /** As `add`, but nothing is written only for its sake. */
  along(name: string, draft: Draft): void
  /** Takes back what was to travel along under this name, unless it is under way. */
  drop(name: string): void
  /** Records the end of a step: written now or later, as the policy says. */
  record(draft: Draft): Promise<void>
  /** Everything noted so far is acknowledged when this resolves: what must precede an effect on the outside world. */
  barrier(): Promise<void>
  /**
   * Decides on the newest state, guests' entries included, and writes that together with all that waits. Deciding on
   * nothing leaves what waits as it is.
   */
  conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined>
  /** Runs SQL and what it decides in one transaction, together with all that waits. */
  transact<Result>(
    work: (sql: SqlSession) => Promise<Result>,
    decide: (result: Result) => Draft,
    timeoutMs: number | undefined,
  ): Promise<Result>
  /** Makes every later write fail with this error. */
  fail(error: unknown): void
  /** Forgets what waits to be written, after the log refused it: the state is what the log says. */
  discard(): Promise<void>
}

/** A write that is under way. */
class Flight {
  /** Where the log ended when it was last decided on. */
  on = -1
  /** Not written as it was: the log can't hold it, or something before it. */
  refused = false
  /** What of it waits again. */
  left: readonly Note[] = []
  /** What nobody but the writer can be told. */
  failure: { readonly error: unknown } | undefined
  #isOver = false
  #over: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined

  /** Resolves when it is over, whatever came of it. Most are over before anybody asks. */
  over(): Promise<void> {
    if (this.#isOver) return DONE
    this.#over ??= deferred()
    return this.#over.promise
  }

  end(failure?: { readonly error: unknown }): void {
    this.#isOver = true
    this.failure = failure
    this.#over?.resolve()
  }
}

const DONE = Promise.resolve()

/** Something that waits to be written. */
interface Note {
  readonly draft: Draft
  /** The end of a step: if the log can't hold it, that step is told. The others travel with whatever comes next. */
  readonly step: Step | undefined
  /** Not worth a write of its own. */
  readonly along?: string
}

/** Who brought the record of a step. */
interface Step {
  /** False when the program has gone on without waiting for the record. */
  waits: boolean
  /** Settles when the record is written, or refused. */
  readonly written: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Writes to a claimed log and holds the state as the run sees it: acknowledged entries and what waits to be written.
 * The first failure is kept: nothing is written after it.
 */
export class LogRecorder implements Recorder {
  readonly durable = true
  readonly #claim: Claim
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

  constructor(claim: Claim, policy: RecordPolicy, onRecorded: OnRecorded) {
    this.#claim = claim
    this.#every = stepsPerWrite(policy.frequency)
    this.#lag = lagOf(policy.durability)
    this.#onRecorded = onRecorded
  }

  get state(): RunState {
    return (this.#view?.state ?? this.#claim.log.fold.state) as RunState
  }

  get seen(): RunState {
    return this.#claim.log.fold.state as RunState
  }

  get fold(): Fold {
    return this.#claim.log.fold
  }

  add(draft: Draft): void {
    this.#note({ draft, step: undefined })
  }

  along(name: string, draft: Draft): void {
    this.drop(name)
    this.#note({ draft, step: undefined, along: name })
  }

  drop(name: string): void {
    this.#pending = this.#pending.filter(({ along }) => along !== name)
  }

  record(draft: Draft): Promise<void> {
    const step = newStep()
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
    if (this.#deciding > 0) await this.#decided()
    this.#check()
    if (this.#pending.includes(note)) this.#write()
    if (this.#lag === 0) return step.written
    while (this.#flights.length > this.#lag) await this.#flights[0]?.over()
    this.#check()
  }

  barrier(): Promise<void> {
    const isClear = this.#deciding === 0 && this.#pending.length === 0 && this.#flights.length === 0
    return isClear && this.#failure === undefined && this.#refused === undefined ? DONE : this.#clear()
  }

  async #clear(): Promise<void> {
    // Whatever is concluded at this moment holds entries that were noted before.
    await this.#decided()
    // Again, when a step was told that its record can't be written: what was noted before it still waits.
    while (this.#pending.some(({ along }) => along === undefined)) {
      this.#check()
      await this.#written()
      await this.#decided()
    }
    await this.#drain()
  }

  conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined> {
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
      if (draft === undefined || updated.entries.length === 0) return undefined
      this.#onRecorded(draft, updated, before)
      return updated
    })
  }

  async transact<Result>(
    work: (sql: SqlSession) => Promise<Result>,
    decide: (result: Result) => Draft,
    timeoutMs: number | undefined,
  ): Promise<Result> {
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

  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  async discard(): Promise<void> {
    while (this.#flights.length > 0) await this.#flights[0]?.over()
    for (const { step } of this.#take()) step?.reject(new ClosedError('This run'))
    this.#refused = undefined
    this.#view = undefined
    this.#check()
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

  /** Resolves when nothing is being decided on. */
  async #decided(): Promise<void> {
    while (this.#deciding > 0) await this.#exclusive
  }

  /** One at a time, after all that is under way, with what waits in its hands. Put back when nothing was written. */
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
      const result = await this.#guard(write(mergeAll(drafts(notes))))
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

  /** Writes all that waits. What becomes of it is told to the steps it is of, and to whoever waits for the flight. */
  #write(): Flight {
    const notes = this.#take()
    const previous = this.#flights.at(-1)
    const flight = new Flight()
    this.#flights.push(flight)
    const landed = () => this.#landed(flight)
    this.#send(notes, flight, previous, landed, (error) => void this.#recover(error, notes, flight, previous))
    return flight
  }

  /** Rejects when nothing can be written any more, or the fault is none of a step's. */
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
    const draft = mergeAll(drafts(notes)) as Draft
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

  // A value that can't be stored is the business of the step that brought it, and of no other that was to be written
  // with it. But a program that is ahead of its records has gone on from there, and ends.
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

  // Once all is acknowledged the log's own fold is the state, guests' entries included. What is noted meanwhile lies on
  // top of it: a view of before would lack what was just decided.
  #landed(flight: Flight, failure?: { readonly error: unknown }): void {
    this.#flights.splice(this.#flights.indexOf(flight), 1)
    if (this.#flights.length === 0) this.#lookAnew()
    flight.end(failure)
  }

  #lookAnew(): void {
    this.#view = this.#pending.length === 0 ? undefined : new View(this.#claim.log.fold.state, drafts(this.#pending))
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

/** A state and what is noted on top of it, which is applied when somebody looks: most steps land before anybody does. */
class View {
  #state: State
  #noted: Draft[]

  constructor(state: State, noted: readonly Draft[] = []) {
    this.#state = state
    this.#noted = [...noted]
  }

  add(draft: Draft): void {
    this.#noted.push(draft)
  }

  get state(): State {
    for (const draft of this.#noted) this.#state = applyOps(this.#state, draft)
    this.#noted = []
    return this.#state
  }
}

/** The log can't hold a value. */
function isRefusal(error: unknown): boolean {
  return isHoldfastError(error, 'invalid-value') || isHoldfastError(error, 'too-large')
}

function drafts(notes: readonly Note[]): readonly Draft[] {
  return notes.map(({ draft }) => draft)
}

function newStep(): Step {
  const { promise: written, resolve, reject } = deferred()
  // The step may hear of it later, or never when the run is stopped: that must not end the process.
  written.catch(noop)
  return { waits: false, written, resolve, reject }
}

function deferred() {
  let settle: Pick<Step, 'resolve' | 'reject'> | undefined
  const promise = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...(settle as Pick<Step, 'resolve' | 'reject'>) }
}

function noop(): void {}
