import { HoldfastError, NotFoundError } from '../../core/errors.js'
import { DUE, type LogKey } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import type { IndexPatch } from '../../log/entry/index-state.js'
import { type Op, push, remove, set } from '../../log/entry/ops.js'
import { withErrands } from '../child/errands.js'
import { closePauses } from '../pause/asking.js'
import { CancelledError, recordError } from '../errors.js'
import { retryFailed } from '../step/failed-steps.js'
import { checkFits } from '../upgrade/fitting.js'
import {
  checkBegins,
  fateOf,
  findQueued,
  findUnsaid,
  isInput,
  isInputOf,
  type OnPaused,
  relyOn,
  settleInput,
} from './given-input.js'
import { statusOf } from '../engine/tasks.js'
import { ownBranch } from '../history/inherit.js'
import { type Ended, findEnded, noteEnded } from './input-keys.js'
import { keepResults, type Settled, showFold, whatIsOpen } from '../step/kept-results.js'
import { beginUnder, type Expiry, expiresWhenAtRest, retentionLabel, retentionLabels, staysOpen } from './expiry.js'
import { ASKS, COMPANION, PARENT, PROGRAM, RETENTION, VERSION } from './labels.js'
import { type Outcome, type Restart, readOutcome } from './outcome.js'
import type { ProgramPlan } from '../program/program.js'
import { arrive } from './later-input.js'
import { nextLater } from './wake-time.js'
import { bringContext, bringToQueued, type KeptContext } from './run-context.js'
import { turnLabels } from './turn.js'
import {
  type ForkRecord,
  type InputRecord,
  isUnfinished,
  type RunRecord,
  type RunState,
  signalsOf,
} from './run-state.js'

export interface Intent {
  readonly plan: ProgramPlan
  readonly input: InputRecord | undefined
  /** The input was put into the queue by this very request: it is never added again. */
  readonly isQueued: boolean
  readonly onPaused: OnPaused
  /** What the caller brings to the run that is resumed, or to its own input that waits without any. */
  readonly brought: KeptContext
  readonly restart: Restart
  /** What the first entry of a log says that begins beside a damaged one. */
  readonly begins?: ForkRecord | undefined
  readonly now: number
  /** How long the thread is kept. */
  readonly expiry: Expiry
  /** A run that was claimed this often without progress is parked: it seems to kill its workers. */
  readonly maxClaims?: number
  /** Steps are not always recorded before the next one starts. */
  readonly ahead: boolean
  /** The one run that is to be continued. */
  readonly only?: string | undefined
  /**
   * Calls the program although it is only waiting: its children are to be run here, and only it knows their programs.
   */
  readonly revisits?: boolean | undefined
}

/**
 * What a request means for a log as it is: nothing to do but to answer, or a claim with what is appended along with it.
 */
export type Situation =
  | { readonly do: 'answer'; readonly outcome: Outcome | Promise<Outcome> }
  | {
      readonly do: 'claim'
      readonly drafts: readonly Draft[]
      readonly target: string | undefined
      /** The claim itself ends the run that was waiting: nothing of that one continues. */
      readonly drops: boolean
      /** It may be what crashed its workers: to be run alone. */
      readonly isSuspect: boolean
    }
  /** To be claimed, written and let go: marked as poisoned, or with the input taken back. */
  | { readonly do: 'settle'; readonly drafts: readonly Draft[] }
  /** To be put into the queue of a run that waits, which need not be claimed for that. */
  | { readonly do: 'queue' }
  /** The input's run ended earlier; the log at that entry tells how. */
  | { readonly do: 'recall'; readonly ended: Ended }
  /** The input was queued and is no longer there: another process took it, to its end. The log since then tells how. */
  | { readonly do: 'search' }

/**
 * The rule of input identity: on an unfinished run, no input or the same input resumes it; another one is taken after
 * it. An input whose key was taken before is not taken twice.
 */
