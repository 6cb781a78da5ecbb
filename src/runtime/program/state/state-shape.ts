import { andThen, forEachInTurn, nowOrLater } from '../../../core/async/at-once.js'
import { type PathPart, renderPath, type Value } from '../../../codec/value.js'
import {
  IncompatibleError,
  InvalidOptionError,
  InvalidProgramError,
  InvalidValueError,
  isHoldfastError,
} from '../../../core/errors.js'
import type { Op, Path, State } from '../../../log/entry/ops.js'
import { type StandardSchema, validate } from '../../../store/standard-schema.js'
import type { PartsOf } from '../../../codec/encode/write-parts.js'
import { isPlainObject, type KeyUpdate, reduceKey } from './reduce-key.js'
import type { StateKey } from './state-key.js'

/** A checked update: the values that the schemas returned, `append` keys always as lists, nothing undefined. */
export type Update = Readonly<Record<string, unknown>>

export interface Recorded {
  readonly update: Update
  /** Where this update already is in the fold, if it was recorded before: ops then refer to it instead of copying. */
  readonly from?: Path
}

const MAX_KEY_LENGTH = 128

/** The declared keys of a program's state: creates it, checks updates of it, and applies them. */
export class StateShape {
  readonly #keys: ReadonlyMap<string, StateKey>

  constructor(keys: Readonly<Record<string, StateKey>>) {
    if (!isPlainObject(keys)) {
      throw new InvalidProgramError(
        'The state of a program is not an object of keys.',
        'state',
        "Pass an object such as { messages: append(), topic: last() }, with 'last', 'append', 'merge' or 'reduced'.",
      )
    }
    this.#keys = new Map(Object.entries(keys).map(([name, key]) => [name, checkKey(name, key)]))
  }

  get keys(): ReadonlyMap<string, StateKey> {
    return this.#keys
  }

  /** A state with the initial values and nothing else. */
  initial(): State {
    return this.complete({})
  }

  /** The state, plus the initial values of keys that have none yet because they were declared after it was recorded. */
  complete(state: State): State {
    return { ...state, ...Object.fromEntries(this.fresh(state)) }
  }

  /** The keys that a state lacks, with their initial values. */
  fresh(state: State): readonly (readonly [name: string, value: Value])[] {
    const fresh: [string, Value][] = []
    for (const [name, key] of this.#keys) {
      if (Object.hasOwn(state, name) || key.initial === undefined) continue
      const value = key.initial()
      if (value !== undefined) fresh.push([name, value as Value])
    }
    return fresh
  }

