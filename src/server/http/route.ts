import type { Holdfast } from '../../index.js'
import type { Principal, Role } from '../access/principal.js'
import type { ServerCore } from '../core.js'

/** A JSON Schema, as plain data. The same object checks requests and stands in the OpenAPI document. */
export interface Schema {
  readonly [keyword: string]: unknown
}

/** What a handler works with. The tenant of `hf` is the principal's, and nothing else can change it. */
export interface Call {
  readonly request: Request
  readonly principal: Principal
  readonly hf: Holdfast
  readonly core: ServerCore
  /** From the path, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** Checked against the route's schema. */
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
}

/** One operation of the server. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With parameters as `:name`. */
  readonly path: string
  /** In the OpenAPI document, and the name of the operation there. */
  readonly name: string
  readonly summary: string
  /** The role that a caller needs; 'none' for what anybody may know. */
  readonly role: Role | 'none'
  /** Properties of the query string. Every other name in it is refused. */
  readonly query?: Readonly<Record<string, Schema>>
  /** Takes any query, since it answers with the same whatever it is asked. */
  readonly anyQuery?: boolean
  readonly body?: Schema
  /** Whether the body may be left out. */
  readonly optionalBody?: boolean
  /** What is answered when all goes well. */
  readonly answer: {
    readonly status?: number
    readonly schema?: Schema
    readonly type?: string
    readonly description?: string
  }
  /** Anything that is no Response is sent as JSON, `undefined` as nothing. */
  readonly handle: (call: Call) => Promise<unknown>
}

/** A schema of an object that has just these properties. Those whose name ends with `?` may be left out. */
export function object(properties: Readonly<Record<string, Schema>>, more: Schema = {}): Schema {
  const entries = Object.entries(properties)
  const required = entries.flatMap(([name]) => (name.endsWith('?') ? [] : [name]))
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, schema]) => [name.replace(/\?$/, ''), schema])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
    ...more,
  }
}

export function listOf(items: Schema): Schema {
  return { type: 'array', items }
}

export function oneOf(...values: readonly (string | null)[]): Schema {
  return { enum: values }
}

export function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] }
}

export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` }
}
