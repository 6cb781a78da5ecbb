import { showValue } from '../../../codec/clone.js'
import { setOwn, type Value } from '../../../codec/value.js'
import { InvalidProgramError, InvalidValueError } from '../../../core/errors.js'
import { concat, copy, type Op, type Path, set } from '../../../log/entry/ops.js'
import { explainFrozen } from './shown-state.js'
import type { StateKey } from './state-key.js'

/** An update of one key, and where it already is in the fold, if it is. */
export interface KeyUpdate {
  readonly value: unknown
  readonly from: Path | undefined
}

export interface Reduction {
  readonly value: Value
  readonly ops: readonly Op[]
}

/** What is known about a key when its updates arrive. */
export interface KeyPlace {
  readonly name: string
  readonly path: Path
  /** The value in the fold; undefined if there is none. */
  readonly stored: Value | undefined
}

/** The value of a key after its updates, and ops that bring the fold there without calling the reducer again. */
export function reduceKey(key: StateKey, place: KeyPlace, updates: readonly KeyUpdate[]): Reduction {
  switch (key.kind) {
    case 'last':
      return replace(place, updates)
    case 'append':
      return appendItems(key, place, updates)
    case 'merge':
      return mergeProperties(key, place, updates)
    default:
      return callReducer(key, place, updates)
  }
}

export function isPlainObject(value: unknown): value is Record<string, Value> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // A plain object from another realm has a prototype that ends the chain.
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

function replace({ path, stored }: KeyPlace, updates: readonly KeyUpdate[]): Reduction {
  const { value, from } = updates.at(-1) as KeyUpdate
  return { value: value as Value, ops: Object.is(stored, value) ? [] : [refer(path, value, from)] }
}

function appendItems(key: StateKey, { name, path, stored }: KeyPlace, updates: readonly KeyUpdate[]): Reduction {
  const old: unknown = stored === undefined ? (key.initial?.() ?? []) : stored
  if (!Array.isArray(old)) throw misfit(name, 'is not a list, so nothing can be appended to it')
  // Not with `slice` or `concat`: both are slow on the frozen lists that programs see. And not by adding to a copy, which
  // is allocated twice.
  const [first] = updates
  const isAlone = updates.length === 1 && first !== undefined
  const value: Value[] = isAlone ? [...old, ...(first.value as readonly Value[])] : [...old]
  const ops: Op[] = []
  for (const update of updates) {
    const items = update.value as readonly Value[]
    if (items.length === 0) continue
    if (!isAlone) for (const item of items) value.push(item)
    ops.push(update.from === undefined ? pushAll(path, items) : concat(path, update.from))
  }
  // The fold does not have the initial items that the additions follow, or no list at all.
  if (stored === undefined && (old.length > 0 || ops.length === 0)) return { value, ops: [set(path, value)] }
  return { value, ops }
}

function mergeProperties(key: StateKey, { name, path, stored }: KeyPlace, updates: readonly KeyUpdate[]): Reduction {
  const old: unknown = stored === undefined ? (key.initial?.() ?? {}) : stored
  if (!isPlainObject(old)) throw misfit(name, 'is not an object, so nothing can be merged into it')
  const value = { ...old }
  const sources = new Map<string, Path | undefined>()
  for (const update of updates) {
    for (const [property, item] of Object.entries(update.value as Record<string, Value | undefined>)) {
      if (item === undefined) continue
      setOwn(value, property, item)
      sources.set(property, update.from && ([...update.from, property] as const))
    }
  }
  if (stored === undefined) {
    const only = updates.length === 1 && Object.keys(old).length === 0 ? updates[0]?.from : undefined
    return { value, ops: [refer(path, value, only)] }
  }
  const changed = [...sources].filter(
    ([property]) => !Object.hasOwn(old, property) || !Object.is(old[property], value[property]),
  )
  return { value, ops: changed.map(([property, from]) => refer([...path, property], value[property], from)) }
}

function callReducer(key: StateKey, { name, path, stored }: KeyPlace, updates: readonly KeyUpdate[]): Reduction {
  let value: unknown = stored === undefined ? key.initial?.() : stored
  for (const update of updates) {
    const old = value
    const length = Array.isArray(old) ? old.length : undefined
    value = reduceOnce(key, name, old, update.value)
    if (length !== undefined && (old as readonly unknown[]).length !== length) throw changedInPlace(name)
  }
  if (value === undefined) throw misfit(name, 'is undefined after its reducer ran')
  if (value instanceof Promise) throw misfit(name, 'is a promise after its reducer ran, which must not be async')
  const from = updates.length === 1 && updates[0]?.value === value ? updates[0].from : undefined
  return { value: value as Value, ops: stored === undefined ? [refer(path, value, from)] : difference() }

  function difference(): readonly Op[] {
    if (Object.is(stored, value)) return []
    if (!Array.isArray(stored) || !Array.isArray(value) || !startsWith(value, stored)) return [refer(path, value, from)]
    return value.length === stored.length ? [] : [pushAll(path, value.slice(stored.length))]
  }
}

function reduceOnce(key: StateKey, name: string, old: unknown, update: unknown): unknown {
  try {
    return key.reducer?.(old, showValue(update as Value))
  } catch (error) {
    throw explainFrozen(error, `The reducer of state.${name}`, `state.${name}`)
  }
}

// Not with `push`, whose items are arguments: a hundred thousand of them overflow the stack.
function pushAll(path: Path, items: readonly Value[]): Op {
  return ['push', path, items]
}

function startsWith(items: readonly unknown[], beginning: readonly unknown[]): boolean {
  return items.length >= beginning.length && beginning.every((item, at) => Object.is(item, items[at]))
}

/** A reference is longer than most numbers and short texts, so those are written out. */
const LONGEST_WRITTEN_OUT = 64

function refer(path: Path, value: unknown, from: Path | undefined): Op {
  if (from === undefined) return set(path, value)
  const large = typeof value === 'object' ? value !== null : typeof value === 'bigint'
  const long = typeof value === 'string' && value.length > LONGEST_WRITTEN_OUT
  return large || long ? copy(path, from) : set(path, value)
}

function misfit(name: string, problem: string): InvalidValueError {
  return new InvalidValueError(
    `state.${name}`,
    problem,
    'Correct its reducer, or the place that set it without its reducer; null is a value, undefined is not.',
  )
}

function changedInPlace(name: string): InvalidProgramError {
  return new InvalidProgramError(
    `The reducer of state.${name} changed the old list in place, which is lost when the thread is loaded.`,
    `state.${name}`,
    'Return a new list, for example [...old, item].',
  )
}
