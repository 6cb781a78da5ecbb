import { isStoreFailure } from '../../errors.js'
import { Flight, type Note, type Step } from './notes.js'
import type { Unwritten } from './unwritten.js'

/** Not written because of what came before it, which was refused. */
export class AfterRefused extends Error {}

/** Sends notes as one entry. */
type Send = (
  notes: readonly Note[],
  flight: Flight,
  previous: Flight | undefined,
  landed: () => void,
  failed: (error: unknown) => void,
) => void

/** Writes what can be written of notes that the log refused together, and tells the steps whose records it can't hold. */
export class RefusedWrites {
  readonly #unwritten: Unwritten
  /** The program is ahead of its records. */
  readonly #isAhead: boolean
  readonly #send: Send

  constructor(unwritten: Unwritten, isAhead: boolean, send: Send) {
    this.#unwritten = unwritten
    this.#isAhead = isAhead
    this.#send = send
  }

  async recover(error: unknown, notes: readonly Note[], flight: Flight, previous: Flight | undefined): Promise<void> {
    const isLater = error instanceof AfterRefused && !this.#isAhead
    try {
      await (isLater ? this.#writeAfter(notes, flight, previous) : this.#refuse(error, notes, flight))
      this.#unwritten.landed(flight)
    } catch (unmended) {
      this.#unwritten.landed(flight, { error: unmended })
    }
  }

  async #writeAfter(notes: readonly Note[], flight: Flight, previous: Flight | undefined): Promise<void> {
    await previous?.over()
    const unwritten = this.#unwritten
    const left = previous?.left.filter((note) => unwritten.pending.includes(note)) ?? []
    unwritten.pending = unwritten.pending.filter((note) => !left.includes(note))
    return this.#writeEach([...left, ...notes], flight)
  }

  // A value that can't be stored concerns the step that brought it, and no other that was to be written with it. But a
  // program that is ahead of its records has continued from there, and ends.
  async #refuse(error: unknown, notes: readonly Note[], flight: Flight): Promise<void> {
    if (isStoreFailure(error) || this.#isAhead) {
      if (!isStoreFailure(error) && !(error instanceof AfterRefused)) this.#unwritten.refuse(error)
      for (const { step } of notes) step?.reject(error)
      throw error
    }
    if (notes.filter(({ step }) => step).length > 1) return this.#writeEach(notes, flight)
    flight.left = notes.filter(({ step }) => step === undefined)
    this.#unwritten.restore(flight.left)
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
    this.#unwritten.restore(group)
  }

  #tell(step: Step, error: unknown): void {
    if (!step.waits) this.#unwritten.refuse(error)
    step.reject(error)
  }
}
