import type { Value } from '../codec/value.js'
import { InvalidOptionError, InvalidValueError } from '../core/errors.js'
import type { StandardSchema } from '../store/standard-schema.js'

/** The slice of the Standard JSON Schema interface that is used here. */
interface WithJsonSchema {
  readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown }
}

/** The JSON Schema of what a schema takes, or an error that says how to give one. */
export function jsonSchemaOf(schema: StandardSchema): Value {
  const offered = (schema['~standard'] as WithJsonSchema).jsonSchema?.input
  const other = (schema as unknown as { readonly toJsonSchema?: () => unknown }).toJsonSchema
  const made = offered
    ? offered({ target: 'draft-2020-12' })
    : typeof other === 'function'
      ? other.call(schema)
      : undefined
  if (typeof made === 'object' && made !== null) return JSON.parse(JSON.stringify(made)) as Value
  throw new InvalidOptionError(
    'schema',
    `of ${schema['~standard'].vendor} offers no JSON Schema`,
    'Pass one beside it as jsonSchema, or use a library that implements Standard JSON Schema.',
  )
}

/** Checks a value against a stored JSON Schema, which is interpreted and never turned into code. */
export async function checkAgainst(schema: Value, value: Value): Promise<void> {
  const { Validator } = await import('@cfworker/json-schema')
  const { valid, errors } = new Validator(schema as never, '2020-12', false).validate(value)
  if (valid) return
  // The deepest error says what is wrong; the ones above only say that something below is.
  const deepest = errors.reduce((a, b) => (b.instanceLocation.length >= a.instanceLocation.length ? b : a))
  const path = deepest.instanceLocation.replace(/^#/, '$').replaceAll('/', '.')
  throw new InvalidValueError(path, `does not fit: ${deepest.error}`, 'Send a value that fits the schema.', {
    schema,
    errors: errors.map(({ instanceLocation, error }) => ({ path: instanceLocation, message: error })),
  })
}
