import { andThen, nowOrLater } from '../../core/async/at-once.js'
import { InvalidOptionError, isHoldfastError } from '../../core/errors.js'
import { jsonSchemaOf, offersJsonSchema } from '../../json-schema/schema-checker.js'
import type { TimeLimit } from '../../runtime/program/time-limit.js'
import type { StandardSchema } from '../../store/standard-schema.js'
import type { JsonObject } from '../model/model-types.js'

/** What the AI SDK's `jsonSchema()`, `zodSchema()` … return. `validate` may be missing: then nothing is checked. */
interface AiSchema<Output = unknown> {
  readonly _type: Output
  readonly jsonSchema: unknown
  readonly validate?: ((value: unknown) => AiValidation<Output> | PromiseLike<AiValidation<Output>>) | undefined
}

type AiValidation<Output> =
  | { readonly success: true; readonly value: Output }
  | { readonly success: false; readonly error: Error }

export type ToolSchema<Output = unknown> = StandardSchema<unknown, Output> | AiSchema<Output> | (() => AiSchema<Output>)

/** What `execute` receives: the arguments as parsed by the schema. */
export type SchemaOutput<Schema> = Schema extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : Schema extends () => AiSchema<infer Output>
    ? Output
    : Schema extends AiSchema<infer Output>
      ? Output
      : unknown

export type Validated =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false
      readonly problems: readonly string[]
      /** It took too long to find out. */
      readonly isSlow?: true
    }

const MAX_PROBLEMS = 10
const TARGET = 'draft-07'

/** Refuses, when a tool is defined, a schema that can't check values or has no JSON Schema. */
export function checkSchema(schema: unknown, explicit: unknown, field: string): void {
  if (explicit !== undefined && (typeof explicit !== 'object' || explicit === null || Array.isArray(explicit))) {
    throw new InvalidOptionError(`${field}.jsonSchema`, 'must be an object', 'Pass a JSON Schema.')
  }
  if (typeof schema === 'function' && !isStandard(schema)) return
  if (isAiSchema(schema)) return
  if (!isStandard(schema)) {
    throw new InvalidOptionError(
      `${field}.inputSchema`,
      'is not a schema',
      'Pass one of Zod, Valibot, ArkType or another library with Standard Schema, or jsonSchema() of the AI SDK.',
    )
  }
  if (explicit !== undefined || offersJsonSchema(schema)) return
  throw new InvalidOptionError(
    `${field}.inputSchema`,
    `(${schema['~standard'].vendor}) offers no JSON Schema, which the model is shown`,
    'Pass it as the option jsonSchema next to inputSchema.',
    { vendor: schema['~standard'].vendor },
  )
}

/** The JSON Schema (draft 7) that is shown to the model. */
export async function toJsonSchema(schema: ToolSchema, explicit: JsonObject | undefined, field: string) {
  const made = explicit ?? (await readJsonSchema(schema, field))
  const { $schema: _dialect, ...plain } = made as Record<string, unknown>
  if (plain['type'] !== undefined && plain['type'] !== 'object') {
    throw new InvalidOptionError(
      `${field}.inputSchema`,
      `describes ${JSON.stringify(plain['type'])}, but the arguments of a tool are an object`,
      'Wrap it in an object with one property.',
    )
  }
  return { ...plain, type: 'object' } as JsonObject
}

/** The value, or what is wrong with it in words that a model can act on. */
export function validateWith(schema: ToolSchema, value: unknown, limit: TimeLimit): Validated | Promise<Validated> {
  try {
    const validating = validateInTime(schema, value, limit)
    return validating instanceof Promise ? validating.catch(orSlow) : validating
  } catch (error) {
    return orSlow(error)
  }
}

function orSlow(error: unknown): Validated {
  if (!isHoldfastError(error, 'timeout')) throw error
  return { ok: false, problems: ['could not be checked in time; send shorter texts'], isSlow: true }
}

function validateInTime(schema: ToolSchema, value: unknown, limit: TimeLimit): Validated | Promise<Validated> {
  if (isStandard(schema)) {
    const checking = limit.run(value, () => schema['~standard'].validate(value), schema)
    return andThen(nowOrLater(checking), (result): Validated => {
      if (result.issues === undefined) return { ok: true, value: result.value }
      return { ok: false, problems: shorten(result.issues.map(describeIssue)) }
    })
  }
  const { validate } = typeof schema === 'function' ? schema() : schema
  const checking = limit.run(value, () => validate?.(value), schema)
  return andThen(nowOrLater(checking), (result): Validated => {
    if (result === undefined) return { ok: true, value }
    return result.success ? { ok: true, value: result.value } : { ok: false, problems: describeError(result.error) }
  })
}

async function readJsonSchema(schema: ToolSchema, field: string): Promise<unknown> {
  if (isStandard(schema)) return jsonSchemaOf(schema, TARGET, `${field}.inputSchema`)
  return (typeof schema === 'function' ? schema() : schema).jsonSchema
}

function isStandard(schema: unknown): schema is StandardSchema {
  const standard = (schema as Partial<StandardSchema> | null | undefined)?.['~standard']
  return typeof standard?.validate === 'function'
}

function isAiSchema(schema: unknown): schema is AiSchema {
  return typeof schema === 'object' && schema !== null && !isStandard(schema) && 'jsonSchema' in schema
}

type SchemaIssue = Extract<
  Awaited<ReturnType<StandardSchema['~standard']['validate']>>,
  { readonly issues: readonly unknown[] }
>['issues'][number]

function describeIssue({ message, path = [] }: SchemaIssue): string {
  let where = ''
  for (const part of path) {
    const key = typeof part === 'object' ? part.key : part
    where += typeof key === 'number' ? `[${key}]` : `${where === '' ? '' : '.'}${String(key)}`
  }
  return where === '' ? message : `${where}: ${message}`
}

/** A validator's own error; Zod's lists its issues, even inside a wrapper of the AI SDK. */
function describeError(error: Error): string[] {
  for (const candidate of [error, error.cause]) {
    const issues = (candidate as { readonly issues?: unknown } | undefined)?.issues
    if (Array.isArray(issues) && issues.length > 0) return shorten((issues as SchemaIssue[]).map(describeIssue))
  }
  return [error.message]
}

function shorten(problems: string[]): string[] {
  if (problems.length === 0) return ['does not fit the schema']
  if (problems.length <= MAX_PROBLEMS) return problems
  return [...problems.slice(0, MAX_PROBLEMS), `and ${problems.length - MAX_PROBLEMS} more`]
}
