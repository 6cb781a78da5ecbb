import { AsyncLocalStorage } from 'node:async_hooks'
import { InvalidProgramError } from '../../core/errors.js'
import type { WaitOrder } from '../pause/wait-order.js'
import type { Run } from '../run/run.js'

/** A step whose work is running. */
export interface RunningStep {
  readonly run: Run
  readonly path: string
  /** The step that runs the thread of this one. */
  readonly outer: RunningStep | undefined
}

/** What the code that runs now has passed. Code that runs alongside it has its own. */
export interface Past {
  readonly of: WaitOrder | undefined
  /** How many waits of each name. */
  readonly counts: ReadonlyMap<string, number>
  /** The hash of what it requested last, whatever that was. */
  readonly last: string
  /** Since when something further on may have been begun without a record. */
  readonly since: number | undefined
}

/** What is known of the code that runs now, by whatever it was called. */
interface Here {
  readonly step: RunningStep | undefined
  readonly past: Past | undefined
}

// One for all runs and for everything: Node keeps every storage that was ever used, and each promise created from then
// on pays for all of them.
const HERE = new AsyncLocalStorage<Here>()

/** The step whose work the code that runs now is part of. */
export function stepHere(): RunningStep | undefined {
  return HERE.getStore()?.step
}

/** Does the work of a step: steps inside it are refused. */
export function insideStep<Result>(run: Run, path: string, work: () => Result): Result {
  const here = HERE.getStore()
  return HERE.run({ step: { run, path, outer: here?.step }, past: here?.past }, work)
}

/** The step of a run whose work is running. */
export function runningStepOf(run: Run): string | undefined {
  let running = stepHere()
  // The work of a step may run another thread, whose steps are its own.
  while (running !== undefined && running.run !== run) running = running.outer
  return running?.path
}

/** Why a step can't do what is only for the function that requested it. */
export function insideItself(step: string, what: string): InvalidProgramError {
  const remedy = 'Do it before or after the step, in the function itself.'
  return new InvalidProgramError(`Step "${step}" uses ctx.${what} inside of itself.`, 'step', remedy, { step })
}

export function pastHere(): Past | undefined {
  return HERE.getStore()?.past
}

/** Calls a function whose code has passed this, and no more. */
export function withPast<Result>(past: Past, call: () => Result): Result {
  return HERE.run({ step: HERE.getStore()?.step, past }, call)
}

/** The code that runs now has passed this, and continues. */
export function passHere(past: Past): void {
  HERE.enterWith({ step: HERE.getStore()?.step, past })
}
