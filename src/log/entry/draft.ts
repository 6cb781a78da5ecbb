import { Whole } from '../../codec/value.js'
import { InvalidValueError } from '../../core/errors.js'
import { checkIndexPatch, checkRecord, type IndexPatch } from './index-state.js'
import { isOp, markWholes, type Op } from './ops.js'
import { isStoreWrite, type StoreWrite } from '../items/store-write.js'
import type { Fold } from './fold.js'

/** What a writer asks to append. */
export interface Draft {
  /** What kind of thing happened: `step`, `input`, `answer`, … Lower-case letters, digits and dashes. */
  readonly kind: string
  readonly ops?: readonly Op[]
  readonly index?: IndexPatch
  /** What belongs to this entry alone and not to the state. */
  readonly data?: unknown
  /** Writes to the store that happen together with this entry. */
  readonly store?: readonly StoreWrite[]
  /** Writes the whole state with this entry, so that nothing before it is needed to read on from here. */
  readonly keyframe?: boolean
}

const KIND = /^[a-z][a-z0-9-]{0,31}$/
const INDEX_FIELDS = new Set(['status', 'expiresAt', 'wakeAt', 'metadata', 'tags'])

/** Refuses a draft that could not be read back, with nothing written. */
export function checkDraft(draft: Draft, seq: number): void {
  if (typeof draft !== 'object' || draft === null || typeof draft.kind !== 'string' || !KIND.test(draft.kind)) {
    throw new InvalidValueError('kind', 'is not a kind of entry', 'Use 1 to 32 lower-case letters, digits and dashes.')
  }
  if (draft.ops !== undefined && !(Array.isArray(draft.ops) && draft.ops.every(isOp))) {
    throw new InvalidValueError(
      'ops',
      'holds something that is not an operation',
      'Make operations with set, remove, push and splice.',
    )
  }
  if (
    draft.store !== undefined &&
    !(Array.isArray(draft.store) && draft.store.length > 0 && draft.store.every(isStoreWrite))
  ) {
    throw new InvalidValueError(
      'store',
      'holds something that is not a write to the store',
      'Leave it out when there is nothing to write.',
    )
  }
  if (draft.index !== undefined) {
    checkRecord('index', draft.index)
    for (const field of Object.keys(draft.index)) {
      if (!INDEX_FIELDS.has(field)) {
        throw new InvalidValueError(
          `index.${field}`,
          'is not a field of the index',
          `Use ${[...INDEX_FIELDS].join(', ')}.`,
        )
      }
    }
    checkIndexPatch(draft.index, seq)
  }
}

/** The body of a delta as the encoder takes it: large values may leave as wholes. */
export function draftBody(draft: Draft): Record<string, unknown> {
  return {
    ops: draft.ops?.length ? draft.ops.map(markWholes) : undefined,
    index: draft.index,
    store: draft.store,
    data: draft.data === undefined ? undefined : new Whole(draft.data),
  }
}

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
