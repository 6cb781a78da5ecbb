import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue, type Value } from '../../codec/value.js'
import { InvalidOptionError } from '../../core/errors.js'
import { type BranchId, parseBranchId } from '../../core/ids.js'
import type { OptionNames } from '../../core/wording/option-names.js'
import { parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { LogKey } from '../../log/contract.js'
import type { Fold } from '../../log/entry/fold.js'
import { applyOp, type Op, remove, set } from '../../log/entry/ops.js'
import { migrateRun } from '../run/hold/begin.js'
import type { ProgramPlan } from '../program/program.js'
import type { Update } from '../program/state/state-shape.js'
import { expiresWhenAtRest, staysOpen } from '../run/state/expiry.js'
import { openPauses } from '../run/state/read-run-state.js'
import type { ForkRecord, RunState } from '../run/state/run-state.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { checkFits } from '../upgrade/fitting.js'
import { inherit } from './inherit.js'
import { dropKept, settleLeft } from '../step/record/kept-results.js'

/** What is different on a new branch, and what effects may do there. */
export interface ForkOptions<State = Readonly<Record<string, unknown>>, Update = State> {
  /** The name of the new branch. Default: a random one. */
  readonly name?: string
  /** Replaces values of the state; no reducer is called. With the program, each must match the schema of its key. */
  readonly set?: Partial<State>
  /** Changes the state through its reducers. */
  readonly update?: Update
  /** What effects on the outside world may do on the fork. Default 'ask': a person decides about each. */
  readonly effects?: ForkRecord['effects']
  /** Whether steps that only read run again, or reuse their recorded results if there are any. Default 'live'. */
  readonly reads?: ForkRecord['reads']
}

export const FORK_OPTIONS: OptionNames<ForkOptions> = {
  name: true,
  set: true,
  update: true,
  effects: true,
  reads: true,
}

/** Creates a branch from a checkpoint, with changes. The branch it came from is not touched, now or later. */
export async function forkCheckpoint(
  environment: RuntimeEnvironment,
  key: LogKey,
  id: string,
  plan: ProgramPlan | undefined,
  options: ForkOptions,
): Promise<BranchId> {
  const from = { ...key, branch: parseCheckpointId(id).branch }
  const name =
    options.name === undefined
      ? (`fork-${environment.randomId().slice(0, 8)}` as BranchId)
      : parseBranchId(options.name)
  const fold = await environment.logs.unread(from).at(id)
  const ops = [
    ...(await changes(fold, plan, from, options)),
    ...inherit(fold, from.branch, environment.clock.now(), options),
  ]
  const { status } = fold.index
  const expiry = { store: environment.retention }
  // Nobody waits here for a run that was in progress on the original branch: a fork that is never run must not keep its
  // thread from expiring.
  const expires =
    openPauses(fold.state as RunState).length > 0
      ? staysOpen(fold.index)
      : expiresWhenAtRest(expiry, fold, plan, environment.clock.now())
  await environment.logs.fork(from, {
    branch: name,
    at: id,
    // Not due by itself: a worker that picked up the fork at once would run it before anyone has looked at it.
    draft: { ops, index: { status: status === 'active' ? 'forked' : status, wakeAt: null, ...expires } },
  })
  return name
}

async function changes(
  fold: Fold,
  plan: ProgramPlan | undefined,
  key: LogKey,
  { set: values, update }: ForkOptions,
): Promise<readonly Op[]> {
  if (values === undefined && update === undefined) return []
  const shape = plan?.kind === 'graph' ? plan.shape : undefined
  if (update !== undefined && shape === undefined) {
    throw new InvalidOptionError(
      'update',
      'needs a graph with its reducers',
      'Fork with `set`, or open the thread with its program.',
    )
  }
  if (plan?.kind === 'flow') {
    throw new InvalidOptionError('set', 'has no meaning for a flow, which keeps no state', 'Fork without changes.')
  }
  const misfit = plan && checkFits(key, fold, plan, { restarted: false })
  if (misfit?.status === 'incompatible')
    throw new InvalidOptionError('fork', `can't be made: ${misfit.reason}`, misfit.remedy)
  // The current keys and reducers are for the current version: an older state is migrated before they touch it.
  const ops: Op[] = plan === undefined ? [] : [...(migrateRun(plan, fold.state as RunState)?.ops ?? [])]
  const today = ops.reduce((state, op) => applyOp(state, op), fold.state)
  // What an ended run left behind comes before what is set here, and would otherwise come after it.
  if (plan) ops.push(...((await settleLeft(plan, today as RunState))?.ops ?? []))
  for (const [name, value] of Object.entries(values ?? {})) {
    if (!plan) ops.push(...dropKept(fold.state as RunState, name))
    const stored = (today as RunState).state?.[name]
    if (value !== undefined) await shape?.checkWhole(name, value, stored, `set.${name}`)
    const whole = value === undefined ? shape?.initial()[name] : (value as Value)
    ops.push(whole === undefined ? remove(['state', name]) : set(['state', name], whole))
  }
  if (shape && update !== undefined) {
    // Its own: reducers are handed what is frozen, and this is the caller's.
    const checked = copyValue(await shape.check(update, 'update'), DEFAULT_LIMITS) as Update
    const edited = ops.reduce((state, op) => applyOp(state, op), fold.state)
    ops.push(...shape.reduce((edited as RunState).state ?? {}, [{ update: checked }], ['state']).ops)
  }
  return ops
}
