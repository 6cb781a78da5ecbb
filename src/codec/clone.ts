import { setOwn, type Value } from './value.js'

/** A copy that shares nothing with a value which is known to be storable: for whoever may do with it what he likes. */
export function cloneValue<V extends Value | undefined>(value: V): V {
  return clone(value) as V
}

/**
 * Makes a value that is known to be storable unchangeable, down to its last list. What is frozen already is taken to be
 * so throughout. Dates and bytes can't be frozen.
 */
export function freezeValue(value: Value | undefined): void {
  if (!isContainer(value) || Object.isFrozen(value)) return
  Object.freeze(value)
  if (Array.isArray(value)) for (const item of value) freezeValue(item)
  else for (const key of Object.keys(value)) freezeValue((value as Record<string, Value>)[key])
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
