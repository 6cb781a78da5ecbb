import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { State } from '../../../log/entry/ops.js'
import type { Claim } from '../../../log/write/claim.js'
import type { Updated } from '../../../log/write/update.js'

/** Called with each entry of ours that is acknowledged. */
export type OnRecorded = (draft: Draft, updated: Updated, before: State) => void

/** What a run writes with: a claim, or a stand-in for one. */
export type RunClaim = Pick<Claim, 'post' | 'update' | 'conclude' | 'transact'> & {
  readonly log: { readonly fold: Fold }
  /** False when nothing is kept: what needs a durable record is refused then. */
  readonly isDurable?: boolean
}
