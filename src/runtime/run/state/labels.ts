import { InvalidOptionError } from '../../../core/errors.js'
import { LIMIT_LABEL, PRIORITY_LABEL } from '../../../log/contract.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { IndexPatch } from '../../../log/entry/index-state.js'
import { currentRun } from './read-run-state.js'
import type { RunState } from './run-state.js'

/** Labels by which workers and tools find the threads of a program. */
export { PROGRAM_LABEL as PROGRAM } from '../../../log/contract.js'
export const VERSION = 'holdfast.version'
/** What the program, or whoever opened the thread, said about how long it is kept. Absent: what the store says. */
export const RETENTION = 'holdfast.retention'
/** Set where that says which checkpoints are kept, so that sweeps find those threads. */
export const CAPPED = 'holdfast.capped'
/** Set where the program keeps its states in a thread of their own, `{ <label>: id }`: what erases the one erases both. */
export const COMPANION = 'holdfast.companion'
/** Set on the log of a schedule, which no program may run. */
export const SCHEDULE = 'holdfast.schedule'
/** On a thread that a run of another thread started: the id of that one, in its stored form. */
export const PARENT = 'holdfast.parent'
/** Set on a thread whose runs have started others: erasing it erases those too. */
export const CHILDREN = 'holdfast.children'
/** Set on a thread whose run failed while it has open questions. */
export const ASKS = 'holdfast.asks'

/** What decides when a thread that is due has its turn. */
export interface Turn {
  readonly priority?: number
  readonly limitKey?: string
}

const MOST_PRIORITY = 1000
const MAX_LIMIT_KEY = 200

export function checkTurn({ priority, limitKey }: Turn): void {
  if (priority !== undefined && !(Number.isInteger(priority) && Math.abs(priority) <= MOST_PRIORITY)) {
    throw new InvalidOptionError(
      'priority',
      `must be a whole number from -${MOST_PRIORITY} to ${MOST_PRIORITY}, not ${String(priority)}`,
      'Leave it out for 0; larger numbers come first.',
    )
  }
  if (limitKey === undefined) return
  const isText = typeof limitKey === 'string' && limitKey !== '' && limitKey.length <= MAX_LIMIT_KEY
  // Backends find it in the text of the labels, which ends there.
  if (isText && limitKey.isWellFormed() && !/[\]\p{Cc}]/u.test(limitKey)) return
  throw new InvalidOptionError(
    'limitKey',
    `must be 1 to ${MAX_LIMIT_KEY} characters without control characters and "]"`,
    'Pass an id, such as that of the customer or of the service that is called.',
  )
}

/** The turn that a thread has: what it awaits comes with it, or what is urgent would wait for what is not. */
export function turnOf({ metadata }: Fold['index']): Turn {
  const { [PRIORITY_LABEL]: priority, [LIMIT_LABEL]: limitKey } = metadata
  return {
    ...(typeof priority === 'number' ? { priority } : {}),
    ...(typeof limitKey === 'string' ? { limitKey } : {}),
  }
}

/**
 * The labels after input was left. While something of the thread is open the higher priority holds, since what is urgent
 * waits for what is before it; on a thread at rest the new input alone says.
 */
export function turnLabels({ state, index }: Fold, { priority = 0, limitKey }: Turn): IndexPatch['metadata'] {
  const { metadata } = index
  const isOpen = currentRun(state as RunState) !== undefined || ((state as RunState).later ?? []).length > 0
  const known = Number(metadata[PRIORITY_LABEL] ?? 0)
  const next = isOpen ? Math.max(known, priority) : priority
  const key = limitKey ?? (isOpen ? metadata[LIMIT_LABEL] : undefined)
  return {
    ...(next === known ? {} : { [PRIORITY_LABEL]: next === 0 ? null : next }),
    ...(key === metadata[LIMIT_LABEL] ? {} : { [LIMIT_LABEL]: key ?? null }),
  }
}
