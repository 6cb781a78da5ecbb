/**
 * Arrays in Postgres' binary form. `pg` writes arrays as text, where every byte of a bytea becomes two, is escaped,
 * and is parsed again by the server; a Buffer it sends as it is.
 */
export type Element = 'text' | 'bigint' | 'integer' | 'double' | 'boolean' | 'bytea'

const OIDS: Readonly<Record<Element, number>> = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  integer: 23,
  text: 25,
  double: 701,
}
const FIXED_SIZES: Partial<Record<Element, number>> = { boolean: 1, bigint: 8, integer: 4, double: 8 }

type Value = string | number | boolean | Uint8Array | null

export function encodeArray(element: 'text', values: readonly (string | null)[]): Buffer
export function encodeArray(element: 'bigint' | 'integer' | 'double', values: readonly (number | null)[]): Buffer
export function encodeArray(element: 'boolean', values: readonly (boolean | null)[]): Buffer
export function encodeArray(element: 'bytea', values: readonly (Uint8Array | null)[]): Buffer
export function encodeArray(element: Element, values: readonly Value[]): Buffer {
  let size = values.length === 0 ? 12 : 20
  for (const value of values) size += 4 + sizeOf(element, value)
  const buffer = Buffer.allocUnsafe(size)
  buffer.writeInt32BE(values.length === 0 ? 0 : 1, 0)
  buffer.writeInt32BE(values.includes(null) ? 1 : 0, 4)
  buffer.writeInt32BE(OIDS[element], 8)
  if (values.length === 0) return buffer
  buffer.writeInt32BE(values.length, 12)
  buffer.writeInt32BE(1, 16)
  let at = 20
  for (const value of values) {
    const length = sizeOf(element, value)
    buffer.writeInt32BE(value === null ? -1 : length, at)
    at += 4
    if (value !== null) write(buffer, at, element, value)
    at += length
  }
  return buffer
}

function sizeOf(element: Element, value: Value): number {
  if (value === null) return 0
  const fixed = FIXED_SIZES[element]
  if (fixed !== undefined) return fixed
  return typeof value === 'string' ? Buffer.byteLength(value) : (value as Uint8Array).length
}

function write(buffer: Buffer, at: number, element: Element, value: NonNullable<Value>): void {
  switch (element) {
    case 'text':
      buffer.write(value as string, at)
      return
    case 'bigint':
      buffer.writeBigInt64BE(BigInt(value as number), at)
      return
    case 'integer':
      buffer.writeInt32BE(value as number, at)
      return
    case 'double':
      buffer.writeDoubleBE(value as number, at)
      return
    case 'boolean':
      buffer.writeInt8(value ? 1 : 0, at)
      return
    case 'bytea':
      buffer.set(value as Uint8Array, at)
  }
}
