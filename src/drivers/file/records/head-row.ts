import type { Append, IndexFields, LeaseChange, StoredEntry } from '../../../log/contract.js'
import type { HeadRow, LeaseState } from './record.js'
import type { FileStore } from '../store.js'

/** The head row after an append whose record has this slot. `before` is null when it creates the log. */
export function rowAfter(store: FileStore, append: Append, before: HeadRow | null, slot: number): HeadRow {
  const { entries, incarnation, epoch, index, lease } = append
  const first = entries[0] as StoredEntry
  const last = entries.at(-1) as StoredEntry
  return {
    incarnation,
    seq: last.seq,
    hash: last.hash,
    epoch,
    base: before?.base ?? { seq: first.seq, hash: first.hash, slot },
    lease: leaseAfter(store, before?.lease ?? null, lease, slot),
    index: copyIndex(index),
    ...(before?.applied === undefined ? {} : { applied: before.applied }),
  }
}

// The owner's name stays after a release: a renewal under the same epoch brings the lease back.
function leaseAfter(
  { clock }: FileStore,
  before: LeaseState | null,
  change: LeaseChange,
  slot: number,
): LeaseState | null {
  if (change.kind === 'keep') return before
  const owner = change.kind === 'claim' ? change.owner : (before?.owner ?? '')
  const ms = change.kind === 'release' ? 0 : change.ms
  return { owner, bootId: clock.bootId, ends: clock.monotonic() + ms, ms, slot }
}

/** What is remembered must not change with the arrays and objects that callers keep using. */
export function copyIndex(index: IndexFields): IndexFields {
  return {
    ...index,
    tags: [...index.tags],
    metadata: { ...index.metadata },
    origin: index.origin && { ...index.origin },
  }
}
