import { describeGiven } from '../../../core/wording/choices.js'
import { InvalidOptionError, InvalidValueError } from '../../../core/errors.js'
import { type Op, remove, splice } from '../../../log/entry/ops.js'
import { findEnded } from './input-keys.js'
import type { InputFate } from '../state/outcome.js'
import { isUnfinished } from '../state/read-run-state.js'
import type { InputRecord, RunRecord, RunState } from '../state/run-state.js'

/** What to do with new input while questions are open: hand them back, keep the input for later, or drop the run. */
export type OnPaused = 'return' | 'queue' | 'cancel'

/** What identifies an input: its id, or the key that it was given. */
export interface InputName {
  readonly id: string
  readonly key?: string | undefined
}

/** A key that a caller gave to an input or a signal. */
export function checkKey(key: unknown): string | undefined {
  if (key === undefined) return undefined
  if (typeof key === 'string' && key !== '' && key.length <= 512 && key.isWellFormed()) return key
  throw new InvalidValueError(
    'key',
    `must be a string of 1 to 512 characters, not ${describeGiven(key)}`,
    'Pass an id of the request or message.',
  )
}

/** Refuses an initial state for a thread that already has one: what was said since would be lost, or contradicted. */
export function checkBegins({ run, inputs = [], later = [] }: RunState, { initial }: InputRecord): void {
  if (initial === undefined || (run === undefined && inputs.length + later.length === 0)) return
  throw new InvalidOptionError(
    'initial',
    'is for a thread that begins, and this one exists already',
    'Leave it out, or change the state from a node or a tool, or by a fork with { set }.',
  )
}

export function isInput(input: InputName, other: InputName): boolean {
  return other.id === input.id || (input.key !== undefined && other.key === input.key)
}

/** Whether an input is that of a run which is not over: by its key, or without keys by its content. */
export function isInputOf(input: InputRecord, run: RunRecord): boolean {
  if (input.id === run.id) return true
  if (input.key !== undefined || run.key !== undefined) return input.key === run.key
  return input.hash === run.inputHash
}

/** The input among those that wait. */
export function findQueued({ inputs }: RunState, input: InputName): InputRecord | undefined {
  return inputs?.find((other) => isInput(input, other))
}

/** One without a key that was given before with the same content, and never reported. */
export function findUnsaid({ inputs }: RunState, input: InputRecord): InputRecord | undefined {
  if (input.key !== undefined) return undefined
  return inputs?.find((other) => other.unsaid === true && other.key === undefined && other.hash === input.hash)
}

/** What a log says happened to an input. It says nothing about one without a key that was taken long ago. */
export function fateOf(state: RunState, input: InputName): InputFate {
  const { run, inputs = [], later = [], parked } = state
  if (run !== undefined && isInput(input, run)) return 'taken'
  if (input.key !== undefined && findEnded(state, input.key, '') !== undefined) return 'taken'
  const at = inputs.findIndex((other) => isInput(input, other))
  // A run that could not even begin is the one that was parked: the same input begins it again.
  if (at === 0 && parked && !isUnfinished(run)) return 'taken'
  return at < 0 && !later.some((other) => isInput(input, other)) ? 'refused' : 'queued'
}

/** Ops that make an input permanent that another request could still take back: somebody relies on it from here on. */
export function relyOn({ inputs }: RunState, input: InputName): readonly Op[] {
  const at = inputs?.findIndex((other) => isInput(input, other)) ?? -1
  return at >= 0 && inputs?.[at]?.unsaid ? [remove(['inputs', at, 'unsaid'])] : []
}

/**
 * Ops that settle what happens to an input whose turn did not come, in the entry after which its sender is told: it
 * stays in the queue for good, or is taken back as if it had never been given. One that others rely on by now stays.
 */
export function settleInput({ inputs }: RunState, id: string | undefined, keep: boolean): readonly Op[] {
  const at = id === undefined ? -1 : (inputs?.findIndex((input) => input.id === id && input.unsaid) ?? -1)
  if (at < 0) return []
  return keep ? [remove(['inputs', at, 'unsaid'])] : [splice('inputs', at, 1)]
}
