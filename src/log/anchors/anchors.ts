import { InvalidOptionError } from '../../core/errors.js'

/**
 * A statement of what the store held at a moment, recorded where someone who can change the store can't change it. It
 * holds no content: only names, numbers and hashes.
 */
export type Anchor =
  /** A branch ended with this entry. */
  | {
      readonly log: readonly [tenant: string, thread: string, branch: string]
      readonly incarnation: string
      readonly seq: number
      readonly hash: string
    }
  /** A thread was erased, or one of its branches. */
  | { readonly erased: readonly [tenant: string, thread: string, branch?: string] }
  /** An item of the store had this version, by its writer's clock; null: it was removed. */
  | {
      readonly item: readonly [tenant: string, space: string, key: string]
      readonly version: string | null
      readonly at: number
      /** When it expires, if it does. */
      readonly until?: number
    }

/** Where anchors are kept. Create one with `fileAnchors`, or from your own two functions over a bucket or a service. */
export interface Anchors {
  /** Adds these to what is kept. A later anchor for the same thing replaces an earlier one. */
  write(anchors: readonly Anchor[]): Promise<void>
  /** All that are kept, oldest first. Without it nothing is checked when a thread is opened. */
  read?(): Promise<Iterable<Anchor>>
  /** How long a write may wait to be batched with others, in milliseconds. Default 1,000. */
  readonly everyMs?: number
}

export function checkAnchors(given: unknown): void {
  const { write, read, everyMs = 0 } = (given ?? {}) as Partial<Record<keyof Anchors, unknown>>
  const fits =
    typeof write === 'function' &&
    (read === undefined || typeof read === 'function') &&
    typeof everyMs === 'number' &&
    everyMs >= 0 &&
    everyMs <= 86_400_000
  if (fits) return
  throw new InvalidOptionError(
    'anchors',
    'is not a place for anchors',
    "Pass fileAnchors('/elsewhere/anchors.jsonl'), or { write, read } of your own; everyMs is at most a day.",
  )
}

/** What an anchor is about: a newer one of the same takes its place. */
export function anchorName(anchor: Anchor): string {
  if ('log' in anchor) return JSON.stringify(['log', ...anchor.log])
  if ('item' in anchor) return JSON.stringify(['item', ...anchor.item])
  return JSON.stringify(['erased', ...anchor.erased])
}

/** True for exactly what is described above: a damaged file must not pass as one that says little. */
export function isAnchor(value: unknown): value is Anchor {
  if (typeof value !== 'object' || value === null) return false
  const { log, incarnation, seq, hash, erased, item, version, at, until } = value as Record<string, unknown>
  if (log !== undefined) {
    return (
      areTexts(log, 3, 3) &&
      typeof incarnation === 'string' &&
      Number.isSafeInteger(seq) &&
      typeof hash === 'string' &&
      /^[0-9a-f]{64}$/.test(hash)
    )
  }
  if (erased !== undefined) return areTexts(erased, 2, 3)
  if (until !== undefined && !Number.isFinite(until)) return false
  return areTexts(item, 3, 3) && (version === null || typeof version === 'string') && Number.isFinite(at)
}

function areTexts(value: unknown, least: number, most: number): boolean {
  return (
    Array.isArray(value) &&
    value.length >= least &&
    value.length <= most &&
    value.every((part) => typeof part === 'string')
  )
}
