import { HoldfastError, NotFoundError } from '../../../core/errors.js'
import { DUE, type LogKey } from '../../../log/contract.js'
import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { IndexPatch } from '../../../log/entry/index-state.js'
import { type Op, push, remove, set } from '../../../log/entry/ops.js'
import { withErrands } from '../../child/errands.js'
import { checkFits } from '../../upgrade/fitting.js'
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
} from '../input/given-input.js'
import { statusOf } from '../../engine/tasks.js'
import { ownBranch } from '../../history/inherit.js'
import { type Ended, findEnded } from '../input/input-keys.js'
import { keepResults, showFold } from '../../step/record/kept-results.js'
import { beginUnder, type Expiry, retentionLabel, retentionLabels, staysOpen } from '../state/expiry.js'
import { ASKS, COMPANION, PARENT, PROGRAM, RETENTION, turnLabels, VERSION } from '../state/labels.js'
import { type Outcome, type Restart, readOutcome } from '../state/outcome.js'
import type { ProgramPlan } from '../../program/program.js'
import { arrive } from '../input/later-input.js'
import { isOnlyWaiting, isStuck, isUnfinished, nextLater } from '../state/read-run-state.js'
import { cancelRun, park, resumeRun } from '../state/run-ops.js'
import { bringContext, bringToQueued, type KeptContext } from './run-context.js'
import type { ForkRecord, InputRecord, RunRecord, RunState } from '../state/run-state.js'

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
  if (cancelled) ops.push(...keepResults(state), ...cancelRun(state, 'new input was given', now, fold.seq + 1))
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

  /** This version may reach what another one did not. */
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

function nothingToRun(log: LogKey, later: number | null): NotFoundError {
  const { thread, branch } = log
  const why = later === null ? 'it has never been given input' : `its input is for ${new Date(later).toISOString()}`
  return new NotFoundError(
    `Thread ${thread} (${branch}) has nothing to run: ${why}.`,
    later === null ? 'Pass input, or check the thread id.' : 'Let a worker run it then, or pass its input and key now.',
    { thread, branch },
  )
}
