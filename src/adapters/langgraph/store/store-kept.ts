import type { Value } from '../../../index.js'
import { decode } from '../values/decode.js'
import { encode, setOwn, TAG } from '../values/encode.js'
import { isFilterable } from './store-filter.js'

/** How an item is kept. */
export interface Kept {
  /** Its fields as they are stored, by whose values a backend may narrow a search. */
  readonly value: Value
  /** All of it, where it has the field that marks something else in the stored form: `value` is then only searched by. */
  readonly whole?: Value
  /** The vectors by which it is found. */
  readonly vectors?: readonly Value[]
}

export function toKept(value: Record<string, unknown>, vectors: readonly Float32Array[]): Kept {
  const node = encode(value, ['value'])
  const made = vectors.length === 0 ? {} : { vectors: vectors.map((vector) => new Uint8Array(vector.buffer)) }
  if (!Object.hasOwn(value, TAG)) return { value: node, ...made }
  const fields: Record<string, Value> = {}
  for (const field of Object.keys(value)) {
    if (isFilterable(value[field])) setOwn(fields, field, value[field])
  }
  return { value: fields, whole: node, ...made }
}

export function readValue({ value, whole = value }: Kept): Record<string, unknown> {
  return decode(whole) as Record<string, unknown>
}

/** One field, without what it costs to read the others. */
export function readField({ value, whole = value }: Kept, field: string): unknown {
  const node = whole as { readonly [key: string]: Value }
  if (Object.hasOwn(node, TAG)) {
    const all = decode(node) as Record<string, unknown>
    return Object.hasOwn(all, field) ? all[field] : undefined
  }
  return Object.hasOwn(node, field) ? decode(node[field] as Value) : undefined
}

export function readVectors({ vectors = [] }: Kept): Float32Array[] {
  return vectors.map((bytes) => new Float32Array(new Uint8Array(bytes as Uint8Array).buffer))
}
