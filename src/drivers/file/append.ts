import type { Append, AppendResult, LogKey } from '../../log/contract.js'
import { createLog } from './create.js'
import { rowAfter } from './records/head-row.js'
import { announceClaim, forgetRenewal, headOf } from './records/lease.js'
import { endsAt, findLogForWriting, writeRecord } from './records/logs.js'
import { attempts, type FileStore, type LogState, logName } from './store.js'
import { findThreadOf, isListed } from './records/threads.js'

/**
 * Compare-and-append for one log. It compares with the newest record this process knows, and the exclusive link of the
 * one name after it fails if there is a newer one: then the log is read again and compared again.
 */
export async function appendToLog(store: FileStore, append: Append): Promise<AppendResult> {
  const { log, expect, lease } = append
  if (expect === null) return createLog(store, append)
  const again = attempts('the log')
  const mustLook = lease.kind === 'claim' || append.requires !== undefined
  for (let state = mustLook ? undefined : lastSeen(store, log); ; await again(), state = undefined) {
    if (state === undefined || !endsAt(state.newest.record.row, expect)) {
      state = await findLogForWriting(store, log)
      if (state === undefined) return { status: 'conflict', head: undefined }
      if (!endsAt(state.newest.record.row, expect)) return { status: 'conflict', head: await headOf(store, state) }
    }
    if (!(await isRequirementMet(store, append))) return { status: 'conflict', head: await headOf(store, state) }
    if (lease.kind === 'claim' && !lease.force && state.newest.record.row.lease !== null) {
      const outcome = await prepareClaim(store, state)
      if (outcome === 'again') continue
      if (outcome !== 'free') return outcome
    }
    const { record } = state.newest
    const row = rowAfter(store, append, record.row, record.next)
    if (await writeRecord(store, state, { kind: 'append', row }, append.entries)) {
      if (lease.kind === 'claim') await forgetRenewal(store, state.folder, expect.epoch)
      return { status: 'appended' }
    }
  }
}

// Good enough to try with: a record that came since makes the link fail.
function lastSeen(store: FileStore, log: LogKey): LogState | undefined {
  const state = store.logs.get(logName(log))
  return state?.newest.record.kind === 'seal' ? undefined : state
}

async function prepareClaim(store: FileStore, state: LogState): Promise<'free' | 'again' | AppendResult> {
  const before = await headOf(store, state)
  if (before.lease !== null) return { status: 'held', head: before }
  if (!(await announceClaim(store, state))) return 'again'
  const after = await headOf(store, state)
  return after.lease === null ? 'free' : { status: 'held', head: after }
}

async function isRequirementMet(store: FileStore, { log, requires }: Append): Promise<boolean> {
  if (requires === undefined) return true
  const thread = await findThreadOf(store, log.tenant, log.thread)
  return isListed(thread, requires)
}
