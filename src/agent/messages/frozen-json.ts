import { setOwn, type Value } from '../../codec/value.js'

/** Freezes a value throughout if it is JSON; false, with nothing frozen, if it holds anything else. */
export function freezeJson(value: unknown): boolean {
  if (!isJson(value)) return false
  freeze(value)
  return true
}

/** A copy of the lists and objects in a value, which shares the rest with it: bytes, addresses. */
export function copyJson<Json>(value: Json): Json {
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value
  if (Array.isArray(value)) return value.map(copyJson) as Json
  const copy: Record<string, Value> = {}
  for (const key of Object.keys(value)) setOwn(copy, key, copyJson((value as Record<string, Value>)[key]) as Value)
  return copy as Json
}

/** Whether a copy of JSON, which may have been changed since, still equals what it was made of. */
export function equalsJson(copy: unknown, json: unknown): boolean {
  if (copy === json) return true
  if (typeof copy !== 'object' || copy === null || typeof json !== 'object' || json === null) return false
  if (!isPlain(copy) || Array.isArray(copy) !== Array.isArray(json)) return false
  const keys = Object.keys(copy)
  if (keys.length !== Object.keys(json).length) return false
  const [ours, theirs] = [json, copy] as Record<string, unknown>[]
  return keys.every((key) => Object.hasOwn(json, key) && equalsJson(theirs?.[key], ours?.[key]))
}

function isJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function'
  if (!isPlain(value)) return false
  return Array.isArray(value) ? value.every(isJson) : Object.values(value).every(isJson)
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  for (const inner of Object.values(value)) freeze(inner)
  Object.freeze(value)
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null
}
