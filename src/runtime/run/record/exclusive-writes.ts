import { isHoldfastError } from '../../../core/errors.js'
import type { SqlSession } from '../../../log/contract.js'
import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { State } from '../../../log/entry/ops.js'
import type { Updated } from '../../../log/write/update.js'
import { isStoreFailure } from '../../errors.js'
import { applyOps, draftsOf, mergeAll } from './notes.js'
import type { OnRecorded, RunClaim } from './run-claim.js'
import type { Unwritten } from './unwritten.js'

type Decision = (fold: Fold) => Draft | undefined

/**
 * Writes that are decided on the newest state, or commit with the user's own SQL: one at a time, after everything in
 * progress, together with what is waiting.
 */
export class ExclusiveWrites {
  readonly #claim: RunClaim
  readonly #unwritten: Unwritten
  readonly #onRecorded: OnRecorded
  /** Writes what waits by itself. */
  readonly #write: () => Promise<void>
  #last: Promise<unknown> = Promise.resolve()
  #count = 0

  constructor(claim: RunClaim, unwritten: Unwritten, onRecorded: OnRecorded, write: () => Promise<void>) {
    this.#claim = claim
    this.#unwritten = unwritten
    this.#onRecorded = onRecorded
    this.#write = write
  }

  /** Whether one is in progress or waits for its turn. */
  get isBusy(): boolean {
    return this.#count > 0
  }

  /** Settles when the last of them has ended; others may have come since. */
  get last(): Promise<unknown> {
    return this.#last
  }

  decide(decide: Decision, release: boolean): Promise<Updated | undefined> {
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

  /** Resolves when everything noted so far is acknowledged. */
  async clear(): Promise<void> {
    const unwritten = this.#unwritten
    for (;;) {
      // Looked at right before the rest: what is being decided on holds entries that were noted before, and so does what
      // is in flight. Both may put them back, and then they still wait.
      while (this.#count > 0) await this.#last
      unwritten.check()
      if (unwritten.pending.some(({ along }) => along === undefined)) await this.#write()
      else if (unwritten.flights.length > 0) await unwritten.flights[0]?.over()
      else return
    }
  }

  /** Holds what is waiting. Put back if nothing was written. */
  #alone<Result>(write: (pending: Draft | undefined) => Promise<Result | undefined>): Promise<Result | undefined> {
    this.#count++
    const turn = this.#last.then(async () => {
      try {
        return await this.#writeWith(write)
      } catch (error) {
        if (!isRefusal(error) || !this.#unwritten.pending.some(({ step }) => step)) throw error
        // Of a record that waits, perhaps: that is told to its own step, and then it is known.
        await this.#write()
        return await this.#writeWith(write)
      }
    })
    const decided = () => {
      this.#count--
    }
    this.#last = turn.then(decided, decided)
    return turn
  }

  async #writeWith<Result>(write: (pending: Draft | undefined) => Promise<Result | undefined>) {
    const unwritten = this.#unwritten
    await unwritten.drain()
    unwritten.check()
    const notes = unwritten.take()
    const flight = unwritten.takeOff()
    try {
      const result = await write(mergeAll(draftsOf(notes)))
      if (result === undefined) unwritten.restore(notes)
      else for (const { step } of notes) step?.resolve()
      return result
    } catch (error) {
      // Values that can't be stored and SQL of the user's own that fails are the step's fault, not the log's.
      if (isStoreFailure(error)) unwritten.fail(error)
      unwritten.restore(notes)
      throw error
    } finally {
      unwritten.landed(flight)
    }
  }
}

/** The log can't hold a value. */
function isRefusal(error: unknown): boolean {
  return isHoldfastError(error, 'invalid-value') || isHoldfastError(error, 'too-large')
}
