import type { StoredEntry } from '../log/contract.js'

/** Keyframe, length of the header, hash. */
const FIXED = 8 + 4 + 32

/** An entry as one value of the cache. Its seq is the name of the field that holds it. */
export function packEntry({ keyframe, hash, header, body }: StoredEntry): Buffer {
  const packed = Buffer.allocUnsafe(FIXED + header.length + body.length)
  packed.writeDoubleBE(keyframe, 0)
  packed.writeUInt32BE(header.length, 8)
  packed.write(hash, 12, 'hex')
  packed.set(header, FIXED)
  packed.set(body, FIXED + header.length)
  return packed
}

/** Undefined for bytes that can't be an entry. Whether they are the right ones is told by their hash, above. */
export function unpackEntry(seq: number, packed: Buffer): StoredEntry | undefined {
  if (packed.length < FIXED) return undefined
  const keyframe = packed.readDoubleBE(0)
  const end = FIXED + packed.readUInt32BE(8)
  if (!Number.isSafeInteger(keyframe) || keyframe < 0 || keyframe > seq || end > packed.length) return undefined
  const hash = packed.toString('hex', 12, FIXED)
  return { seq, keyframe, hash, header: packed.subarray(FIXED, end), body: packed.subarray(end) }
}
