import { isHoldfastError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { DUE, type LogKey } from '../../log/contract.js'
import type { Log } from '../../log/log.js'
import { set, splice } from '../../log/entry/ops.js'
import { withErrands } from '../child/errands.js'
import type { ParentRef } from '../child/child-records.js'
import type { Settled } from '../step/record/kept-results.js'
import { claimThread } from './request/gap.js'
import { cancelLater, firstLater } from './input/later-input.js'
import type { RuntimeEnvironment } from './environment.js'
import { currentRun, isUnfinished } from './state/read-run-state.js'
import type { InputRecord, RunState } from './state/run-state.js'
import { endCancelled, type ExpiryOf, restRun } from './state/run-ops.js'

/** Which run to end, and why. */
export interface Cancellation {
  readonly reason: string
  readonly by?: string | undefined
  /** Only if it is this one. */
  readonly run?: string | undefined
  /** Only that of the input with this key, which may still wait for its turn. */
  readonly key?: string | undefined
  /** And only if it is awaited by this thread, in this life of it: a copy of a thread awaits nothing. */
  readonly parent?: Pick<ParentRef, 'thread' | 'incarnation'>
}

/**
 * Ends the run that is in progress or waiting, or drops input that was left for later. Its worker notices soon; one
 * that nobody holds ends here. False if there was none to end.
 */
export async function cancelRun(
  environment: RuntimeEnvironment,
  log: Log,
  { reason, by, run: only, key, parent }: Cancellation,
  expiry: ExpiryOf,
  settle: (state: RunState) => Promise<Settled | undefined>,
): Promise<boolean> {
  const { clock, owner, observer } = environment
  let isQueued = false
  const { entries } = await log.update((fold) => {
    const state = fold.state as RunState
    const { inputs = [] } = state
    const isOf = (one: Pick<InputRecord, 'key' | 'parent'> | undefined) =>
      one?.key === key && one?.parent?.thread === parent?.thread && one?.parent?.incarnation === parent?.incarnation
    const at = key === undefined ? -1 : inputs.findIndex(isOf)
    // Behind another run, or first behind one that is recorded: nobody has started it, and it is simply taken back.
    isQueued = at > 0 || (at === 0 && isUnfinished(state.run))
    if (isQueued) return [{ kind: 'cancel', ops: [splice('inputs', at, 1)] }]
    const current = currentRun(state)
    const isIt = key === undefined || at === 0 || (state.run?.id === current && isOf(state.run))
    const run = only ?? current ?? firstLater(state)
    if (run === undefined || !isIt) return undefined
    const cancel = set('cancel', { reason, at: clock.now(), run, ...(by === undefined ? {} : { by }) })
    if (run === current) return [{ kind: 'cancel', ops: [cancel], index: { wakeAt: DUE } }]
    return cancelLater(fold, run, cancel)
  })
  if (entries.length === 0 || isQueued) return entries.length > 0
  environment.company.tell(nameLog(log.key))
  try {
    const claim = await claimThread(log, { owner, ms: 5000 })
    let ends = false
    const settled = await settle(log.fold.state as RunState)
    await claim.release((fold) => {
      const end = endCancelled(fold, restRun(fold.state as RunState), clock.now(), expiry, settled)
      ends = end !== undefined
      return end && [withErrands(fold, end, clock.now())]
    })
    if (ends) observer.count('holdfast.runs.cancelled')
  } catch (error) {
    // Held: its worker ends the run.
    if (!isHoldfastError(error, 'held') && !isHoldfastError(error, 'fenced')) throw error
  }
  return true
}

/** The log that a key names, as far as it is there. */
export async function existingLog(environment: RuntimeEnvironment, key: LogKey): Promise<Log | undefined> {
  const log = await environment.logs.open(key)
  return log.exists ? log : undefined
}
