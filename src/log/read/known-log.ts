import type { Append, AppendResult, Head, LogKey } from '../contract.js'
import { emptyFold, type Fold } from '../entry/fold.js'
import { AppliedWrites } from '../items/applied-writes.js'
import type { LogEnvironment } from '../log-environment.js'
import { heldError, originGone, outdatedError, retry } from '../write/retry.js'
import { catchUp, type Standing, standingOf, withoutLoss } from './catch-up.js'
import type { LogReader } from './log-reader.js'

/** What one handle knows of its log, and how it learns what others did to it. */
export class KnownLog {
  fold: Fold
  /** Undefined until a head of the log was read. */
  standing: Standing | undefined
  readonly applied: AppliedWrites
  /** Something may have landed that this handle does not know about. */
  mustRefresh = false
  /** Where the append leads that is on its way. */
  sending: Fold | undefined
  /**
   * The fold came from a cache. Only an append that lands proves that it was the newest; nothing else may follow from
   * it.
   */
  isUnconfirmed = false
  /** An unconfirmed fold was found to be an earlier state of the same log. */
  isBehind = false
  readonly #environment: LogEnvironment
  readonly #log: LogKey
  readonly #reader: LogReader

  constructor(environment: LogEnvironment, log: LogKey, reader: LogReader) {
    this.#environment = environment
    this.#log = log
    this.#reader = reader
    this.applied = new AppliedWrites(environment, log, reader)
    this.fold = emptyFold(environment.randomId())
  }

  /** Reads on from `known`. A head read before `known` was learned would look like a loss, so `known` comes first. */
  async refresh(known: Fold = this.fold, head?: Head): Promise<void> {
    if (this.isUnconfirmed) throw outdatedError(this.#log)
    const { driver, clock } = this.#environment
    const [newest] = await Promise.all([head ?? driver.head(this.#log), clock.sync()])
    const isOurs = newest !== undefined && this.#isOurs(known, newest)
    const fold = isOurs ? known : await catchUp(this.#environment, this.#log, this.#reader, known, newest)
    // In the meantime an append of ours may have landed: what a handle knows never goes back.
    if (this.fold === known || fold.seq > this.fold.seq) this.fold = fold
    if (newest) this.standing = standingOf(newest)
    this.mustRefresh = false
    await this.applied.catchUp(this.fold, newest?.applied)
  }

  /** Since `known`, nobody but this handle appended: what it wrote itself is not read back. */
  #isOurs(known: Fold, { incarnation, seq, hash }: Head): boolean {
    if (incarnation !== known.incarnation || seq < known.seq) return false
    // Appends that landed after the head was read prove that it was theirs.
    if (seq < this.fold.seq) return true
    return [this.fold, this.sending].some((fold) => fold?.seq === seq && fold.hash === hash)
  }

  /** An append of ours landed, and leads to this fold. */
  landed(fold: Fold, { lease }: Append): void {
    this.isUnconfirmed = false
    this.fold = fold
    // Whoever owns the log from here on was told what may be missing.
    if (lease.kind === 'claim' && this.standing) this.standing = withoutLoss(this.standing)
  }

  /** An append that built on `known` did not: another was first. Reads what is new, or says what is in the way. */
  async conflicted(
    known: Fold,
    append: Append,
    { status, head }: Exclude<AppendResult, { status: 'appended' }>,
  ): Promise<void> {
    if (status === 'held') {
      // It ends where we thought; otherwise the result would be a conflict.
      this.isUnconfirmed = false
      throw heldError(this.#log, head)
    }
    if (this.isUnconfirmed) {
      this.isBehind = head?.incarnation === known.incarnation && head.seq > known.seq
      throw outdatedError(this.#log)
    }
    this.#environment.observer.count('holdfast.conflicts')
    if (head === undefined && append.requires) throw originGone(this.#log, append)
    await retry(this.#environment, () => this.refresh(known, head))
  }
}