export function situate(log: LogKey, found: Fold, intent: Intent): Situation {
  const { plan, input, restart, now, onPaused } = intent
  const own = ownBranch(found, now)
  const { fold, ops: arriving } = arrive(own.fold, now, input)
  const owning = [...own.ops, ...arriving]
  const state = fold.state as RunState
  const { run } = state
  const unfinished = isUnfinished(run)
  // What was queued is another input than that of the run before it, whatever it says.
  const isOf = intent.isQueued ? isInput : isInputOf
  const isSame = input === undefined || (unfinished && isOf(input, run))
  const misfit = checkFits(log, fold, plan, restart)
  if (misfit) return answer(misfit)
  if (intent.only !== undefined && run?.id !== intent.only) return { do: 'search' }
  if (intent.only !== undefined && !unfinished) return asItIs()
  const ended = input?.key === undefined ? undefined : findEnded(state, input.key, log.branch)
  if (ended) return { do: 'recall', ended }
  const queued = input && (findQueued(state, input) ?? (intent.isQueued ? undefined : findUnsaid(state, input)))
  if (intent.isQueued && !isSame && queued === undefined) return { do: 'search' }
  if (input && !isSame && queued === undefined) checkBegins(state, input)
  if (!unfinished && input === undefined && (state.inputs ?? []).length === 0) {
    if (run === undefined) throw nothingToRun(log, nextLater(state))
    return asItIs()
  }
  // Another process ran what was queued here, and told nobody how it failed. That is an answer, not a reason to retry.
  if (intent.isQueued && isSame && isStuck(state)) return asItIs()
  const waits = unfinished && run.status === 'running' && isOnlyWaiting(fold, now) && !intent.revisits && !isOther(run)
  if (waits && isSame) return asItIs()
  // Another request put it there and stands by: it must not take back what this one speaks of.
  const isOthers = queued?.unsaid === 'waits' && queued.id !== input?.id
  if (waits && isOthers && onPaused !== 'cancel') return { do: 'queue' }
  if (waits && onPaused === 'return') {
    const back = settleInput(state, queued?.id, false)
    const settled = back.length > 0 ? back : bringToQueued(state, queued?.id, intent.brought)
    return settled.length === 0 ? asItIs() : { do: 'settle', drafts: [{ kind: 'input', ops: [...owning, ...settled] }] }
  }
  if (waits && onPaused === 'queue') {
    const isKnown = queued && !queued.unsaid && bringToQueued(state, queued.id, intent.brought).length === 0
    return isKnown ? asItIs() : { do: 'queue' }
  }
  const { claims = 0 } = state
  const verdict = judge(state, intent.maxClaims)
  if (verdict === 'guilty') return { do: 'settle', drafts: [owned(park(poisoned(claims), state))] }
  const cancelled = waits && onPaused === 'cancel'
  const ops: Op[] = [
    ...beginUnder(intent.expiry, fold),
    ...(intent.begins && fold.seq < 0 ? [set('fork', intent.begins)] : []),
    set('claims', claims + 1),
    ...(state.openSince === undefined ? [set('openSince', now)] : []),
    ...(intent.ahead && !state.ahead ? [set('ahead', true)] : []),
    ...(state.parked ? [remove('parked')] : []),
  ]
  // The claim itself is the entry before.
  if (cancelled) ops.push(...keepResults(state), ...cancelRun(state, 'new input was given', now, fold.seq + 2))
  else if (unfinished) ops.push(...resumeRun(state, run), ...(isSame ? bringContext(state, intent.brought) : []))
  const added = input !== undefined && !isSame && queued === undefined
  if (added) ops.push(push('inputs', { ...input, unsaid: true }))
  if (isOthers) ops.push(...relyOn(state, queued))
  const first = input === undefined && !unfinished ? state.inputs?.[0] : queued
  ops.push(...bringToQueued(state, first?.id, intent.brought))
  const target = input === undefined ? intent.only : isSame ? run?.id : (queued?.id ?? input.id)
  // What was said with input long done says nothing of this one.
  const turn = added ? turnLabels(fold, {}) : {}
  const resumed = unfinished && !cancelled ? [{ type: 'run', run: run.id, status: 'resumed' }] : []
  const draft: Draft = {
    kind: added ? 'input' : 'resume',
    ops,
    index: {
      status: statusNow(),
      wakeAt: DUE,
      ...staysOpen(fold.index),
      ...labels(fold, plan, intent.expiry, input, turn),
    },
    ...(resumed.length > 0 ? { data: { events: resumed } } : {}),
  }
  return {
    do: 'claim',
    drafts: [owned(draft)],
    target,
    drops: cancelled,
    isSuspect: verdict === 'suspect',
  }

  // What makes the log as it was looked at comes first: the rest is decided for that.
  function owned(draft: Draft): Draft {
    const whole = withErrands(fold, draft, now)
    return { ...whole, ops: [...owning, ...(whole.ops ?? [])] }
  }

  /** What another version did not come to, this one may. */
  function isOther({ passed, passedBy }: RunRecord): boolean {
    return passed !== undefined && passedBy !== plan.version
  }

  // Nothing is written, so the state is of the version that ran last; the program at hand is shown its own.
  function asItIs(): Situation {
    return answer(showFold(plan, fold).then((shown) => readOutcome(log, shown, restart)))
  }

  function answer(found: Outcome | Promise<Outcome>): Situation {
    if (input === undefined) return { do: 'answer', outcome: found }
    const fate = isSame ? 'taken' : fateOf(state, input)
    return { do: 'answer', outcome: Promise.resolve(found).then((outcome) => ({ ...outcome, input: fate })) }
  }

  function statusNow(): string {
    const goesOn = unfinished && !cancelled && plan.kind === 'graph'
    return goesOn ? statusOf(plan, state.tasks ?? []) : 'active'
  }
}

