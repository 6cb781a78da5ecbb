import { describeGiven } from '../../core/wording/choices.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { ProgramPlan } from './program.js'

/** The plan of a program. Anything else would fail deep inside, with a message about a property nobody has heard of. */
export function planOf(field: string, program: unknown): ProgramPlan {
  const { plan } = (program ?? {}) as { readonly plan?: ProgramPlan }
  if (typeof plan?.name === 'string') return plan
  throw new InvalidOptionError(
    field,
    `must be a program, not ${describeGiven(program)}`,
    'Pass what agent(), graph() or flow() returned.',
  )
}
