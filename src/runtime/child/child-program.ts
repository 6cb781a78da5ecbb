import { notAChoice } from '../../core/wording/choices.js'
import { InvalidOptionError, InvalidProgramError } from '../../core/errors.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { ProgramPlan } from '../program/program.js'
import type { ChildOptions } from './await-child.js'

/** Whatever kind of program a child runs. */
export interface ChildProgram {
  readonly plan: ProgramPlan
}

const OPTIONS: OptionNames<ChildOptions> = { thread: true, busy: true, context: true }

/** Checks what `ctx.run` was given, before anything happens. */
export function planOfChild(program: ChildProgram, id: string, options: ChildOptions): ProgramPlan {
  checkOptionNames('ctx.run', options, OPTIONS)
  const plan = (program as Partial<ChildProgram> | undefined)?.plan
  if (plan === undefined) {
    const problem = 'is not a program'
    throw new InvalidOptionError(
      'program',
      problem,
      'Call ctx.run(program, id, input) with a flow, a graph or an agent.',
    )
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
