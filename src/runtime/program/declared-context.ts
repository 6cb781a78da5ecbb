import { InvalidProgramError } from '../../core/errors.js'
import type { StandardSchema } from '../../store/standard-schema.js'
import { checkDeclaredSchema } from './declared-schema.js'
import type { ContextPlan } from './program.js'

/** What a program declares about the context of its runs. */
export interface ContextOptions<RunContext = unknown> {
  /** What `run({ context })` must match; types `ctx.context`. Default: anything. */
  readonly context?: StandardSchema<unknown, RunContext>
  /**
   * The part of the context that is never recorded: the names of its keys, or `true` for all of it. For secrets,
   * connections and whatever can't be stored. Whoever resumes a run has to pass it again: a worker through its
   * `context`.
   */
  readonly transientContext?: true | readonly string[]
}

/** Checked; undefined if nothing is declared. */
export function planContext(program: string, options: ContextOptions): ContextPlan | undefined {
  const { context, transientContext: transient } = options
  checkDeclaredSchema(context, `context of ${program}`, 'context')
  const isNames = Array.isArray(transient) && transient.every((name) => typeof name === 'string' && name !== '')
  if (transient !== undefined && transient !== true && !isNames) {
    throw new InvalidProgramError(
      `The option transientContext of ${program} must be true or a list of names.`,
      'transientContext',
      "Pass for example ['token'], or true for the whole context.",
    )
  }
  if (context === undefined && transient === undefined) return undefined
  return {
    schemas: context === undefined ? [] : [context],
    isMade: context !== undefined,
    transient: transient ?? [],
  }
}
