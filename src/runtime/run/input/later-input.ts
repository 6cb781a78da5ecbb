import { InvalidOptionError } from '../../../core/errors.js'
import type { Fold } from '../../../log/entry/fold.js'
import { applyOp, type Op, push, splice } from '../../../log/entry/ops.js'
import type { Draft } from '../../../log/entry/draft.js'
import { DUE } from '../../../log/contract.js'
import { type InputName, isInput } from './given-input.js'
import { currentRun, nextLater, wakeTime } from '../state/read-run-state.js'
import type { InputRecord, LaterInput, RunState } from '../state/run-state.js'

/** The last moment that a Date can name. */
const MAX_TIME = 8.64e15

/** The time that input was left for, in milliseconds since 1970. */
export function readRunAt(runAt: unknown): number | undefined {
  if (runAt === undefined) return undefined
  const at = runAt instanceof Date ? runAt.getTime() : runAt
  if (typeof at === 'number' && Number.isFinite(at) && Math.abs(at) <= MAX_TIME) return Math.ceil(at)
  const given =
    runAt instanceof Date ? 'an invalid Date' : typeof runAt === 'string' ? JSON.stringify(runAt) : String(runAt)
  throw new InvalidOptionError(
    'runAt',
    `must be a Date or a time in milliseconds since 1970, not ${given}`,
    'Pass for example new Date(Date.now() + 60_000).',
  )
}

/**
 * The thread as it is when input whose time has come is in the queue with the rest, and the ops that put it there.
 * Input that somebody asks to run now is there as well: its time was for when nobody would ask.
 */
export function arrive(
  fold: Fold,
  now: number,
  wanted?: InputName | undefined,
): { readonly fold: Fold; readonly ops: readonly Op[] } {
  const { later = [] } = fold.state as RunState
  const isHere = (input: LaterInput) => input.runAt <= now || (wanted !== undefined && isInput(wanted, input))
  const here = later.filter(isHere).sort((a, b) => a.runAt - b.runAt)
  if (here.length === 0) return { fold, ops: [] }
  const taken = later.flatMap((input, at) => (isHere(input) ? [splice('later', at, 1)] : [])).reverse()
  const ops = [...taken, push('inputs', ...here.map(asInput))]
  return { fold: { ...fold, state: ops.reduce((after, op) => applyOp(after, op), fold.state) }, ops }
}

/** The run of the input that comes next, of those left for later. */
export function firstLater(state: RunState): string | undefined {
  return state.later?.find(({ runAt }) => runAt === nextLater(state))?.id
}

/**
 * Drops input that was left for later. On a thread at rest it is taken now and ends as cancelled, so that whoever waits
 * for it is told; behind an unfinished run it is taken back. Undefined if there is none with that id.
 */
export function cancelLater(fold: Fold, id: string, cancel: Op): readonly Draft[] | undefined {
  const state = fold.state as RunState
  const { later = [] } = state
  const at = later.findIndex((input) => input.id === id)
  const input = later[at]
  if (input === undefined) return undefined
  if (currentRun(state) === undefined) {
    const ops = [splice('later', at, 1), push('inputs', asInput(input)), cancel]
    return [{ kind: 'cancel', ops, index: { wakeAt: DUE } }]
  }
  const left = { ...state, later: later.filter((other) => other !== input) }
  // What the run waits for may come at the same time.
  const isMoved = fold.index.wakeAt === input.runAt
  return [{ kind: 'cancel', ops: [splice('later', at, 1)], ...(isMoved ? { index: { wakeAt: wakeTime(left) } } : {}) }]
}

function asInput(later: LaterInput): InputRecord {
  const { runAt: _, ...input } = later
  return input
}
