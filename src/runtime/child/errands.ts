import { DUE } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import { push, type State } from '../../log/entry/ops.js'
import { applyOps } from '../run/record/notes.js'
import { isUnfinished } from '../run/state/read-run-state.js'
import type { RunState } from '../run/state/run-state.js'
import { type Errand, inputKeyOf } from './child-records.js'

/**
 * The process that ends a run also does what the run owes. After this long, others may assume that it died before doing
 * so: not immediately, or each end of a child would have all workers look at it.
 */
const ERRAND_MS = 10_000

/**
 * The entry that ends a run, or comes to rest, with what that run owes to other threads: whoever awaits it is told, and
 * what it awaits itself is cancelled when it is over. All of it is recorded with the end, and the thread stays due
 * until it is done: a process that dies in between loses none of it.
 */
export function withErrands<End extends Draft | undefined>(fold: Fold, end: End, now: number): End {
  const before = fold.state as RunState
  if (end === undefined || !mayOwe(before)) return end
  const added = owed(before, applyOps(fold.state, end) as RunState)
  const isOwing = added.length > 0 || (before.errands ?? []).length > 0
  if (!isOwing) return end
  const wakeAt = end.index?.wakeAt
  const isPutOff = wakeAt === undefined || wakeAt === DUE
  return {
    ...end,
    ...(added.length === 0 ? {} : { ops: [...(end.ops ?? []), push('errands', ...added)] }),
    ...(isPutOff ? {} : { index: { ...end.index, wakeAt: Math.min(wakeAt ?? Infinity, now + ERRAND_MS) } }),
  }
}

/** Nearly all threads have nothing to do with others, and pay nothing for it. */
function mayOwe({ run, children, errands, inputs }: RunState): boolean {
  return (
    run?.parent !== undefined ||
    children !== undefined ||
    errands !== undefined ||
    (inputs ?? []).some(({ parent }) => parent !== undefined)
  )
}

function owed(before: RunState, after: RunState): readonly Errand[] {
  const { run } = before
  const ended = after.run?.id === run?.id ? after.run : run
  const errands: Errand[] = []
  const isOver = run !== undefined && isUnfinished(run) && !isUnfinished(ended)
  const isStuck = run?.status === 'running' && (ended?.status === 'failed' || ended?.status === 'incompatible')
  const isParked = before.parked === undefined && after.parked !== undefined
  if (run?.parent && isUnfinished(run) && (isOver || isStuck || isParked)) errands.push(tell(run))
  // Its run could not even begin.
  const first = after.inputs?.[0]
  if (isParked && !isUnfinished(run) && first?.parent) errands.push(tell(first))
  if (isOver) {
    const { reason, by } = before.cancel ?? { reason: 'the run that awaited it is over', by: undefined }
    for (const [name, { thread, ended: end }] of Object.entries(before.children ?? {})) {
      if (end !== undefined) continue
      errands.push({ do: 'cancel', thread, key: inputKeyOf(name), reason, ...(by === undefined ? {} : { by }) })
    }
  }
  return errands
}

function tell({ parent, id, key }: Pick<NonNullable<RunState['run']>, 'parent' | 'id' | 'key'>): Errand {
  return { do: 'tell', parent: parent as NonNullable<typeof parent>, run: id, ...(key === undefined ? {} : { key }) }
}

/** What is left to do, given a log's state. */
export function errandsOf(state: State): readonly Errand[] {
  return (state as RunState).errands ?? []
}