  /**
   * The update as it is applied, or an error with the path to the problem: `where` names the update in it. A key whose
   * value is undefined is ignored, so that an update never removes anything; null is a value. Whether values can be
   * stored is checked by the log. Never throws: what is refused is a rejected promise, and what needs no waiting is
   * there at once.
   */
  check(update: unknown, where: string): Update | Promise<Update> {
    try {
      return this.#check(update, where)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #check(update: unknown, where: string): Update | Promise<Update> {
    if (update === undefined) return {}
    if (!isPlainObject(update)) {
      throw new InvalidValueError(where, 'is not an object', `Return an object with any of: ${this.#names()}.`)
    }
    const all: readonly (readonly [string, unknown])[] = Object.entries(update)
    const given = all.filter(([, value]) => value !== undefined)
    const unknown = given.find(([name]) => !this.#keys.has(name))
    if (unknown !== undefined) {
      throw new InvalidValueError(
        at(where, unknown[0]),
        'is not declared in the state',
        `Use one of: ${this.#names()}, or declare it.`,
        { declared: [...this.#keys.keys()] },
      )
    }
    const checked: Record<string, unknown> = {}
    let isSame = given.length === all.length
    const checking = forEachInTurn(given, ([name, value]) =>
      andThen(checkValue(this.#keys.get(name) as StateKey, value, where, name), (output) => {
        isSame &&= output === value
        if (output !== undefined) checked[name] = output
        return undefined
      }),
    )
    // The object itself where it stays as it is: what was encoded when a step ended is not walked again.
    return andThen(checking, () => (isSame && Object.isFrozen(update) ? update : checked))
  }

  /**
   * Refuses a value that no sequence of updates could have led to, and that reducers would later fail on. Schemas
   * describe updates, not stored values: one that transforms its input may well refuse what is stored.
   */
  async checkWhole(name: string, value: unknown, stored: unknown, where: string): Promise<void> {
    const key = this.#keys.get(name)
    if (key === undefined) {
      throw new InvalidOptionError(where, 'is not declared in the state', `Use one of: ${this.#names()}.`)
    }
    if (key.kind === 'append' && !Array.isArray(value)) {
      throw new InvalidValueError(where, 'is not a list', 'Pass the whole list, or use `update` to add to it.')
    }
    if (key.kind === 'merge' && !isPlainObject(value)) {
      throw new InvalidValueError(where, 'is not an object', 'Pass the whole object, or use `update` to change it.')
    }
    if (key.schema === undefined || (key.kind !== 'last' && key.kind !== 'append')) return
    const refusal = await refusalOf(key, value, where)
    if (refusal === undefined || (stored !== undefined && (await refusalOf(key, stored, where)))) return
    throw refusal
  }

  /**
   * The state after the updates, applied in order through the reducers, and ops with paths under `at` that do the same
   * to the fold without user code. A key that has no value in the fold starts with its initial value.
   */
  reduce(
    state: State,
    updates: readonly Recorded[],
    at: readonly PathPart[],
  ): { readonly state: State; readonly ops: readonly Op[] } {
    const after: Record<string, Value> = { ...state }
    const ops: Op[] = []
    for (const [name, parts] of this.#byKey(updates)) {
      const stored = Object.hasOwn(state, name) ? state[name] : undefined
      const path = [...at, name] as unknown as Path
      const reduction = reduceKey(this.#keys.get(name) as StateKey, { name, path, stored }, parts)
      after[name] = reduction.value
      for (const op of reduction.ops) ops.push(op)
    }
    return { state: after, ops }
  }

  /** Which parts of an update the ops of `reduce` write, each by itself. */
  readonly partsOf: PartsOf = (name) => {
    const kind = this.#keys.get(name)?.kind
    return kind === 'append' ? 'items' : kind === 'merge' ? 'properties' : 'whole'
  }

  /** Whether the ops of `reduce` say by themselves what the update was. */
  isToldByOps(state: State, update: Update): boolean {
    for (const name of Object.keys(update)) {
      const kind = this.#keys.get(name)?.kind
      // Those without a value in the fold are written with their initial one.
      if (kind !== 'last' && (kind === 'reduced' || !Object.hasOwn(state, name))) return false
    }
    return true
  }

  #byKey(updates: readonly Recorded[]): ReadonlyMap<string, readonly KeyUpdate[]> {
    const byKey = new Map<string, KeyUpdate[]>()
    for (const { update, from } of updates) {
      for (const [name, value] of Object.entries(update)) {
        if (value === undefined) continue
        if (!this.#keys.has(name)) throw this.#undeclared(name)
        const parts = byKey.get(name) ?? []
        parts.push({ value, from: from && ([...from, name] as const) })
        byKey.set(name, parts)
      }
    }
    return byKey
  }

  #undeclared(name: string): IncompatibleError {
    return new IncompatibleError(
      `A recorded step changed ${at('state', name)}, which this program does not declare.`,
      'undeclared-key',
      `Declare it again, or run the version that recorded it. Declared are: ${this.#names()}.`,
      { key: name, declared: [...this.#keys.keys()] },
    )
  }

  #names(): string {
    return [...this.#keys.keys()].join(', ') || 'nothing, because no key is declared'
  }
}

function checkKey(name: string, key: StateKey): StateKey {
  const field = at('state', name)
  if (name === '' || name.length > MAX_KEY_LENGTH || name === '__proto__') {
    throw new InvalidProgramError(
      `The state key ${JSON.stringify(name.slice(0, MAX_KEY_LENGTH))} is not a valid name.`,
      field.slice(0, 2 * MAX_KEY_LENGTH),
      `Use 1 to ${MAX_KEY_LENGTH} characters, and not __proto__.`,
    )
  }
  if (!KINDS.includes(key?.kind)) {
    throw new InvalidProgramError(
      `${field} is not a key.`,
      field,
      'Make it with last(), append(), merge() or reduced().',
    )
  }
  return key
}

const KINDS: readonly unknown[] = ['last', 'append', 'merge', 'reduced'] satisfies StateKey['kind'][]

function checkValue(key: StateKey, value: unknown, where: string, name?: string): unknown {
  const { kind, schema } = key
  if (schema !== undefined) return checkBySchema(key, schema, value, name === undefined ? where : at(where, name))
  if (kind === 'append') return Array.isArray(value) ? value : [value]
  if (kind === 'merge' && value !== undefined && !isPlainObject(value)) {
    throw notMergeable(name === undefined ? where : at(where, name))
  }
  return nowOrLater(value)
}

async function checkBySchema({ kind }: StateKey, schema: StandardSchema, value: unknown, path: string) {
  if (kind === 'append') {
    const items: readonly unknown[] = Array.isArray(value) ? value : [value]
    const checked: unknown[] = []
    for (const [index, item] of items.entries()) {
      checked.push(await validate(schema, item, Array.isArray(value) ? `${path}[${index}]` : path))
    }
    return checked
  }
  const checked = await validate(schema, value, path)
  if (kind === 'merge' && checked !== undefined && !isPlainObject(checked)) throw notMergeable(path)
  return checked
}

function notMergeable(path: string): InvalidValueError {
  return new InvalidValueError(path, 'is not an object to merge', 'Pass an object with the properties to set.')
}

async function refusalOf(key: StateKey, value: unknown, where: string): Promise<InvalidValueError | undefined> {
  try {
    await checkValue(key, value, where)
    return undefined
  } catch (error) {
    if (isHoldfastError(error, 'invalid-value')) return error as InvalidValueError
    throw error
  }
}

/** `update` and `total` become `update.total`. */
function at(where: string, name: string): string {
  return where + renderPath([name]).slice(1)
}
