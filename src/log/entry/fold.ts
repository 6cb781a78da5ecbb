import { NO_PARENT } from '../../codec/chain.js'
import type { Value } from '../../codec/value.js'
import { eachOwn } from '../../codec/wide-record.js'
import type { Origin } from '../contract.js'
import { applyIndexPatch, EMPTY_INDEX, type IndexPatch, type IndexState } from './index-state.js'
import { applyOp, type Op, type State, valueAt } from './ops.js'
import type { StoreWrite } from '../items/store-write.js'

/** Everything a log says at one of its entries. Immutable: later folds share what did not change. */
export interface Fold {
  /** -1 while the log does not exist. */
  readonly seq: number
  readonly hash: string
  readonly epoch: number
  readonly at: number
  readonly incarnation: string
  readonly state: State
  readonly index: IndexState
  readonly origin: Origin | null
  /** The seq of the newest entry that carries writes to the store, or -1: what must have been applied by now. */
  readonly stored: number
  /** The key of the newest entry, or null if it has none. After an entry with a key, none without one is accepted. */
  readonly key: string | null
  readonly weight: Weight
}

/** What decides when the next keyframe is due, in bytes of JSON. */
export interface Weight {
  /** Where the fold starts from, and how much that keyframe holds. */
  readonly keyframe: number
  readonly keyframeBytes: number
  /** Everything written since. */
  readonly deltaBytes: number
  /** An estimate of the whole fold, were it written now. */
  readonly liveBytes: number
}

/** The body of an entry. */
export interface EntryBody {
  readonly ops?: readonly Op[]
  readonly index?: IndexPatch
  /** What belongs to this entry alone and not to the state: who answered, which worker claimed, … */
  readonly data?: Value
  /** Writes to memory that outlives the thread, applied with this entry or redone from it. */
  readonly store?: readonly StoreWrite[]
  /** The whole fold after this entry: present exactly in keyframes, but for the first entry of a new log. */
  readonly fold?: {
    readonly state: State
    readonly index: IndexState
    readonly origin?: Origin
    readonly stored?: number
  }
}

/** Facts of an entry's header that folding needs. */
export interface EntryFacts {
  readonly seq: number
  readonly hash: string
  readonly epoch: number
  readonly at: number
  readonly size: number
  readonly origin: Origin | null
  readonly key: string | null
}

export function emptyFold(incarnation: string): Fold {
  return {
    seq: -1,
    hash: NO_PARENT,
    epoch: 0,
    at: 0,
    incarnation,
    state: {},
    index: EMPTY_INDEX,
    origin: null,
    stored: -1,
    key: null,
    weight: { keyframe: 0, keyframeBytes: 0, deltaBytes: 0, liveBytes: 0 },
  }
}

/** Whether a value is in a blob, so that an entry holds only a pointer to it. */
export type IsBlob = (value: string | object) => boolean

/** What a body does to a fold: the state after it, and how many bytes of the old one it replaced. */
export interface Applied {
  readonly state: State
  readonly index: IndexState
  readonly stored: number
  readonly freed: number
}

export function applyBody(before: Fold, body: EntryBody, at: number, isBlob: IsBlob, owned?: Set<object>): Applied {
  let state = before.state
  let freed = 0
  for (const op of body.ops ?? []) {
    freed += bytesReplaced(state, op, isBlob)
    state = applyOp(state, op, owned)
  }
  const patched = applyIndexPatch(before.index, body.index)
  const index = before.seq === -1 ? { ...patched, createdAt: at } : patched
  return { state, index, stored: body.store === undefined ? before.stored : before.seq + 1, freed }
}

/** The fold after an entry, when what its body makes of the fold is known. */
export function advanceFold(before: Fold, applied: Applied, facts: EntryFacts, holdsWholeFold: boolean): Fold {
  const { seq, hash, epoch, at } = facts
  return {
    seq,
    hash,
    epoch,
    at,
    incarnation: before.incarnation,
    origin: facts.origin ?? before.origin,
    key: facts.key,
    state: applied.state,
    index: applied.index,
    stored: applied.stored,
    weight: addWeight(before.weight, facts, applied.freed, holdsWholeFold),
  }
}

/**
 * The fold after an entry that was read from the log. A keyframe brings its own state, whatever came before. With
 * `owned`, the fold before may be changed in place and must not be used anymore.
 */
export function foldEntry(before: Fold, body: EntryBody, facts: EntryFacts, isBlob: IsBlob, owned?: Set<object>): Fold {
  if (body.fold) {
    const { state, index, origin, stored = -1 } = body.fold
    return advanceFold(before, { state, index, stored, freed: 0 }, origin ? { ...facts, origin } : facts, true)
  }
  return advanceFold(before, applyBody(before, body, facts.at, isBlob, owned), facts, false)
}

function addWeight(before: Weight, { seq, size }: EntryFacts, freed: number, holdsWholeFold: boolean): Weight {
  // The first entry of a new log is a keyframe without a fold of its own: it starts from nothing.
  if (holdsWholeFold || seq === 0) return { keyframe: seq, keyframeBytes: size, deltaBytes: 0, liveBytes: size }
  return {
    keyframe: before.keyframe,
    keyframeBytes: before.keyframeBytes,
    deltaBytes: before.deltaBytes + size,
    liveBytes: Math.max(0, before.liveBytes + size - freed),
  }
}

function bytesReplaced(state: State, op: Op, isBlob: IsBlob): number {
  if (op[0] === 'push') return 0
  if (op[0] === 'copy' || op[0] === 'concat') {
    // The entry holds only a reference, but a keyframe would hold the value: the opposite of freeing.
    const added = valueAt(state, op[2])
    const old = op[0] === 'copy' ? valueAt(state, op[1]) : undefined
    return (
      (old === undefined ? 0 : estimateBytes(old, isBlob)) - (added === undefined ? 0 : estimateBytes(added, isBlob))
    )
  }
  const old = valueAt(state, op[1])
  if (old === undefined) return 0
  if (op[0] !== 'splice') return estimateBytes(old, isBlob)
  return Array.isArray(old) ? estimateBytes(old.slice(op[2], op[2] + op[3]), isBlob) : 0
}

/** Roughly how long the JSON of a value is, with pointers for what is in blobs. Walks it once. */
function estimateBytes(value: Value, isBlob: IsBlob): number {
  switch (typeof value) {
    case 'string':
      return isBlob(value) ? POINTER_BYTES : value.length + 2
    case 'number':
    case 'boolean':
      return 4
    case 'bigint':
      return 16
    default:
  }
  if (value === null) return 4
  if (value instanceof Date) return 26
  if (isBlob(value)) return POINTER_BYTES
  if (value instanceof Uint8Array) return Math.ceil(value.length / 3) * 4
  let bytes = 2
  if (Array.isArray(value)) {
    for (const item of value) bytes += estimateBytes(item, isBlob) + 1
    return bytes
  }
  eachOwn(value as State, (item, key) => {
    bytes += key.length + 4 + estimateBytes(item, isBlob)
  })
  return bytes
}

const POINTER_BYTES = 32
