import { parseBranchId, parseTenantId, parseThreadId, type ThreadIdInput, threadIdInput } from '../../core/ids.js'
import { DUE, type Head, type LogKey, PRIORITY_LABEL } from '../../log/contract.js'
import { PROGRAM } from '../run/state/labels.js'
import { programOfLabel } from '../schedule/schedule-state.js'
import type { Worked, WorkerEvent } from './worker-options.js'

/** A thread that is due, as it is handed to another engine. Plain JSON. */
export interface DueThread {
  readonly tenant: string
  readonly thread: ThreadIdInput
  readonly branch: string
  /** By name. */
  readonly program: string
  /** The priority its input was enqueued with; a higher number is more urgent. Default 0. */
  readonly priority: number
}

/** What an engine must keep of it. */
export type DueKey = Pick<DueThread, 'tenant' | 'thread' | 'branch'>

export function describeDue({ log, index }: Head): DueThread {
  const program = programOfLabel(String(index.metadata[PROGRAM] ?? ''))
  const priority = Number(index.metadata[PRIORITY_LABEL] ?? 0)
  return { tenant: log.tenant, thread: threadIdInput(log.thread), branch: log.branch, program, priority }
}

/** What comes back from another engine is not trusted to be what it was given. */
export function parseDue({ tenant, thread, branch }: DueKey): LogKey {
  return { tenant: parseTenantId(tenant), thread: parseThreadId(thread), branch: parseBranchId(branch) }
}

export function isDue({ index: { wakeAt } }: Head, now: number): boolean {
  return wakeAt !== null && (wakeAt === DUE || wakeAt <= now)
}

/** How a thread's work ended, according to its worker's events; undefined while it has not. */
export function workedOf(event: WorkerEvent): Worked | undefined {
  if (event.type === 'ended') return { status: 'ended', outcome: event.outcome }
  if (event.type === 'error') return { status: 'error', error: event.error }
  if (event.type === 'stopped') return { status: 'stopped' }
  if (event.type === 'scheduled') return { status: 'scheduled' }
  return undefined
}
