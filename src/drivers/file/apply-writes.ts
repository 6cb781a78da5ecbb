import type { LogKey } from '../../log/contract.js'
import type { CarriedWrite } from '../../log/store-contract.js'
import { writeEach } from './batch.js'
import { applyWrite } from './items/item-writes.js'
import { findLogForWriting, writeRecord } from './records/logs.js'
import { attempts, type FileStore, logName } from './store.js'

const REMEDY = 'Apply the writes again: those that landed are skipped.'

/**
 * Applies the writes that entries of a log carry, and then notes that in the log, in a separate record. A crash in
 * between leaves them to be applied again, which changes nothing where they are already applied.
 */
export async function applyWrites(
  store: FileStore,
  log: LogKey,
  incarnation: string,
  writes: readonly CarriedWrite[],
  { upTo, redo }: { readonly upTo: number; readonly redo: boolean },
): Promise<boolean> {
  const state = await findLogForWriting(store, log)
  if (state?.newest.record.row.incarnation !== incarnation) return false
  // Two of the same item take turns in their order.
  await writeEach(writes, REMEDY, (write) => applyWrite(store, log.tenant, incarnation, write, redo))
  await store.writers.take(logName(log), () => recordApplied(store, log, incarnation, upTo))
  return true
}

async function recordApplied(store: FileStore, log: LogKey, incarnation: string, upTo: number): Promise<void> {
  const again = attempts('the log')
  for (;;) {
    const state = await findLogForWriting(store, log)
    // Erased since the writes were applied: there is nothing left to note it in.
    if (state?.newest.record.row.incarnation !== incarnation) return
    const { row } = state.newest.record
    if ((row.applied ?? -1) >= upTo) return
    if (await writeRecord(store, state, { kind: 'applied', row: { ...row, applied: upTo } })) return
    await again()
  }
}
