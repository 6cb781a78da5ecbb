import { guardDate } from './encode/guard-date.js'
import { setOwn, type Value } from './value.js'
import { isWide } from './wide-record.js'

/** A copy that shares nothing with a value known to be storable: for callers that may do with it what they like. */
export function cloneValue<V extends Value | undefined>(value: V): V {
  return clone(value) as V
}

/**
 * A value known to be storable, in a form that nobody can change: for programs, whose changes would not be recorded.
 * Lists and objects are frozen, and a Date refuses to be set; these are the value itself. Bytes can't be frozen, so a
 * value that contains some is shown as a copy in which each read gets its own bytes. What is already frozen is assumed
 * to be frozen throughout.
 */
export function showValue<V extends Value | undefined>(value: V): V {
  return show(value) as V
}

/** An object with these properties that nobody can change. Each read of bytes gets a copy of them. */
export function showProperties(entries: Iterable<readonly [string, Value]>): { readonly [key: string]: Value } {
  const shown: Record<string, Value> = {}
  for (const [key, value] of entries) showAt(shown, key, value)
  return Object.freeze(shown)
}

/** Like `showValue`, for a list whose items are already shown, except for bytes. */
export function showItems(items: readonly Value[]): readonly Value[] {
  const shown: Value[] = [...items]
  for (let i = 0; i < items.length; i++) if (items[i] instanceof Uint8Array) showAt(shown, i, items[i] as Value)
  return Object.freeze(shown)
}

function show(value: Value | undefined): Value | undefined {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  if (value instanceof Date) return guardDate(value)
  if (Object.isFrozen(value)) return value
  if (Array.isArray(value)) {
    const shown = value.map((item: Value) => show(item) as Value)
    return isSame(shown, value) ? Object.freeze(value) : showItems(shown)
  }
  const record = value as Record<string, Value>
  const keys = Object.keys(record)
  const shown = keys.map((key) => show(record[key]) as Value)
  const before = keys.map((key) => record[key] as Value)
  // A wide record refuses changes by itself, and can't be frozen.
  return isSame(shown, before) && !isWide(record)
    ? Object.freeze(record)
    : showProperties(keys.map((key, i) => [key, shown[i] as Value]))
}

function isSame(shown: readonly Value[], before: readonly Value[]): boolean {
  return shown.every((item, i) => item === before[i] && !(item instanceof Uint8Array))
}

function showAt(target: Value[] | Record<string, Value>, key: string | number, value: Value): void {
  if (value instanceof Uint8Array) {
    Object.defineProperty(target, key, { get: () => new Uint8Array(value), enumerable: true, configurable: true })
  } else setOwn(target as Record<string, Value>, key as string, value)
}

function clone(value: Value | undefined): Value | undefined {
  if (!isContainer(value)) {
    if (value instanceof Date) return new Date(value)
    return value instanceof Uint8Array ? new Uint8Array(value) : value
  }
  if (Array.isArray(value)) {
    const copy: Value[] = new Array(value.length)
    for (let i = 0; i < value.length; i++) copy[i] = clone(value[i]) as Value
    return copy
  }
  const copy: Record<string, Value> = {}
  for (const key of Object.keys(value)) setOwn(copy, key, clone((value as Record<string, Value>)[key]))
  return copy
}

function isContainer(value: Value | undefined): value is readonly Value[] | { readonly [key: string]: Value } {
  return typeof value === 'object' && value !== null && !(value instanceof Date) && !(value instanceof Uint8Array)
}
