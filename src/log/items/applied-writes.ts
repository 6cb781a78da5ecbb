import { CorruptError, isHoldfastError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { carryWrites, itemDriver, newestPerItem } from './carried-writes.js'
import type { LogKey } from '../contract.js'
import type { Fold } from '../entry/fold.js'
import type { LogEnvironment } from '../log-environment.js'
import type { LogReader } from '../read/log-reader.js'
import { retry } from '../write/retry.js'
import type { CarriedWrite } from '../store-contract.js'

/** Writes of this many items are redone in one call. */
const PAGE = 256

/**
 * For backends that can't write items in the same atomic step as entries: applies what entries carry right after they
 * landed, and what a process that died in between left behind. Elsewhere there is nothing to do.
 */
export class AppliedWrites {
  readonly #environment: LogEnvironment
  readonly #log: LogKey
  readonly #reader: LogReader
  /** Up to here all that entries carry is known to be applied. */
  #upTo = -1

  constructor(environment: LogEnvironment, log: LogKey, reader: LogReader) {
    this.#environment = environment
    this.#log = log
    this.#reader = reader
  }

  /** After an append landed: what came before it first, then what it carries itself. */
  async apply(before: Fold, after: Fold, carried: readonly CarriedWrite[]): Promise<void> {
    if (this.isDone(after)) return
    await this.catchUp(before)
    if (carried.length === 0) return
    if (await this.#send(after.incarnation, carried, after.stored, false)) this.#upTo = after.stored
  }

  /** Redoes what entries up to this fold carry and nobody applied. `applied` is what the head said of it, if known. */
  async catchUp(fold: Fold, applied = -1): Promise<void> {
    this.#upTo = Math.max(this.#upTo, applied)
    if (this.isDone(fold)) return
    const head = await this.#environment.driver.head(this.#log)
    // A log that was erased in the meantime has nothing left to redo; whoever writes to it next finds out.
    if (head?.incarnation !== fold.incarnation) return
    this.#upTo = Math.max(this.#upTo, head.applied ?? -1)
    if (!this.isDone(fold)) await this.#redo(fold, Math.max(this.#upTo + 1, head.base.seq))
  }

  async #redo(fold: Fold, from: number): Promise<void> {
    let pending: CarriedWrite[] = []
    let seen = -1
    try {
      for await (const { header, body } of this.#reader.entries(from, fold.stored)) {
        seen = header.seq
        if (body.store === undefined) continue
        const { seq, at } = header
        const entry = { incarnation: fold.incarnation, seq, at }
        pending.push(...(await carryWrites(this.#environment, this.#log, entry, body.store)))
        if (pending.length < PAGE && seq < fold.stored) continue
        if (!(await this.#send(fold.incarnation, pending, seq, true))) return
        this.#upTo = seq
        pending = []
      }
    } catch (error) {
      if (!isHoldfastError(error, 'not-found')) throw error
    }
    if (seen === fold.stored) return
    // Pruned since by a process that redid them first; otherwise they are lost.
    const head = await this.#environment.driver.head(this.#log)
    if (head?.incarnation !== fold.incarnation || (head.applied ?? -1) >= fold.stored) return
    throw new CorruptError(
      `Entry ${seen + 1} of ${nameLog(this.#log)}, which carries writes to the store, is missing.`,
      {
        log: this.#log,
      },
    )
  }

  #send(incarnation: string, writes: readonly CarriedWrite[], upTo: number, redo: boolean): Promise<boolean> {
    const driver = itemDriver(this.#environment.driver)
    return retry(this.#environment, () =>
      driver.applyWrites(this.#log, incarnation, newestPerItem(writes), { upTo, redo }),
    )
  }

  /** Nothing is left to apply up to this fold. */
  isDone({ stored }: Fold): boolean {
    return stored <= this.#upTo || this.#environment.driver.capabilities.storeAtomic
  }
}
