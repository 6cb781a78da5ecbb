import type { Fold, Log } from '../../../log/index.js'
import { headId, type SaverState, stateOf } from './state.js'

/** The kinds of entries that bring a checkpoint. */
const PUTS: ReadonlySet<string> = new Set(['checkpoint', 'fork'])

/** One checkpoint of a branch, with the fold at its last entry: all that was written for it in time is in there. */
export interface Found {
  readonly id: string
  readonly fold: Fold
}

/** Finds a checkpoint of a branch by its id, as the handle knows the branch. */
export async function findInBranch(log: Log, id: string): Promise<Found | undefined> {
  const { checkpoint, marks = [], ordered } = stateOf(log.fold)
  if (checkpoint === undefined) return undefined
  if (checkpoint.id === id) return { id, fold: log.fold }
  if (ordered !== false && (id > checkpoint.id || id < (marks[0]?.[0] ?? ''))) return undefined
  for await (const found of walkDown(log, lastSeqUpTo(log.fold, id))) {
    if (found.id === id) return found
    if (ordered !== false && found.id < id) return undefined
  }
  return undefined
}

/** The checkpoints of a branch below an id, newest first. */
export async function* walkBelow(log: Log, before?: string): AsyncGenerator<Found> {
  const head = headId(log.fold)
  if (head === undefined) return
  if (before === undefined) {
    // Without reading anything: the handle holds it.
    yield { id: head, fold: log.fold }
    yield* walkDown(log, log.fold.seq, head)
    return
  }
  const to = lastSeqUpTo(log.fold, before)
  for await (const found of walkDown(log, to)) if (found.id < before) yield found
}

/**
 * The checkpoints of a branch that were put up to an entry, newest first, except for `skip`. Reads from keyframe to
 * keyframe, one query each: every part of the log once, and no more than requested.
 */
export async function* walkDown(log: Log, upTo: number, skip?: string): AsyncGenerator<Found> {
  let to = upTo
  let last = skip
  while (to >= 0) {
    const entries = await log.tail(to)
    const first = entries[0]
    if (first === undefined) return
    const found: { id: string; fold: Fold }[] = []
    for (const { header, fold } of entries) {
      const id = headId(fold)
      const current = found.at(-1)
      if (id === undefined) continue
      if (current === undefined || PUTS.has(header.kind)) found.push({ id, fold })
      else current.fold = fold
    }
    for (const one of found.reverse()) {
      // Its writes may reach over several parts; the newest part has them all.
      if (one.id === last) continue
      last = one.id
      yield one
    }
    to = first.header.seq - 1
  }
}

/** The last entry that can belong to a checkpoint up to this id. */
function lastSeqUpTo(fold: Fold, id: string): number {
  const { marks = [], ordered } = stateOf(fold)
  if (ordered === false) return fold.seq
  const above = marks[firstMarkAbove(marks, id)]
  return above === undefined ? fold.seq : above[1] - 1
}

function firstMarkAbove(marks: NonNullable<SaverState['marks']>, id: string): number {
  let [low, high] = [0, marks.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((marks[middle]?.[0] as string) <= id) low = middle + 1
    else high = middle
  }
  return low
}
