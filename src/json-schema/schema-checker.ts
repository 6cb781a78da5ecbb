import type { Value } from '../codec/value.js'
import { InvalidOptionError, InvalidValueError, MissingDependencyError } from '../core/errors.js'
import { Evaluation } from './evaluate.js'
import { deepest, type Problem } from './findings.js'
import { Patterns, refusePattern } from './pattern.js'
import { References } from './references.js'
import type { StandardSchema } from '../store/standard-schema.js'

const MAX_REPORTED = 50

/**
 * A JSON Schema that values are checked against, of 2020-12 or an older draft. The work for one value is limited,
 * whatever the schema and the value: both may come from strangers.
 */
export class SchemaChecker {
  readonly #schema: Value
  readonly #references: References
  readonly #patterns: Patterns

  private constructor(schema: Value, references: References, patterns: Patterns) {
    this.#schema = schema
    this.#references = references
    this.#patterns = patterns
  }

  static async of(schema: Value): Promise<SchemaChecker> {
    const references = new References(schema)
    return new SchemaChecker(schema, references, await Patterns.for(references.patterns))
  }

  /** Throws an error that says what is wrong with a value, and where. */
  check(value: Value): void {
    const problems = this.#look(value)
    if (problems.length === 0) return
    const { path, message } = deepest(problems)
    throw new InvalidValueError(path, message, 'Send a value that fits the schema.', {
      schema: this.#schema,
      errors: problems.slice(0, MAX_REPORTED),
    })
  }

  #look(value: Value): readonly Problem[] {
    const [broken] = this.#references.problems
    if (broken !== undefined) return [{ path: '$', message: `can't be checked: its schema ${broken}` }]
    return new Evaluation(this.#references, this.#patterns).apply(this.#schema, value, '$').problems
  }
}

/** Why nothing can be checked against a schema, to be said where it is declared; undefined when it can. */
export function refuseSchema(schema: Value): string | undefined {
  const references = new References(schema)
  const [broken] = references.problems
  if (broken !== undefined) return broken
  for (const pattern of references.patterns) {
    const refusal = refusePattern(pattern)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

/** The part of the Standard JSON Schema interface that is used here. */
interface WithJsonSchema {
  readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown }
}

/** The dialect of JSON Schema: what answers are checked with, or what models are shown. */
export type JsonSchemaTarget = 'draft-2020-12' | 'draft-07'

/** Whether a JSON Schema can be made of this schema. */
export function offersJsonSchema(schema: StandardSchema): boolean {
  const { jsonSchema } = schema['~standard'] as WithJsonSchema
  return jsonSchema?.input !== undefined || 'toJsonSchema' in schema || isZod4(schema)
}

/** The JSON Schema of what a schema takes, or an error that says how to give one. */
export async function jsonSchemaOf(
  schema: StandardSchema,
  target: JsonSchemaTarget = 'draft-2020-12',
  field = 'schema',
): Promise<Value> {
  let made: unknown
  try {
    made = await make(schema, target)
  } catch (cause) {
    if (cause instanceof MissingDependencyError) throw cause
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new InvalidOptionError(
      field,
      `can't be written as JSON Schema: ${reason}`,
      'Use types that JSON has, or pass the option jsonSchema alongside it.',
    )
  }
  if (typeof made === 'object' && made !== null) return JSON.parse(JSON.stringify(made)) as Value
  throw new InvalidOptionError(
    field,
    `of ${schema['~standard'].vendor} offers no JSON Schema`,
    'Pass one alongside it as jsonSchema, or use a library that implements Standard JSON Schema.',
  )
}

async function make(schema: StandardSchema, target: JsonSchemaTarget): Promise<unknown> {
  const offered = (schema['~standard'] as WithJsonSchema).jsonSchema?.input
  if (offered !== undefined) return offered({ target })
  const other = (schema as unknown as { readonly toJsonSchema?: () => unknown }).toJsonSchema
  if (typeof other === 'function') return other.call(schema)
  if (!isZod4(schema)) return undefined
  return (await loadZod()).toJSONSchema(schema, { target: target === 'draft-07' ? 'draft-7' : target, io: 'input' })
}

function isZod4(schema: StandardSchema): boolean {
  return schema['~standard'].vendor === 'zod' && '_zod' in schema
}

// Zod offers the JSON Schema extension itself from 4.2 on; before that its own function makes it, which Zod 3.25 has
// under this path as well.
async function loadZod(): Promise<{ toJSONSchema(schema: unknown, options: object): unknown }> {
  try {
    return (await import('zod/v4')) as unknown as { toJSONSchema(schema: unknown, options: object): unknown }
  } catch (cause) {
    throw new MissingDependencyError('zod', 'npm install zod', { what: 'The JSON Schema of a Zod schema', cause })
  }
}

/** Checks a value against a stored JSON Schema. */
export async function checkAgainst(schema: Value, value: Value): Promise<void> {
  const checker = await SchemaChecker.of(schema)
  checker.check(value)
}