/**
 * Whether a thread crashes its workers. Company is no evidence: each thread of a process that died was there. A thread
 * that was claimed without progress as often as allowed but for one is a suspect, and guilty if it crashes a worker
 * while it runs alone. Not sooner: where processes are evicted all the time, running innocent threads alone delays all
 * others, which then make no progress either and become suspects in turn.
 */
function judge({ claims = 0, alone = 0 }: RunState, maxClaims: number | undefined): 'guilty' | 'suspect' | undefined {
  if (maxClaims === undefined) return undefined
  if (claims >= maxClaims && alone >= 1) return 'guilty'
  return claims >= Math.max(1, maxClaims - 1) ? 'suspect' : undefined
}

function poisoned(claims: number): HoldfastError {
  const message = `The thread was claimed ${claims} times without progress: it seems to crash its workers.`
  const remedy = 'Find out why its next step ends the process, then run the thread again.'
  return new HoldfastError('poisoned', message, { data: { claims }, remedy })
}

/** Leaves a thread alone until someone runs it, or more input comes: nothing of its run changes. */
export function park(cause: unknown, state: RunState): Draft {
  const { alone } = state
  const error = recordError(cause)
  return {
    kind: 'end',
    // Since when something was in progress stays: whoever runs it must still know how old the keys are.
    ops: [set('parked', error), set('claims', 0), ...(alone ? [set('alone', 0)] : [])],
    // Input that was left for later is a reason to try again, as it is when it is given then.
    index: { status: 'failed', wakeAt: nextLater(state) },
    data: { events: [{ type: 'parked', error }] },
  }
}

// Only when they change: drivers rewrite labels each time they are given.
export function labels(
  fold: Fold,
  plan: ProgramPlan,
  expiry: Expiry,
  input: InputRecord | undefined,
  turn: IndexPatch['metadata'] = {},
): Pick<IndexPatch, 'metadata'> {
  const { metadata } = fold.index
  const { name, version } = plan
  const asks = ASKS in metadata
  const kept = retentionLabel(expiry, fold, plan)
  const companion = plan.kind === 'flow' ? plan.companion : undefined
  const isNamed = metadata[PROGRAM] === name && metadata[VERSION] === version && metadata[COMPANION] === companion
  // What the thread is begun for: later input says nothing of where it belongs.
  const parent = fold.seq < 0 && input?.parent?.own ? input.parent.thread : undefined
  const isTurnKept = Object.keys(turn).length === 0
  if (!asks && isNamed && isTurnKept && metadata[RETENTION] === kept && parent === undefined) return {}
  return {
    metadata: {
      [PROGRAM]: name,
      [VERSION]: version,
      ...(metadata[COMPANION] === companion ? {} : { [COMPANION]: companion ?? null }),
      ...(asks ? { [ASKS]: null } : {}),
      ...(parent === undefined ? {} : { [PARENT]: parent }),
      ...retentionLabels(kept, metadata),
      ...turn,
    },
  }
}

/**
 * Ops that end a run at a person's request, in the entry with this seq. Its effects stay in the log, including those
 * whose outcome is unknown.
 */
function cancelRun(state: RunState, reason: string, now: number, seq: number): readonly Op[] {
  const error = recordError(new CancelledError(reason))
  return [
    set(['run', 'status'], 'cancelled'),
    set(['run', 'error'], error),
    remove(['run', 'waiting']),
    ...leaveRun(state, now),
    ...noteEnded(state, seq, 'cancelled'),
  ]
}

/** How long a thread of a program is kept, where its program is known. */
export interface ExpiryOf extends Expiry {
  readonly plan?: ProgramPlan | undefined
}

/**
 * The entry that ends a cancelled run; undefined when there is none to end. `settled` brings its results into the state;
 * without it, or when more was recorded since it was made, they are kept for the next run.
 */
export function endCancelled(
  fold: Fold,
  rest: readonly Op[],
  now: number,
  expiry: ExpiryOf,
  settled?: Settled | undefined,
): Draft | undefined {
  const state = fold.state as RunState
  const { run, cancel } = state
  if (!isUnfinished(run) || cancel?.run !== run.id) return undefined
  const waits = (state.inputs ?? []).length > 0
  const later = nextLater(state)
  const holds = settled !== undefined && settled.of === whatIsOpen(state)
  const results = holds ? settled.ops : keepResults(state)
  return {
    kind: 'end',
    ops: [...results, ...cancelRun(state, cancel.reason, now, fold.seq + 1), ...rest],
    index: {
      status: waits ? 'active' : 'failed',
      wakeAt: waits ? DUE : later,
      ...(waits || later !== null ? {} : expiresWhenAtRest(expiry, fold, expiry.plan, now)),
    },
    data: { events: [...(holds ? settled.events : []), { type: 'run', run: run.id, status: 'cancelled' }] },
  }
}

