import type { Value } from '../../../codec/value.js'
import { isHoldfastError } from '../../../core/errors.js'
import type { LogKey } from '../../../log/contract.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { Log } from '../../../log/log.js'
import { showFoldOrAsIs } from '../../step/record/kept-results.js'
import { putInput } from '../input/enqueue.js'
import { fateOf, findQueued, isInput } from '../input/given-input.js'
import type { Ended } from '../input/input-keys.js'
import { type BusyOutcome, type Outcome, outcomeBase, prunedOutcome, readOutcome } from '../state/outcome.js'
import type { Request } from './request.js'
import { isOnlyWaiting, isStuck, isUnfinished } from '../state/read-run-state.js'
import type { InputRecord, RunState } from '../state/run-state.js'
import type { Situation } from './situation.js'

const BUSY_POLL_MS = 100
const BUSY_TRY_MS = 1000

/** The answer if there is nothing to run. Undefined: the log has moved on, try again. */
export async function answerSettled(request: Request, log: Log, situation: Situation): Promise<Outcome | undefined> {
  switch (situation.do) {
    case 'answer':
      return situation.outcome
    case 'recall':
      return recall(request, log, situation.ended)
    case 'search':
      return search(request, log)
    case 'queue': {
      const isWaiting = (fold: Fold) => isOnlyWaiting(fold, request.environment.clock.now())
      const isQueued = await putInput(log, request, request.input as InputRecord, { isFit: isWaiting })
      return isQueued ? asItIs(request, log) : undefined
    }
    default:
      return asItIs(request, log)
  }
}

/** Another process runs this thread. Undefined: try again. */
export async function answerBusy(request: Request, log: Log): Promise<Outcome | undefined> {
  const { options, input, onPaused } = request
  const { busy = 'reject', signal } = options
  if (busy === 'reject') return busyOutcome(request, log)
  if (input !== undefined && request.queuedAt === undefined) {
    const stays = onPaused === 'queue' ? {} : { unsaid: 'waits' as const }
    await putInput(log, request, { ...input, ...stays }, { interrupt: busy === 'interrupt' })
    request.queuedAt = log.fold.seq
  }
  await untilLetGo(request, log, signal)
  if (input === undefined) return undefined
  const state = (await log.refresh()).state as RunState
  if (findQueued(state, input)) request.queuedAt = log.fold.seq
  const isOver = state.run?.status === 'cancelled' || isStuck(state)
  const isOurs = state.run !== undefined && isInput(input, state.run)
  return state.parked || (isOurs && isOver) ? asItIs(request, log) : undefined
}

/** Waits until whoever runs this thread has released it, or until it is worth trying again: it may have died. */
async function untilLetGo({ environment }: Request, log: Log, signal: AbortSignal | undefined): Promise<void> {
  const { clock } = environment
  const until = clock.monotonic() + BUSY_TRY_MS
  const follower = log.follow()
  try {
    do {
      await follower.rest(BUSY_POLL_MS, signal, Math.max(0, until - clock.monotonic()))
      await log.refresh()
    } while (isUnderWay(log.fold.state as RunState) && clock.monotonic() < until)
  } finally {
    follower.close()
  }
}

/** Somebody runs it now, or died in the middle of it. */
function isUnderWay({ run }: RunState): boolean {
  return run?.status === 'running' && run.waiting === undefined
}

export async function asItIs(request: Request, log: Log): Promise<Outcome> {
  const { key, restart, input } = request
  const outcome = readOutcome(key, await showFoldOrAsIs(request.plan, log.fold), restart)
  return input === undefined ? outcome : { ...outcome, input: fateOf(log.fold.state as RunState, input) }
}

/** How the run of a key ended, from the entry that ended it. */
async function recall(request: Request, log: Log, { seq, branch, ended }: Ended): Promise<Outcome> {
  const { environment, input, restart } = request
  const key: LogKey = { ...request.key, branch: branch as LogKey['branch'] }
  const gone = async () => prunedOutcome(request.key, await showFoldOrAsIs(request.plan, log.fold), ended, restart)
  if (seq === undefined) return gone()
  try {
    const fold = await environment.logs.unread(key).at(seq)
    // A branch that was erased and created again has a different history under the same numbers.
    if ((fold.state as RunState).run?.key !== input?.key) return gone()
    return { ...readOutcome(key, await showFoldOrAsIs(request.plan, fold), restart), input: 'taken' }
  } catch (error) {
    if (isHoldfastError(error, 'not-found')) return gone()
    throw error
  }
}

/** How the run of an input without a key ended that was queued here and run by another process. */
async function search(request: Request, log: Log): Promise<Outcome | undefined> {
  const { key, input, restart, options } = request
  const id = input?.id ?? options.only?.run
  try {
    const since = request.queuedAt ?? options.only?.since ?? 0
    for await (const { fold } of log.entries(since + 1, log.fold.seq)) {
      const { run } = fold.state as RunState
      if (run?.id !== id || isUnfinished(run)) continue
      return { ...readOutcome(key, await showFoldOrAsIs(request.plan, fold), restart), input: 'taken' }
    }
    if (options.only) return prunedOutcome(key, await showFoldOrAsIs(request.plan, log.fold), undefined, restart)
    // It never started, and is no longer there: it is given again.
    request.queuedAt = undefined
    return undefined
  } catch (error) {
    if (!isHoldfastError(error, 'not-found')) throw error
    return prunedOutcome(key, await showFoldOrAsIs(request.plan, log.fold), undefined, restart)
  }
}

async function busyOutcome(request: Request, log: Log): Promise<BusyOutcome<Readonly<Record<string, Value>>>> {
  const { key, restart, environment } = request
  const fold = await log.refresh()
  const lease = await environment.logs.lease(key)
  const input = request.input && fateOf(fold.state as RunState, request.input)
  // It is reported as queued from here on, and nobody takes it back.
  if (input === 'queued') await putInput(log, request, request.input as InputRecord)
  return {
    ...outcomeBase(key, await showFoldOrAsIs(request.plan, fold), restart),
    ...(input === undefined ? {} : { input }),
    status: 'busy',
    owner: lease?.owner ?? '',
    remainingMs: lease?.remainingMs ?? 0,
  }
}
