import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { State } from '../../../log/entry/ops.js'
import type { Claim } from '../../../log/write/claim.js'
import type { Decide, Settle, Updated } from '../../../log/write/update.js'
import { InvalidOptionError } from '../../../core/errors.js'
import { applyOps } from './notes.js'

/** Called with each entry of ours that is acknowledged. */
export type OnRecorded = (draft: Draft, updated: Updated, before: State) => void

/** What a run writes with: a claim, or a stand-in for one. */
export type RunClaim = Pick<Claim, 'post' | 'update' | 'conclude' | 'transact'> & {
  readonly log: { readonly fold: Fold }
  /** False when nothing is kept: what needs a durable record is refused then. */
  readonly isDurable?: boolean
}

/** Stands in for a claim where nothing is kept: for one-shot calls that need no record, and for replays. */
export class Unrecorded implements RunClaim {
  readonly log: { fold: Fold }
  readonly isDurable: boolean

  /** `isDurable` lets a replay go through what only a kept record allows. */
  constructor(fold: Fold, isDurable = false) {
    this.log = { fold }
    this.isDurable = isDurable
  }

  post(decide: Decide, { resolve, reject }: Settle): void {
    let updated: Updated
    try {
      updated = this.#apply(decide)
    } catch (error) {
      return reject(error)
    }
    resolve(updated)
  }

  async update(decide: Decide): Promise<Updated> {
    return this.#apply(decide)
  }

  async conclude(decide: Decide): Promise<Updated> {
    return this.#apply(decide)
  }

  async transact(): Promise<never> {
    throw new InvalidOptionError('frequency', "is 'none', which keeps no record to commit with", "Use 'step'.")
  }

  #apply(decide: Decide): Updated {
    const { fold } = this.log
    const drafts = decide(fold) ?? []
    this.log.fold = { ...fold, state: drafts.reduce(applyOps, fold.state) }
    return { entries: [], fold: this.log.fold }
  }
}
