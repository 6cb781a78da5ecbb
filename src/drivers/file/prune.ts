import type { Expect, IndexFields, LogKey, StoredEntry } from '../../log/contract.js'
import { checkStandIn } from '../shared/checks.js'
import { removeBefore } from './records/chain.js'
import { findEntryRecord } from './entries.js'
import { copyIndex } from './records/head-row.js'
import { endsAt, findLogForWriting, writeRecord } from './records/logs.js'
import { describeEntries } from './records/record.js'
import { attempts, type FileStore } from './store.js'

/** Moves the base with a record, then removes what is before it. A crash in between leaves files nobody reads. */
export async function pruneLog(
  store: FileStore,
  key: LogKey,
  incarnation: string,
  seq: number,
  standIn?: StoredEntry,
): Promise<{ readonly removed: number } | 'conflict'> {
  checkStandIn(seq, standIn)
  const again = attempts('the log')
  for (;;) {
    const state = await findLogForWriting(store, key)
    const row = state?.newest.record.row
    if (state === undefined || row?.incarnation !== incarnation) return 'conflict'
    const oldSlots = [...state.slots]
    if (seq <= row.base.seq) return { removed: 0 }
    if (seq > row.seq) return 'conflict'
    const found = await findEntryRecord(store, state, seq)
    if (found !== undefined) {
      const entry = found.record.entries.find((line) => line.seq === seq)
      if (entry === undefined || (standIn ? entry.hash !== standIn.hash : entry.keyframe !== seq)) return 'conflict'
      const base = {
        ...{ seq, hash: entry.hash, slot: found.record.slot },
        ...(standIn ? { standIn: state.newest.record.next } : {}),
      }
      const held = standIn ? [standIn] : []
      const [line] = describeEntries(held)
      const change = { kind: 'prune' as const, row: { ...row, base }, ...(line ? { standIn: line } : {}) }
      if (await writeRecord(store, state, change, [], held)) {
        await removeBefore(store.disk, state.folder, oldSlots, base.slot)
        return { removed: seq - row.base.seq }
      }
    }
    await again()
  }
}

/** Replaces the index row by a record of its own. */
export async function reindexLog(store: FileStore, key: LogKey, expect: Expect, index: IndexFields): Promise<boolean> {
  const again = attempts('the log')
  for (;;) {
    const state = await findLogForWriting(store, key)
    if (state === undefined || !endsAt(state.newest.record.row, expect)) return false
    if (
      await writeRecord(store, state, { kind: 'index', row: { ...state.newest.record.row, index: copyIndex(index) } })
    )
      return true
    await again()
  }
}
