import { describeGiven } from '../../core/wording/choices.js'
import { InvalidOptionError, InvalidProgramError } from '../../core/errors.js'
import type { ContextPlan, ProgramPlan } from './program.js'
import valid from 'semver/functions/valid.js'
import validRange from 'semver/ranges/valid.js'
import type { StandardSchema } from '../../store/standard-schema.js'

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

const MAX_LENGTH = 128

/** Step paths use these as separators, so a node name must not contain them. */
const SEPARATORS = /[/[\]:]/

export function checkProgramName(name: unknown): asserts name is string {
  if (isPrintable(name)) return
  throw new InvalidProgramError(
    `A program's name is ${describe(name)}.`,
    'name',
    `Use 1 to ${MAX_LENGTH} printable characters.`,
  )
}

export function checkNodeName(name: unknown): asserts name is string {
  if (isPrintable(name) && !SEPARATORS.test(name) && name !== '__start__' && name !== '__end__') return
  throw new InvalidProgramError(
    `A node's name is ${describe(name)}.`,
    'node',
    `Use 1 to ${MAX_LENGTH} printable characters without / [ ] and :, and neither __start__ nor __end__.`,
  )
}

export function checkVersion(program: string, version: unknown): asserts version is string {
  // `valid` also accepts "v1.0.0" and " 1.0.0", which would be recorded as different versions than "1.0.0".
  if (typeof version === 'string' && /^\d\S*$/.test(version) && valid(version) !== null) return
  throw new InvalidProgramError(
    `The version of "${program}" is ${describe(version)}.`,
    'version',
    'Use a semantic version such as 1.2.0.',
  )
}

export function checkRange(program: string, range: unknown): asserts range is string | undefined {
  if (range === undefined) return
  if (typeof range === 'string' && range.trim() !== '' && validRange(range) !== null) return
  throw new InvalidProgramError(
    `The option compatibleWith of "${program}" is ${describe(range)}.`,
    'compatibleWith',
    'Use a semantic version range such as ^1.2.0 or >=1.4.0 <3.',
  )
}

function isPrintable(name: unknown): name is string {
  return (
    typeof name === 'string' &&
    name.length >= 1 &&
    name.length <= MAX_LENGTH &&
    name.trim() === name &&
    name.isWellFormed() &&
    !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)
  )
}

function describe(value: unknown): string {
  if (typeof value !== 'string') return value === undefined ? 'missing' : `a ${typeof value}`
  const shown = JSON.stringify(value.slice(0, MAX_LENGTH))
  return value.length > MAX_LENGTH ? `${shown}… with ${value.length} characters` : shown
}

/** Refuses an invalid schema when the program is declared, not when the first value arrives. */
export function checkDeclaredSchema(
  schema: unknown,
  what: string,
  field: string,
): asserts schema is StandardSchema | undefined {
  if (schema === undefined) return
  const standard = (schema as Partial<StandardSchema> | null)?.['~standard']
  if (typeof standard?.validate === 'function') return
  throw new InvalidProgramError(
    `The ${what} is not a Standard Schema.`,
    field,
    'Pass a schema of Zod, Valibot, ArkType or another that implements it, or undefined for none.',
  )
}

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
