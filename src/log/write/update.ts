import type { ChainBase } from '../../codec/header.js'
import { ClaimRequiredError, FencedError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Append, LeaseChange, LogKey } from '../contract.js'
import type { Draft } from '../entry/draft.js'
import type { Fold } from '../entry/fold.js'
import type { IndexState } from '../entry/index-state.js'
import type { State } from '../entry/ops.js'
import type { CarriedWrite } from '../store-contract.js'

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

/** What updates decided, together. */
export interface Planned {
  /** Undefined when nobody wants to append anything. */
  readonly append?: Append
  readonly fold: Fold
  /** Writes to the store, for drivers that don't take them with the append. */
  readonly carried: readonly CarriedWrite[]
  readonly members: readonly {
    readonly update: PendingUpdate
    readonly entries: Updated['entries']
    readonly after: Fold
  }[]
}

/** Claims, releases and forks change more than entries, so they are never batched with others. */
export function travelsAlone(writer: Writer): boolean {
  return writer.kind === 'claim' || writer.kind === 'fork' || (writer.kind === 'owner' && writer.release)
}

/** What others than its owner may append to a claimed log. */
const GUEST_KINDS = new Set(['input', 'answer', 'cancel', 'signal', 'tag', 'adopt', 'retain', 'schedule'])

/** Refuses an owner that another took over from. */
export function checkEpoch(log: LogKey, { epoch }: Fold, writer: Writer): void {
  if (writer.kind === 'owner' && epoch !== writer.epoch) {
    throw new FencedError({ log: nameLog(log), epoch: writer.epoch, current: epoch })
  }
}

/** Refuses what needs a claim and has none. */
export function checkKind(log: LogKey, { epoch }: Fold, writer: Writer, draft: Draft): void {
  if (writer.kind !== 'guest' || epoch === 0 || GUEST_KINDS.has(draft.kind)) return
  throw new ClaimRequiredError(nameLog(log), draft.kind)
}

/** What an append of these does to the lease. */
export function leaseChange(updates: readonly PendingUpdate[]): LeaseChange {
  for (const { writer } of updates) {
    if (writer.kind === 'claim') return writer
    if (writer.kind === 'owner') return writer.release ? { kind: 'release' } : { kind: 'extend', ms: writer.ms }
  }
  return { kind: 'keep' }
}
