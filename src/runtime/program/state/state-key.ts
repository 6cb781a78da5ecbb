import { InvalidProgramError } from '../../../core/errors.js'
import { checkOptionNames } from '../../../core/wording/option-names.js'
import type { SchemaInput, SchemaOutput, StandardSchema } from '../../../store/standard-schema.js'
import { checkDeclaredSchema } from '../check-program.js'

export type StateKeyKind = 'last' | 'append' | 'merge' | 'reduced'

/** One key of a program's state: what it holds, what an update looks like, and how the two are combined. */
export interface StateKey<V = unknown, U = unknown, Present extends boolean = boolean> {
  readonly kind: StateKeyKind
  /** What an update must match; for 'append', each item. */
  readonly schema: StandardSchema | undefined
  /** Only for 'reduced'. */
  readonly reducer: ((old: unknown, update: unknown) => unknown) | undefined
  /** Creates the value that the key starts with. Absent: it starts without one. */
  readonly initial: (() => unknown) | undefined
  /** Never present at runtime: carries the types. `present` is true for a key that always has a value. */
  readonly '~types'?: { readonly value: V; readonly update: U; readonly present: Present }
}

/** What a state declares: its keys by name. */
export type Shape = Readonly<Record<string, StateKey>>

type TypesOf<Key extends StateKey> = NonNullable<Key['~types']>

/** The state that a program's code reads. Keys without an initial value are undefined until their first update. */
export type StateOf<S extends Shape> = {
  readonly [K in keyof S]: TypesOf<S[K]>['present'] extends true
    ? TypesOf<S[K]>['value']
    : TypesOf<S[K]>['value'] | undefined
}

/** What a program's code returns to change the state. A key that is omitted, or undefined, stays as it is. */
export type UpdateOf<S extends Shape> = { readonly [K in keyof S]?: TypesOf<S[K]>['update'] | undefined }

export interface InitialOption<V> {
  /** What the key holds before its first update; a function creates it separately for every thread. */
  readonly initial: V | (() => V)
}

/** One item or a list of them. If items are lists themselves, always a list of items. */
type Appended<Item> = [Item] extends [readonly unknown[]] ? readonly Item[] : Item | readonly Item[]

/** The last update is the value. */
export function last<V>(schema: undefined, options: InitialOption<V>): StateKey<V, V, true>
export function last<V>(schema?: undefined): StateKey<V, V, false>
export function last<Schema extends StandardSchema>(
  schema: Schema,
  options: InitialOption<SchemaOutput<Schema>>,
): StateKey<SchemaOutput<Schema>, SchemaInput<Schema>, true>
export function last<Schema extends StandardSchema>(
  schema: Schema,
): StateKey<SchemaOutput<Schema>, SchemaInput<Schema>, false>
export function last(schema?: StandardSchema, options?: InitialOption<unknown>): StateKey {
  return makeKey('last', schema, options)
}

/**
 * A list that updates are added to: one item, or a list of them. The list exists from the start, empty unless `initial`
 * says otherwise. An update that is a list is always treated as a list of items.
 */
export function append<Item>(
  schema?: undefined,
  options?: InitialOption<readonly Item[]>,
): StateKey<readonly Item[], Appended<Item>, true>
export function append<Schema extends StandardSchema>(
  schema: Schema,
  options?: InitialOption<readonly SchemaOutput<Schema>[]>,
): StateKey<readonly SchemaOutput<Schema>[], Appended<SchemaInput<Schema>>, true>
export function append(schema?: StandardSchema, options?: InitialOption<readonly unknown[]>): StateKey {
  return makeKey('append', schema, options ?? { initial: () => [] })
}

/**
 * An object whose properties are set one by one: an update replaces the properties it has and leaves the others. A
 * property can't be removed; one that is undefined is ignored, null is a value. The schema is what an *update* must
 * match, so the properties that an update may omit are optional in it.
 */
export function merge<V extends object>(
  schema: undefined,
  options: InitialOption<V>,
): StateKey<Readonly<V>, Readonly<Partial<V>>, true>
export function merge<V extends object>(schema?: undefined): StateKey<Readonly<Partial<V>>, Readonly<Partial<V>>, false>
export function merge<Schema extends StandardSchema<unknown, object>>(
  schema: Schema,
  options: InitialOption<SchemaOutput<Schema>>,
): StateKey<Readonly<SchemaOutput<Schema>>, Readonly<SchemaInput<Schema>>, true>
export function merge<Schema extends StandardSchema<unknown, object>>(
  schema: Schema,
): StateKey<Readonly<SchemaOutput<Schema>>, Readonly<SchemaInput<Schema>>, false>
export function merge(schema?: StandardSchema, options?: InitialOption<unknown>): StateKey {
  return makeKey('merge', schema, options)
}

/**
 * The value is what the reducer returns for the old value and an update. It must be pure and return a new value, never
 * the old one changed in place; what it returns is stored, and it is not called again on load. The schema is what an
 * *update* must match. With an initial value, there always is an old one.
 */
export function reduced<V, U>(
  schema: undefined,
  reducer: (old: V, update: U) => V,
  options: InitialOption<V>,
): StateKey<V, U, true>
export function reduced<V, U>(schema: undefined, reducer: (old: V | undefined, update: U) => V): StateKey<V, U, false>
export function reduced<Schema extends StandardSchema, V>(
  schema: Schema,
  reducer: (old: V, update: SchemaOutput<Schema>) => V,
  options: InitialOption<V>,
): StateKey<V, SchemaInput<Schema>, true>
export function reduced<Schema extends StandardSchema, V>(
  schema: Schema,
  reducer: (old: V | undefined, update: SchemaOutput<Schema>) => V,
): StateKey<V, SchemaInput<Schema>, false>
export function reduced(
  schema: StandardSchema | undefined,
  reducer: (old: never, update: never) => unknown,
  options?: InitialOption<unknown>,
): StateKey {
  if (typeof reducer !== 'function') {
    throw new InvalidProgramError(
      'A reduced key has no reducer.',
      'reducer',
      'Pass a function (old, update) => value as the second argument.',
    )
  }
  return makeKey('reduced', schema, options, reducer as StateKey['reducer'])
}

function makeKey(
  kind: StateKeyKind,
  schema: StandardSchema | undefined,
  options: InitialOption<unknown> | undefined,
  reducer?: StateKey['reducer'],
): StateKey {
  // Without a schema, the options are easily passed first.
  if (typeof schema === 'object' && schema !== null && 'initial' in schema && !('~standard' in schema)) {
    const position = kind === 'reduced' ? 'third' : 'second'
    throw new InvalidProgramError(
      `The first argument of ${kind}() is its schema, and { initial } was given in its place.`,
      'schema',
      `Pass { initial } as the ${position} argument: ${kind}(undefined, ${kind === 'reduced' ? 'reducer, ' : ''}{ initial }).`,
    )
  }
  checkDeclaredSchema(schema, `schema of a key made by ${kind}()`, 'schema')
  checkOptionNames(`${kind}()`, options, { initial: true })
  const initial = options?.initial
  const make = initial === undefined || typeof initial === 'function' ? initial : () => initial
  return Object.freeze({ kind, schema, reducer, initial: make as StateKey['initial'] })
}
