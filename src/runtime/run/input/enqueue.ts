import type { RetentionPolicy } from '../../../core/retention.js'
import { IncompatibleError, InvalidOptionError, isHoldfastError } from '../../../core/errors.js'
import { nameLog } from '../../../core/log-name.js'
import { DUE, type LogKey } from '../../../log/contract.js'
import type { Fold } from '../../../log/entry/fold.js'
import { push, set } from '../../../log/entry/ops.js'
import type { Log } from '../../../log/log.js'
import type { ParentRef } from '../../child/child-records.js'
import type { ProgramPlan } from '../../program/program.js'
import { checkFits } from '../../upgrade/fitting.js'
import type { RuntimeEnvironment } from '../environment.js'
import { beginUnder, staysOpen } from '../state/expiry.js'
import { checkBegins, fateOf, findQueued, isInput, relyOn } from './given-input.js'
import { findEnded } from './input-keys.js'
import { readRunAt } from './later-input.js'
import { againIfExpired, onLog } from '../request/on-log.js'
import { Request } from '../request/request.js'
import { bringToQueued, refuseTransient } from '../request/run-context.js'
import { checkChoices, type Enqueued, type EnqueueOptions } from '../request/run-options.js'
import { currentRun, isOnlyWaiting, isUnfinished } from '../state/read-run-state.js'
import type { InputRecord, LaterInput, RunState } from '../state/run-state.js'
import { labels } from '../request/situation.js'
import { checkTurn, type Turn, turnLabels } from '../state/labels.js'

/** Leaves input for whoever runs the thread next, usually a worker. Nothing runs here. */
export async function enqueueInput(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
  input: unknown,
  options: EnqueueOptions & {
    readonly retention?: RetentionPolicy
    /** There was no such thread a moment ago: it need not be read. */
    readonly isNew?: boolean
    /** Who awaits its run. */
    readonly parent?: ParentRef
  },
): Promise<Enqueued> {
  const { busy = 'queue', runAt: asked, isNew = false, priority, limitKey, ...rest } = options
  const turn = { ...(priority === undefined ? {} : { priority }), ...(limitKey === undefined ? {} : { limitKey }) }
  checkTurn(turn)
  const runAt = readRunAt(asked)
  if (runAt !== undefined && busy === 'interrupt') {
    throw new InvalidOptionError(
      'busy',
      "can't be 'interrupt' for input that is left for later",
      "Leave `runAt` out, or pass busy: 'queue'.",
    )
  }
  const drive = { ...rest, input, hasInput: true, emit: () => {} }
  checkChoices({ ...drive, busy })
  const request = new Request(environment, plan, key, drive)
  await request.read(false)
  refuseTransient(request.brought)
  let isUnread = isNew
  const open = (opening: { readonly atLeast: number }) => {
    const log = isUnread ? environment.logs.begin(key) : environment.logs.borrow(key, opening)
    isUnread = false
    return log
  }
  return againIfExpired(() => onLog(environment.logs, open, (log) => leaveOn(log, request, busy, { ...turn, runAt })))
}

async function leaveOn(
  log: Log,
  request: Request,
  busy: NonNullable<EnqueueOptions['busy']>,
  { runAt, ...turn }: Turn & { readonly runAt: number | undefined },
): Promise<Enqueued> {
  const { key, plan, restart } = request
  const input = request.input as InputRecord
  const misfit = checkFits(key, log.fold, plan, restart)
  if (misfit?.status === 'incompatible') {
    throw new IncompatibleError(misfit.reason, 'program', misfit.remedy, { thread: key.thread })
  }
  // Its own run is no reason to refuse it: a request that is sent again gets the outcome of the first.
  const isFree = ({ state }: Fold) =>
    fateOf(state as RunState, input) !== 'refused' || currentRun(state as RunState) === undefined
  const given = runAt === undefined ? input : { ...input, runAt }
  const isKnown = await putInput(log, request, given, {
    interrupt: busy === 'interrupt',
    turn,
    ...(busy === 'reject' ? { isFit: isFree } : {}),
  })
  const state = log.fold.state as RunState
  return {
    input: isKnown ? fateOf(state, input) : 'refused',
    run: isKnown ? await runOf(request, state, input) : undefined,
    ended: input.key !== undefined && findEnded(state, input.key, key.branch) !== undefined,
    checkpoint: log.checkpoint,
  }
}

