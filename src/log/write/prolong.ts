import type { Draft } from '../entry/draft.js'
import type { Fold } from '../entry/fold.js'

/**
 * Use extends a life: what a guest appends to an expiring log postpones its expiry, by as long as the log had left when
 * its newest entry was written. An owner sets it itself when it is done.
 */
export function prolong(drafts: readonly Draft[] = [], known: Fold, at: number): readonly Draft[] {
  const last = drafts.at(-1)
  if (last === undefined || known.seq < 0 || known.index.expiresAt === null || at <= known.at) return drafts
  if (drafts.some((draft) => draft.index?.expiresAt !== undefined)) return drafts
  return [...drafts.slice(0, -1), { ...last, index: { ...last.index, expiresAt: expiryFrom(known, at) } }]
}

/** When what is made from a fold at this time expires: it has as long to live as that had. */
export function expiryFrom({ at, index }: Fold, now: number): number | null {
  return index.expiresAt === null ? null : now + Math.max(0, index.expiresAt - at)
}
