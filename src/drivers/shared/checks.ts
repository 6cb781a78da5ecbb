import { HoldfastError } from '../../core/errors.js'
import type { Append, StoredEntry } from '../../log/contract.js'
import { nameLog } from '../../core/log-name.js'

/**
 * Refuses a batch that no correct caller sends, before anything of it is written: stored, it would leave a log with
 * gaps or an epoch that fences the wrong worker, and no later check could tell.
 */
export function checkBatch(batch: readonly Append[]): void {
  for (const append of batch) checkAppend(append)
  if (batch.length === 1) return
  const seen = new Map<string, Map<string, Set<string>>>()
  for (const append of batch) {
    const { tenant, thread, branch } = append.log
    let threads = seen.get(tenant)
    if (threads === undefined) seen.set(tenant, (threads = new Map()))
    let branches = threads.get(thread)
    if (branches === undefined) threads.set(thread, (branches = new Set()))
    if (branches.has(branch)) throw broken(append, 'is in this batch twice')
    branches.add(branch)
  }
}

function checkAppend(append: Append): void {
  const { expect, entries, lease } = append
  if (entries.length === 0) throw broken(append, 'has no entries')
  const first = expect === null ? (append.copied ? (entries[0]?.seq ?? 0) : 0) : expect.seq + 1
  let keyframe: number | undefined
  for (const [i, entry] of entries.entries()) {
    if (entry.seq !== first + i) throw broken(append, `has entry ${entry.seq} where ${first + i} must be`)
    if (!isKeyframeValid(entry, keyframe, expect === null, append.copied === true)) {
      throw broken(append, `has entry ${entry.seq} with keyframe ${entry.keyframe}, which is not the newest before it`)
    }
    keyframe = entry.keyframe
  }
  if (append.incarnation === '') throw broken(append, 'has no incarnation')
  if (expect !== null && append.incarnation !== expect.incarnation) {
    throw broken(append, `changes the incarnation from ${expect.incarnation} to ${append.incarnation}`)
  }
  const before = expect === null ? 0 : expect.epoch
  const after = lease.kind === 'claim' ? before + 1 : before
  if (append.copied) {
    if (lease.kind !== 'keep') throw broken(append, `is copied and would ${lease.kind} a lease`)
    if (append.epoch < before) throw broken(append, `goes back from epoch ${before} to ${append.epoch}`)
  } else if (append.epoch !== after) {
    throw broken(
      append,
      `goes from epoch ${before} to ${append.epoch} with "${lease.kind}", which must lead to ${after}`,
    )
  }
  if ((lease.kind === 'extend' || lease.kind === 'release') && append.epoch === 0) {
    throw broken(append, `would ${lease.kind} a lease, but was never claimed`)
  }
}

function isKeyframeValid(
  entry: StoredEntry,
  previous: number | undefined,
  creating: boolean,
  copied: boolean,
): boolean {
  if (entry.keyframe === entry.seq) return true
  // Where a keyframe was put at the base, those that were there name the one before it, and those that came later name it.
  if (copied && previous !== undefined) return entry.keyframe >= 0 && entry.keyframe < entry.seq
  if (previous !== undefined) return entry.keyframe === previous
  return !creating && entry.keyframe >= 0 && entry.keyframe < entry.seq
}

function broken(append: Append, problem: string): HoldfastError {
  return new HoldfastError('invalid-value', `The append to ${nameLog(append.log)} ${problem}.`, {
    data: { field: 'append', log: append.log, written: 'nothing' },
    remedy: 'This is a mistake in the calling code, not in the data; nothing was written.',
  })
}

/** Refuses a keyframe that could not stand where it is to stand. */
export function checkStandIn(seq: number, standIn: StoredEntry | undefined): void {
  if (standIn === undefined || (standIn.seq === seq && standIn.keyframe === seq)) return
  throw new TypeError(`Entry ${standIn.seq} with keyframe ${standIn.keyframe} can't stand in for entry ${seq}.`)
}
