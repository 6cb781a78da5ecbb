import type { Fold } from '../../../log/entry/fold.js'
import type { State } from '../../../log/entry/ops.js'
import { draftsOf, Flight, type Note, View } from './notes.js'

/** What a run has noted and the log has not acknowledged, and the state that includes it. */
export class Unwritten {
  /** Writes in progress, oldest first. */
  readonly flights: Flight[] = []
  /** What waits to be written, as one entry. */
  pending: Note[] = []
  /** How many steps have ended since the last write. */
  steps = 0
  readonly #log: { readonly fold: Fold }
  #view: View | undefined
  #failure: { readonly error: unknown } | undefined
  /** Written ahead of the program, and refused by the log: what came after it must not be written either. */
  #refused: { readonly error: unknown } | undefined

  constructor(log: { readonly fold: Fold }) {
    this.#log = log
  }

  get state(): State {
    return this.#view?.state ?? this.#log.fold.state
  }

  /** Whether there is nothing to wait for before an effect. */
  get isEmpty(): boolean {
    const isClear = this.pending.length === 0 && this.flights.length === 0
    return isClear && this.#failure === undefined && this.#refused === undefined
  }

  note(note: Note): void {
    this.check()
    this.#view ??= new View(this.#log.fold.state)
    this.#view.add(note.draft)
    this.pending.push(note)
  }

  /** Takes back what was noted under this name. */
  drop(name: string): void {
    this.pending = this.pending.filter(({ along }) => along !== name)
  }

  /** Takes what waits, to write it. */
  take(): readonly Note[] {
    const notes = this.pending
    this.pending = []
    this.steps = 0
    return notes
  }

  restore(notes: readonly Note[]): void {
    this.pending = [...notes, ...this.pending]
  }

  /** Begins a write. */
  takeOff(): Flight {
    const flight = new Flight()
    this.flights.push(flight)
    return flight
  }

  // Once everything is acknowledged, the log's own fold is the state, including guests' entries. What is noted in the
  // meantime is on top of it: an older view would lack what was just decided.
  landed(flight: Flight, failure?: { readonly error: unknown }): void {
    this.flights.splice(this.flights.indexOf(flight), 1)
    if (this.flights.length === 0) this.#lookAnew()
    flight.end(failure)
  }

  /** Resolves when no write is in progress. */
  async drain(): Promise<void> {
    while (this.flights.length > 0) await this.flights[0]?.over()
  }

  /** Makes every later write fail with this error. */
  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  /** The program is ahead of a record that the log refused. */
  refuse(error: unknown): void {
    this.#refused ??= { error }
  }

  check(): void {
    this.throwIfFailed()
    if (this.#refused) throw this.#refused.error
  }

  throwIfFailed(): void {
    if (this.#failure) throw this.#failure.error
  }

  #lookAnew(): void {
    this.#view = this.pending.length === 0 ? undefined : new View(this.#log.fold.state, draftsOf(this.pending))
  }
}
