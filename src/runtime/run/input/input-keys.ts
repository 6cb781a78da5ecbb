import { createHash } from 'node:crypto'
import { copy, type Op, remove, set } from '../../../log/entry/ops.js'
import type { KeyIndex, RunState } from '../state/run-state.js'

/** Where the run of a known key ended. */
export interface Ended {
  /** The entry that ended it; undefined where that was never known. */
  readonly seq: number | undefined
  /** The branch of that entry. */
  readonly branch: string
  /** Unknown for keys that were kept before this was. */
  readonly ended: 'completed' | 'cancelled' | undefined
}

/**
 * Where a key is in an index. The index is kept for as long as the thread lives and is part of its fold, whose objects
 * are copied whenever they change: spread over 256 buckets, adding a key copies few others.
 */
export function placeOf(key: string): readonly [bucket: string, name: string] {
  const hash = createHash('sha256').update(key).digest()
  return [hash.toString('hex', 0, 1), hash.toString('base64url', 1, 16)]
}

/**
 * Where the run of an input with this key ended; undefined if none has. Runs in progress and waiting inputs say so
 * themselves.
 */
export function findEnded({ keys, keysOf, taken }: RunState, key: string, branch: string): Ended | undefined {
  const own = entryOf(keys, key)
  if (own !== undefined) return { ...readEntry(own), branch }
  for (const [there, index] of Object.entries(keysOf ?? {})) {
    const found = entryOf(index, key)
    if (found !== undefined) return { ...readEntry(found), branch: there }
  }
  const old = taken?.find((one) => one.key === key && one.seq !== undefined)
  return old && { seq: old.seq, branch: old.branch ?? branch, ended: undefined }
}

/** Notes that the current run ends with the entry of this seq, so that its key is known from then on. */
export function noteEnded(state: RunState, seq: number, ended: 'completed' | 'cancelled'): readonly Op[] {
  const key = state.run?.key
  const place = key === undefined ? undefined : placeOf(key)
  return [
    ...carryOver(state),
    ...(place === undefined ? [] : [set(['keys', ...place], ended === 'completed' ? seq : [seq, ended])]),
  ]
}

/** Keys in the list that was kept at first: it held the last hundred, in a form that was copied as a whole each time. */
function carryOver({ taken, run }: RunState): readonly Op[] {
  if (taken === undefined) return []
  const keyed = taken.filter((one) => one.key !== undefined && one.run !== run?.id)
  return [
    ...keyed.map(({ key = '', seq, branch }) => {
      const path = branch === undefined ? (['keys'] as const) : (['keysOf', branch] as const)
      return set([...path, ...placeOf(key)], seq === undefined ? [] : [seq])
    }),
    remove('taken'),
  ]
}

/**
 * What a fork makes of the keys of the branch it comes from: where a run ended is a number on the branch it ended on.
 */
export function keysThere(state: RunState, branch: string): readonly Op[] {
  const { keys, keysOf, taken = [] } = state
  const there = taken.map((one) => (one.seq === undefined || one.branch ? one : { ...one, branch }))
  const listed = taken.length === 0 ? [] : [set('taken', there)]
  if (keys === undefined) return listed
  const known = keysOf !== undefined && Object.hasOwn(keysOf, branch) ? keysOf[branch] : undefined
  const moved =
    known === undefined
      ? copy(['keysOf', branch], ['keys'])
      : // A branch of that name was among its past before, and was erased since.
        set(['keysOf', branch], mergeIndexes(known, keys))
  return [...listed, moved, remove('keys')]
}

function mergeIndexes(first: KeyIndex, second: KeyIndex): KeyIndex {
  const merged: Record<string, KeyIndex[string]> = { ...first }
  for (const [bucket, entries] of Object.entries(second)) merged[bucket] = { ...merged[bucket], ...entries }
  return merged
}

function entryOf(index: KeyIndex | undefined, key: string): KeyIndex[string][string] | undefined {
  if (index === undefined) return undefined
  const [bucket, name] = placeOf(key)
  // Names are hashes: none of them is one that every object has.
  return index[bucket]?.[name]
}

function readEntry(entry: KeyIndex[string][string]): Pick<Ended, 'seq' | 'ended'> {
  if (typeof entry === 'number') return { seq: entry, ended: 'completed' }
  return { seq: entry[0], ended: entry[1] }
}
