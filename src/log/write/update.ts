import type { ChainBase } from '../../codec/header.js'
import type { Draft } from '../entry/draft.js'
import type { Fold } from '../entry/fold.js'
import type { IndexState } from '../entry/index-state.js'
import type { State } from '../entry/ops.js'

/** Computes the entries for the newest state, or nothing. Runs again on every conflict, so it must be pure. */
export type Decide = (fold: Fold) => readonly Draft[] | undefined

/** What an update appended; no entries if its function decided against it. */
export interface Updated {
  readonly entries: readonly { readonly id: string; readonly seq: number; readonly hash: string }[]
  /** The state after these entries. */
  readonly fold: Fold
}

/** On whose behalf an update is made. */
export type Writer =
  | { readonly kind: 'guest' }
  | { readonly kind: 'claim'; readonly owner: string; readonly ms: number; readonly force: boolean }
  | { readonly kind: 'owner'; readonly epoch: number; readonly ms: number; readonly release: boolean }
  | { readonly kind: 'fork'; readonly base: ChainBase; readonly state: State; readonly index: IndexState }

/** Who is told the outcome of an update. */
export interface Settle {
  readonly resolve: (result: Updated) => void
  readonly reject: (error: unknown) => void
}

export interface PendingUpdate extends Settle {
  readonly decide: Decide
  readonly writer: Writer
  readonly appendId: string
}

/** Claims, releases and forks change more than entries, so they are never batched with others. */
export function travelsAlone(writer: Writer): boolean {
  return writer.kind === 'claim' || writer.kind === 'fork' || (writer.kind === 'owner' && writer.release)
}
