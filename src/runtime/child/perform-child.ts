import { showValue } from '../../codec/clone.js'
import type { Requested, Requests } from '../step/call/requests.js'
import { awaitChild, type ChildOptions, failedChild } from './await-child.js'
import { notAChoice } from '../../core/wording/choices.js'
import { InvalidOptionError, InvalidProgramError } from '../../core/errors.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { ProgramPlan } from '../program/program.js'

/** Whatever kind of program a child runs. */
export interface ChildProgram {
  readonly plan: ProgramPlan
}

const OPTIONS: OptionNames<ChildOptions> = { thread: true, busy: true, context: true }

/** Checks what `ctx.run` was given, before anything happens. */
function planOfChild(program: ChildProgram, id: string, options: ChildOptions): ProgramPlan {
  checkOptionNames('ctx.run', options, OPTIONS)
  const plan = (program as Partial<ChildProgram> | undefined)?.plan
  if (plan === undefined) {
    const remedy = 'Call ctx.run(program, id, input) with a flow, a graph or an agent.'
    throw new InvalidOptionError('program', 'is not a program', remedy)
  }
  if (typeof id !== 'string' || !/^[^/\p{Cc}]{1,200}$/u.test(id)) {
    const given = typeof id === 'string' ? JSON.stringify(id.slice(0, 200)) : `a ${typeof id}`
    throw new InvalidProgramError(
      `The id that ctx.run is given for a thread of ${plan.name} is ${given}.`,
      'id',
      'Use 1 to 200 printable characters without slashes.',
    )
  }
  const { busy } = options
  if (busy !== undefined && busy !== 'reject' && busy !== 'queue') throw notAChoice('busy', busy, ['reject', 'queue'])
  return plan
}

/** `ctx.run`: another thread, whose end this one waits for. */
export async function performChild(
  requests: Requests,
  requested: Requested,
  program: ChildProgram,
  id: string,
  input: unknown,
  options: ChildOptions = {},
): Promise<unknown> {
  const { run, records } = requests
  const plan = planOfChild(program, id, options)
  const { path, after } = requests.arrive(requested, 'child', id, true)
  await run.replay?.turn(path)
  if (records.isDoubted(path)) await requests.settleDoubt(path, 'effect')
  const work = requests.work(path, { input, effect: 'idempotent' }, () => undefined, { after })
  const again = failedChild(records.get(path), work)
  if (again !== undefined) throw again
  const found = records.find(path, work.inputHash())
  if (found?.status === 'done') return showValue(found.result)
  if (run.replay) return requests.gap(path)
  requested.isLive = true
  return awaitChild({ requests, path, work, id, plan, input, options })
}