/** Ops that take away what only a run in progress needs. */
export function leaveRun(state: RunState, now: number): readonly Op[] {
  const gone = (['tasks', 'joins', 'steps', 'scopes', 'children', 'cancel'] as const).filter(
    (key) => state[key] !== undefined,
  )
  return [
    ...gone.map((key) => remove(key)),
    ...(['input', 'context', 'transient'] as const)
      .filter((key) => state.run?.[key] !== undefined)
      .map((key) => remove(['run', key])),
    ...closePauses(state, () => true, now),
  ]
}

function resumeRun(state: RunState, run: RunRecord): readonly Op[] {
  return [
    set(['run', 'takes'], run.takes + 1),
    ...(run.waiting === undefined ? [] : [remove(['run', 'waiting'])]),
    ...(run.status === 'running'
      ? []
      : [
          set(['run', 'status'], 'running'),
          remove(['run', 'error']),
          ...retryFailed(state, run),
          ...(run.retry ? [remove(['run', 'retry'])] : []),
          ...(run.doubt ? [remove(['run', 'doubt'])] : []),
        ]),
  ]
}

/** Ops that say that nothing of the thread is in progress. */
export function restRun({ claims, alone, openSince, ahead }: RunState): readonly Op[] {
  return [
    ...(claims ? [set('claims', 0)] : []),
    ...(alone ? [set('alone', 0)] : []),
    ...(openSince === undefined ? [] : [remove('openSince')]),
    ...(ahead ? [remove('ahead')] : []),
  ]
}

/** True while nothing could continue: all questions open, no sleep over, no signal come, and nobody cancelled. */
export function isOnlyWaiting(fold: Fold, now: number): boolean {
  const state = fold.state as RunState
  const { run } = state
  if (run?.waiting === undefined || state.cancel) return false
  const isPassed = ([id, what]: News) => run.passed?.[id] === what
  if (!newsOf(state, now).every(isPassed)) return false
  return !run.waiting.some((wait) =>
    wait.kind === 'child'
      ? state.children?.[wait.child]?.ended !== undefined
      : wait.kind === 'signal'
        ? signalsOf(state, wait.name).length > 0 || (wait.until !== undefined && wait.until <= now)
        : wait.until <= now,
  )
}

type News = [pause: string, what: 'answered' | 'expired']

/** Questions that there is something new to say about: which, and what. */
export function newsOf({ pauses = {} }: RunState, now: number): News[] {
  return Object.entries(pauses).flatMap(([id, { used, answer, expiresAt }]): News[] => {
    if (used) return []
    if (answer !== undefined) return [[id, 'answered']]
    return expiresAt !== undefined && expiresAt <= now ? [[id, 'expired']] : []
  })
}

/**
 * True when nothing continues by itself: all runs ended, or what is left waits for someone who has not come yet. Input
 * behind a run that can't continue waits with it.
 */
export function isAtRest(fold: Fold, now: number): boolean {
  const state = fold.state as RunState
  const { run, parked, inputs = [] } = state
  if (parked) return !isAskedFor(fold, now)
  if (run === undefined) return false
  if (run.status === 'running') return isOnlyWaiting(fold, now)
  // Somebody asked for another try, by new input, an answer or a cancellation: whoever looks for work will make it.
  if (isStuck(state)) return !isAskedFor(fold, now)
  const later = nextLater(state)
  return inputs.length === 0 && (later === null || later > now)
}

/** Whether somebody is to look at it now, and not only because it owes something to another thread. */
export function isAskedFor({ index: { wakeAt }, state }: Fold, now: number): boolean {
  if (wakeAt === null || wakeAt > now) return false
  return wakeAt === DUE || (state as RunState).errands === undefined
}

/** A run that ended and is not over: it continues when somebody resumes it. */
export function isStuck({ run }: RunState): boolean {
  return run?.status === 'failed' || run?.status === 'incompatible'
}

function nothingToRun(log: LogKey, later: number | null): NotFoundError {
  const { thread, branch } = log
  const why = later === null ? 'it has never been given input' : `its input is for ${new Date(later).toISOString()}`
  return new NotFoundError(
    `Thread ${thread} (${branch}) has nothing to run: ${why}.`,
    later === null ? 'Pass input, or check the thread id.' : 'Let a worker run it then, or pass its input and key now.',
    { thread, branch },
  )
}
