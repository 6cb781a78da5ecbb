import { notAChoice } from '../../core/wording/choices.js'
import type { Fold } from '../../log/entry/fold.js'
import { applyOp, type Op, remove, set } from '../../log/entry/ops.js'
import { closePauses } from '../pause/asking.js'
import { keysThere } from '../run/input/input-keys.js'
import type { ForkRecord, RunState, ScopeState, StepRecord } from '../run/state/run-state.js'

/** What a fork keeps of the run in progress: finished steps as they are, begun ones as begun elsewhere. */
export function inherit(
  fold: Fold,
  branch: string,
  now: number,
  options: { readonly effects?: ForkRecord['effects']; readonly reads?: ForkRecord['reads'] },
): readonly Op[] {
  const { effects = 'ask', reads = 'live' } = options
  if (!['ask', 'allow', 'deny'].includes(effects)) {
    throw notAChoice('effects', effects, ['ask', 'allow', 'deny'])
  }
  if (!['live', 'recorded'].includes(reads)) {
    throw notAChoice('reads', reads, ['live', 'recorded'])
  }
  return inheritOps(fold.state as RunState, { branch, seq: fold.seq, effects, reads }, now)
}

/**
 * Treats a branch that was created below the runtime, as by `hf.fork` or by going back to the last good checkpoint, as
 * if the runtime had created it. Otherwise an effect that was begun on the original would count as one of this branch,
 * under a key that nobody has seen.
 */
export function ownBranch(fold: Fold, now: number): { readonly fold: Fold; readonly ops: readonly Op[] } {
  const { origin } = fold
  const state = fold.state as RunState
  if (origin === null || (state.fork?.branch === origin.branch && state.fork.seq === origin.seq)) {
    return { fold, ops: [] }
  }
  const ops = inheritOps(state, { branch: origin.branch, seq: origin.seq, effects: 'ask', reads: 'live' }, now)
  return { fold: { ...fold, state: ops.reduce((after, op) => applyOp(after, op), fold.state) }, ops }
}

function inheritOps(state: RunState, record: ForkRecord, now: number): readonly Op[] {
  return [
    set('fork', record),
    ...(state.cancel ? [remove('cancel')] : []),
    // It is taken there when its time comes, and would be taken here once more by itself.
    ...(state.later ? [remove('later')] : []),
    ...(state.claims ? [set('claims', 0)] : []),
    ...(state.alone ? [set('alone', 0)] : []),
    // What was in progress there means nothing to this branch, whose keys are its own.
    ...(state.openSince === undefined ? [] : [remove('openSince')]),
    ...(state.ahead ? [remove('ahead')] : []),
    ...(state.gap ? [remove('gap')] : []),
    ...begunSteps(state, []),
    ...leaveFamily(state),
    // The outcome of an effect there, and whether it might run there, are not questions here: this branch asks its own.
    ...closePauses(state, ({ kind }) => kind === 'unknown-effect' || kind === 'permission', now),
    // What it waits for may change after an edit: the program has to say so itself.
    ...(state.run?.waiting ? [remove(['run', 'waiting'])] : []),
    ...keysThere(state, record.branch),
  ]
}

function begunSteps(scope: ScopeState, prefix: readonly string[]): readonly Op[] {
  const own = Object.entries(scope.steps ?? {})
    .filter(
      ([, { status, child }]) =>
        status === 'started' || status === 'retry' || (status === 'waiting' && child !== undefined),
    )
    .map(([id, record]) => {
      const inherited: StepRecord = { ...record, inherited: true }
      return set([...prefix, 'steps', id] as never, inherited)
    })
  const inner = Object.entries(scope.scopes ?? {}).flatMap(([id, sub]) => begunSteps(sub, [...prefix, 'scopes', id]))
  return [...own, ...inner]
}

/**
 * The children that are in progress are those of the other branch, and so is the parent: this one neither hears of them
 * nor tells it anything. What children had brought before the branches parted stays.
 */
function leaveFamily({ children = {}, errands, run, inputs = [] }: RunState): readonly Op[] {
  return [
    ...Object.entries(children)
      .filter(([, { ended }]) => ended === undefined)
      .map(([name]) => remove(['children', name])),
    ...(errands ? [remove('errands')] : []),
    ...(run?.parent ? [remove(['run', 'parent'])] : []),
    ...inputs.flatMap(({ parent }, i) => (parent ? [remove(['inputs', i, 'parent'])] : [])),
  ]
}