/** The id of the run for an input: that of the first input with its key. */
async function runOf({ key, environment }: Request, state: RunState, input: InputRecord): Promise<string | undefined> {
  const { run: last, inputs = [], later = [] } = state
  const known = [last, ...inputs, ...later].find((other) => other !== undefined && isInput(input, other))
  if (known !== undefined) return known.id
  const ended = input.key === undefined ? undefined : findEnded(state, input.key, key.branch)
  if (ended?.seq === undefined) return undefined
  try {
    const fold = await environment.logs.unread({ ...key, branch: ended.branch as LogKey['branch'] }).at(ended.seq)
    const { run } = fold.state as RunState
    return run?.key === input.key ? run?.id : undefined
  } catch (error) {
    if (isHoldfastError(error, 'not-found')) return undefined
    throw error
  }
}

interface PutOptions {
  /** Also cancels the run that is in progress. */
  readonly interrupt?: boolean
  readonly isFit?: (fold: Fold) => boolean
  readonly turn?: Turn
}

/** False if the thread is no longer as it has to be; otherwise the input is known to the log from here on. */
export async function putInput(
  log: Log,
  { environment, key, plan, expiry }: Request,
  given: InputRecord | LaterInput,
  options: PutOptions = {},
): Promise<boolean> {
  const { interrupt = false, isFit = () => true, turn = {} } = options
  const { clock, company } = environment
  const { runAt = DUE, ...input } = given as InputRecord & Partial<LaterInput>
  let isKnown = false
  await log.update((fold) => {
    const isLater = runAt > clock.now()
    isKnown = isFit(fold)
    if (!isKnown) return undefined
    const state = fold.state as RunState
    const run = currentRun(state)
    const isThere = fateOf(state, input) !== 'refused'
    const isOurs = run === input.id || (input.key !== undefined && keyOf(state, run) === input.key)
    // A request that is sent again must not stop its own run.
    const stop = interrupt && run !== undefined && !isOurs
    if (!isThere) checkBegins(state, input)
    const queued = findQueued(state, input)
    const relied = [...relyOn(state, input), ...bringToQueued(state, queued?.id, input)]
    if (isThere && !stop && relied.length === 0) return undefined
    const cancel = { reason: 'interrupted by new input', at: clock.now(), run: run ?? '' }
    // Its turn comes when the waiting run is over: until then nobody needs to look.
    const isBehind = !stop && state.run?.status === 'running' && (isLater || isOnlyWaiting(fold, clock.now()))
    return [
      {
        kind: stop ? 'cancel' : 'input',
        ops: [
          ...beginUnder(expiry, fold),
          ...(isThere ? relied : [isLater ? push('later', given) : push('inputs', input)]),
          ...(stop ? [set('cancel', cancel)] : []),
        ],
        index: {
          ...(isBehind ? {} : { wakeAt: isLater ? Math.min(fold.index.wakeAt ?? runAt, runAt) : DUE }),
          ...staysOpen(fold.index),
          ...labels(fold, plan, expiry, input, isThere ? {} : turnLabels(fold, turn)),
          // A thread at rest has work again; one that waits for a person, or for a time, still does.
          ...(isUnfinished(state.run) || (isLater && state.run) ? {} : { status: 'active' }),
        },
      },
    ]
  })
  if (interrupt) company.tell(nameLog(key))
  return isKnown
}

/** The key of the input that a run was given. */
function keyOf({ run, inputs }: RunState, id: string | undefined): string | undefined {
  return run?.id === id ? run?.key : inputs?.find((input) => input.id === id)?.key
}
