import { ClosedError } from '../../../core/errors.js'
import type { SqlSession } from '../../../log/contract.js'
import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { State } from '../../../log/entry/ops.js'
import type { Updated } from '../../../log/write/update.js'
import { isStoreFailure } from '../../errors.js'
import { never } from '../../step/call/activity.js'
import { ExclusiveWrites } from './exclusive-writes.js'
import { DONE, draftsOf, type Flight, mergeAll, type Note, Step } from './notes.js'
import { lagOf, type RecordPolicy, stepsPerWrite } from './record-policy.js'
import { AfterRefused, RefusedWrites } from './refused-writes.js'
import type { OnRecorded, RunClaim } from './run-claim.js'
import type { RunState } from '../state/run-state.js'
import { Unwritten } from './unwritten.js'

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
  /** How many writes the program may be ahead of. */
  readonly #lag: number
  readonly #onRecorded: OnRecorded
  readonly #unwritten: Unwritten
  readonly #exclusive: ExclusiveWrites
  readonly #refused: RefusedWrites
  #isClosed = false

  constructor(claim: RunClaim, policy: RecordPolicy, onRecorded: OnRecorded) {
    this.#claim = claim
    this.durable = claim.isDurable ?? true
    this.#every = stepsPerWrite(policy.frequency)
    this.#lag = lagOf(policy.durability)
    this.#onRecorded = onRecorded
    this.#unwritten = new Unwritten(claim.log)
    this.#exclusive = new ExclusiveWrites(claim, this.#unwritten, onRecorded, () => this.#written())
    this.#refused = new RefusedWrites(this.#unwritten, this.#lag > 0, (...sent) => this.#send(...sent))
  }

  /** The state as this run sees it. */
  get state(): RunState {
    return this.#unwritten.state as RunState
  }

  /** What others sent, as of the newest known entry: inputs, answers, signals, cancellations. */
  get acknowledged(): RunState {
    return this.#claim.log.fold.state as RunState
  }

  get fold(): Fold {
    return this.#claim.log.fold
  }

  /** Notes something that is written with whatever is written next. */
  add(draft: Draft): void {
    if (!this.#isClosed) this.#unwritten.note({ draft, step: undefined })
  }

  /** Like `add`, but nothing is written just for its sake. */
  along(name: string, draft: Draft): void {
    if (this.#isClosed) return
    this.drop(name)
    this.#unwritten.note({ draft, step: undefined, along: name })
  }

  /** Takes back what was noted under this name, unless it is already being written. */
  drop(name: string): void {
    if (!this.#isClosed) this.#unwritten.drop(name)
  }

  /** Records the end of a step: written now or later, as the policy says. */
  record(draft: Draft): Promise<void> {
    if (this.#isClosed) return never()
    const step = new Step()
    const note: Note = { draft, step }
    try {
      this.#unwritten.note(note)
    } catch (error) {
      return Promise.reject(error)
    }
    if (++this.#unwritten.steps < this.#every) return DONE
    step.waits = this.#lag === 0
    if (this.#lag > 0 || this.#exclusive.isBusy) return this.#recordInTurn(note, step)
    this.#write()
    return step.written
  }

  async #recordInTurn(note: Note, step: Step): Promise<void> {
    const { flights } = this.#unwritten
    // What is being decided on holds entries noted earlier: if nothing comes of it they are put back, and go first.
    while (this.#exclusive.isBusy) await this.#exclusive.last
    this.#unwritten.check()
    if (this.#unwritten.pending.includes(note)) this.#write()
    if (this.#lag === 0) return step.written
    while (flights.length > this.#lag) await flights[0]?.over()
    this.#unwritten.check()
  }

  /** Everything noted so far is acknowledged when this resolves: what must precede an effect on the outside world. */
  barrier(): Promise<void> {
    if (this.#isClosed) return never()
    return !this.#exclusive.isBusy && this.#unwritten.isEmpty ? DONE : this.#exclusive.clear()
  }

  /**
   * Decides on the newest state, including guests' entries, and writes that together with everything that is waiting.
   * Deciding on nothing leaves what is waiting as it is.
   */
  decide(decide: (fold: Fold) => Draft | undefined): Promise<Updated | undefined> {
    return this.#isClosed ? never() : this.#exclusive.decide(decide, false)
  }

  /** Like `decide`, for the end of the run: steps that are still finishing are not waited for. */
  conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined> {
    return this.#exclusive.decide(decide, release)
  }

  /** Runs SQL and what it decides in one transaction, together with everything that is waiting. */
  transact<Result>(
    work: (sql: SqlSession) => Promise<Result>,
    decide: (result: Result) => Draft,
    timeoutMs: number | undefined,
  ): Promise<Result> {
    return this.#isClosed ? never() : this.#exclusive.transact(work, decide, timeoutMs)
  }

  /** From now on nothing from its steps is written anymore. */
  close(): void {
    this.#isClosed = true
  }

  /** Makes every later write fail with this error. */
  fail(error: unknown): void {
    this.#unwritten.fail(error)
  }

  /** Drops what is waiting to be written, after the log refused it, and closes: the state is what the log says. */
  async discard(): Promise<void> {
    this.close()
    await this.#unwritten.drain()
    for (const { step } of this.#unwritten.take()) step?.reject(new ClosedError('This run'))
    this.#unwritten.throwIfFailed()
  }

  /**
   * Writes everything that is waiting. The outcome is reported to the steps it belongs to, and to whoever waits for
   * this write.
   */
  #write(): Flight {
    const notes = this.#unwritten.take()
    const previous = this.#unwritten.flights.at(-1)
    const flight = this.#unwritten.takeOff()
    const landed = () => this.#unwritten.landed(flight)
    this.#send(notes, flight, previous, landed, (error) => void this.#refused.recover(error, notes, flight, previous))
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
}
