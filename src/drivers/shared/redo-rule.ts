import type { CarriedWrite } from '../../log/store-contract.js'

/** What an item remembers of those who wrote it. */
interface Remembered {
  /** The newest entry of this log that wrote the item; undefined if none did. */
  readonly seq: number | undefined
  /** When the item was last written or removed, and by whom. */
  readonly lastAt: number
  readonly lastBy: string | null
}

/**
 * Whether a write that an entry carries is left out: it is applied already, or, where it is redone after a crash, somebody
 * else has written the item since. Redis applies the same rule in scripts/apply-items.lua, in one step with the write.
 */
export function isPassed(
  found: Remembered | undefined,
  { seq, at }: CarriedWrite,
  incarnation: string,
  redo: boolean,
): boolean {
  if (found === undefined) return false
  if ((found.seq ?? -1) >= seq) return true
  return redo && found.lastBy !== incarnation && found.lastAt > at
}
