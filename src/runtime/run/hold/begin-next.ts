import { set } from '../../../log/entry/ops.js'
import type { ParentRef } from '../../child/child-records.js'
import { isStillAwaited } from '../../child/run-errands.js'
import { CancelledError } from '../../errors.js'
import { settleLeft } from '../../step/record/kept-results.js'
import { beginRun, completeRun, migrateRun } from './begin.js'
import type { HeldThread } from './held-thread.js'
import type { InputRecord, RunState } from '../state/run-state.js'
import { StoppedError } from '../request/stop-in-time.js'

/** Why a run could not begin. */
interface Failure {
  readonly error: unknown
}

/** Nothing of the program runs before this: a process that dies now did not die because of it. */
export function enter(held: HeldThread): Promise<void> | undefined {
  return held.request.place.enterAtOnce() ? undefined : enterInTurn(held)
}

async function enterInTurn({ request, log, abort }: HeldThread): Promise<void> {
  const { place, environment } = request
  const note = async (alone: boolean) => {
    const { alone: before = 0 } = log.state
    log.add({ kind: 'resume', ops: [set('alone', alone ? before + 1 : Math.max(0, before - 1))] })
    await log.barrier()
  }
  try {
    const entered = await place.enter(environment.clock, abort.signal, note)
    if (!entered) throw new StoppedError()
  } catch (error) {
    // Nothing of a cancelled run starts anymore, so nothing can happen to the others in this process.
    if (!(error instanceof CancelledError)) throw error
  }
}

/** Cancels the next run if whoever awaited it does so no longer. */
export function dropForsaken(held: HeldThread): Promise<void> | undefined {
  const { acknowledged, durable } = held.log
  const [next] = acknowledged.inputs ?? []
  if (next?.parent === undefined || !durable || acknowledged.cancel?.run === next.id) return undefined
  return dropUnlessAwaited(held, next, next.parent)
}

async function dropUnlessAwaited({ request, log }: HeldThread, next: InputRecord, parent: ParentRef): Promise<void> {
  const { environment, key } = request
  if (await isStillAwaited(environment, key, parent)) return
  const cancel = { reason: 'nothing awaits it anymore', at: environment.clock.now(), run: next.id }
  await log.decide(({ state }) =>
    (state as RunState).inputs?.[0]?.id === next.id ? { kind: 'cancel', ops: [set('cancel', cancel)] } : undefined,
  )
}

/** Takes the next input, migrates an old state. What can't be started stays as it is, for a fixed program. */
export function begin(held: HeldThread, isBegun: boolean): Failure | undefined | Promise<Failure | undefined> {
  const { log, request } = held
  const { plan } = request
  try {
    const migrated = migrateRun(plan, log.state)
    if (migrated) log.add(migrated)
    const completed = isBegun ? completeRun(plan, log.state) : undefined
    if (completed) log.add(completed)
    if (!isBegun && log.state.left !== undefined) return beginAfter(held, settleLeft(plan, log.state))
    if (!isBegun) take(held)
    held.noticeCancel()
    return undefined
  } catch (error) {
    return { error }
  }
}

async function beginAfter(held: HeldThread, settling: ReturnType<typeof settleLeft>): Promise<Failure | undefined> {
  try {
    const left = await settling
    if (left) held.log.add({ kind: 'step', ops: left.ops, data: { events: left.events } })
    take(held)
    held.noticeCancel()
    return undefined
  } catch (error) {
    return { error }
  }
}

function take({ log, request }: HeldThread): void {
  const { plan, environment } = request
  log.add(beginRun(plan, log.state, environment.clock.now(), log.fold.incarnation))
}
