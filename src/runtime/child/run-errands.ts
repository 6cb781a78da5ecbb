import { isDeepStrictEqual } from 'node:util'
import { isHoldfastError } from '../../core/errors.js'
import { MAIN_BRANCH, type BranchId, type ThreadId } from '../../core/ids.js'
import { DUE, type LogKey } from '../../log/contract.js'
import type { Fold } from '../../log/entry/fold.js'
import type { Log } from '../../log/log.js'
import { remove, set } from '../../log/entry/ops.js'
import { CancelledError, recordError } from '../errors.js'
import type { ProgramPlan } from '../program/program.js'
import { cancelRun, existingLog } from '../run/cancel.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { isUnfinished, wakeTime } from '../run/state/read-run-state.js'
import type { RunState } from '../run/state/run-state.js'
import { readChildEnd } from './child-end.js'
import type { ChildEnd, Errand, ParentRef } from './child-records.js'
import { errandsOf } from './errands.js'

/**
 * Does what ended runs of a thread owe to others, and notes that in its log. Each part may be done twice without harm:
 * a process that dies before it is noted leaves it to the next.
 * @param plan of the thread; without it, what only the program can say is left to whoever has it.
 */
export async function runErrands(
  environment: RuntimeEnvironment,
  plan: ProgramPlan | undefined,
  log: Log,
): Promise<void> {
  await log.refresh()
  const done: Errand[] = []
  for (const errand of errandsOf(log.fold.state)) {
    const isDone =
      errand.do === 'tell'
        ? await tellParent(environment, plan, log, errand)
        : await cancelChild(environment, log, errand)
    if (isDone) done.push(errand)
  }
  if (done.length > 0) await noteDone(log, done)
}

async function noteDone(log: Log, done: readonly Errand[]): Promise<void> {
  await log.update((fold) => {
    const all = errandsOf(fold.state)
    const left = all.filter((errand) => !done.some((one) => isDeepStrictEqual(one, errand)))
    if (left.length === all.length) return undefined
    const state = fold.state as RunState
    // Somebody has more for the thread, or runs it.
    const isNeeded = fold.index.wakeAt === DUE || left.length > 0
    return [
      {
        kind: 'signal',
        ops: [left.length === 0 ? remove('errands') : set('errands', left)],
        ...(isNeeded ? {} : { index: { wakeAt: wakeTime(state) } }),
      },
    ]
  })
}

/** False if what is to be reported can only be read by the program. */
async function tellParent(
  { logs }: RuntimeEnvironment,
  plan: ProgramPlan | undefined,
  { key, fold }: Log,
  { parent, run, key: input }: Errand & { readonly do: 'tell' },
): Promise<boolean> {
  const which = { run, ...(input === undefined ? {} : { key: input }) }
  const end = await readChildEnd(logs, key, fold, which, plan)
  // It was resumed in the meantime, and tells when it ends again.
  if (end === undefined) return plan !== undefined || isUnderWay(fold.state as RunState, run)
  const log = await readable(logs.open(parentLog(key, parent)))
  if (log?.exists) await leaveEnd(log, parent, end)
  return true
}

/** Undefined for a parent that can't be read: it is told nothing, and must not keep others from this thread. */
async function readable(opening: Promise<Log>): Promise<Log | undefined> {
  try {
    return await opening
  } catch (error) {
    if (isHoldfastError(error, 'corrupt') || isHoldfastError(error, 'missing-key')) return undefined
    throw error
  }
}

function isUnderWay(state: RunState, run: string): boolean {
  return state.run?.id === run && state.run.status === 'running' && state.parked === undefined
}

/**
 * Whether a run that is about to begin is still awaited. A process that stood still for long may have started it after
 * its own thread was taken over and cancelled: nobody knew about it then, so nobody could cancel it.
 */
export async function isStillAwaited({ logs }: RuntimeEnvironment, key: LogKey, parent: ParentRef): Promise<boolean> {
  const log = await readable(logs.open(parentLog(key, parent)))
  // Damage up there is no reason to drop what was asked for.
  if (log === undefined) return true
  const { incarnation, state } = log.fold
  return incarnation === parent.incarnation && (state as RunState).children?.[parent.child] !== undefined
}

/** Leaves the outcome of a child with its parent, if that still awaits it. */
async function leaveEnd(log: Log, { incarnation, child: name }: ParentRef, end: ChildEnd): Promise<void> {
  await log.update((fold) => {
    const state = fold.state as RunState
    const child = state.children?.[name]
    if (fold.incarnation !== incarnation || child === undefined) return undefined
    if (end.takes <= Math.max(child.after ?? -1, child.ended?.takes ?? -1)) return undefined
    const { run } = state
    const waits = run?.waiting
    const isAwaited =
      run?.status === 'running' &&
      (waits === undefined || waits.some((wait) => wait.kind === 'child' && wait.child === name))
    return [
      {
        kind: 'signal',
        ops: [set(['children', name, 'ended'], end)],
        ...(isAwaited && !state.parked ? { index: { wakeAt: DUE } } : {}),
      },
    ]
  })
}

/**
 * A thread is about to be erased: whoever awaits it is told that there will be no result. Before it is gone, because
 * nobody could tell them afterwards.
 */
export async function tellOfErasure(environment: RuntimeEnvironment, key: LogKey): Promise<void> {
  const { logs } = environment
  const own = await logs.open(key)
  // What ended runs still owe is done first; what only their program could say is told as gone.
  if (errandsOf(own.fold.state).length > 0) await runErrands(environment, undefined, own)
  const { fold } = own
  const { run, inputs = [] } = fold.state as RunState
  const untold = errandsOf(fold.state).flatMap((errand) =>
    errand.do === 'tell' ? [{ parent: errand.parent, id: errand.run }] : [],
  )
  const error = recordError(new CancelledError('its thread was erased'))
  for (const { parent, id } of [...(isUnfinished(run) ? [run] : []), ...inputs, ...untold]) {
    if (parent === undefined) continue
    const log = await readable(logs.open(parentLog(key, parent)))
    const end: ChildEnd = { status: 'cancelled', run: id, takes: Number.MAX_SAFE_INTEGER, error }
    if (log?.exists) await leaveEnd(log, parent, end)
  }
}

async function cancelChild(
  environment: RuntimeEnvironment,
  { key: { tenant, thread: parent }, fold: { incarnation } }: Log,
  { thread, key: input, reason, by }: Errand & { readonly do: 'cancel' },
): Promise<true> {
  const log = await existingLog(environment, { tenant, thread: thread as ThreadId, branch: MAIN_BRANCH })
  if (log === undefined) return true
  const cancellation = { reason, by, key: input, parent: { thread: parent, incarnation } }
  await cancelRun(environment, log, cancellation, { store: environment.retention }, async () => undefined)
  // Those below it hear of it in the same way.
  if (errandsOf(log.fold.state).length > 0) await runErrands(environment, undefined, log)
  return true
}

function parentLog({ tenant }: LogKey, { thread, branch }: ParentRef): LogKey {
  return { tenant, thread: thread as ThreadId, branch: branch as BranchId }
}

/** Whether a thread that was picked up for what it owed has nothing else to do. */
export function isOnlyOwing({ index: { wakeAt } }: Fold, now: number): boolean {
  return wakeAt === null || wakeAt > now
}
