import { InvalidOptionError, InvalidValueError } from '../core/errors.js'

/**
 * The part of the Standard Schema interface (standardschema.dev) that is used here; Zod, Valibot, ArkType … implement
 * it.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

type SchemaTypes<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>
export type SchemaInput<Schema extends StandardSchema> = SchemaTypes<Schema>['input']
export type SchemaOutput<Schema extends StandardSchema> = SchemaTypes<Schema>['output']

export function checkSchema(schema: unknown): asserts schema is StandardSchema {
  const standard = (schema as Partial<StandardSchema> | null | undefined)?.['~standard']
  if (typeof standard?.validate === 'function') return
  throw new InvalidOptionError(
    'schema',
    'is not a Standard Schema',
    'Pass a schema of Zod, Valibot, ArkType or another that implements it.',
  )
}

/**
 * The result of validating a value with the schema, or an error that says what is wrong with it and where: paths begin
 * with `root`.
 */
export async function validate(schema: StandardSchema, value: unknown, root = '$'): Promise<unknown> {
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return result.value
  const issues = result.issues.map(({ message, path = [] }) => ({ message, path: path.map(partOf).join('.') }))
  const first = issues[0]
  const where = first?.path ? `${root}.${first.path}` : root
  throw new InvalidValueError(
    where,
    `does not fit the schema: ${first?.message ?? 'no reason given'}`,
    'Correct the value.',
    { issues },
  )
}

function partOf(part: PropertyKey | { readonly key: PropertyKey }): string {
  return String(typeof part === 'object' ? part.key : part)
}
