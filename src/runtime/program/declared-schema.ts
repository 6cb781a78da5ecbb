import { InvalidProgramError } from '../../core/errors.js'
import type { StandardSchema } from '../../store/standard-schema.js'

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
