import { promisify } from 'node:util'
import { brotliCompress, brotliCompressSync, brotliDecompress, brotliDecompressSync, constants } from 'node:zlib'
import { CorruptError } from '../core/errors.js'

/** How a body's bytes are packed. Readers know every name here forever; writers use the ones this version emits. */
export type Packing = 'plain' | 'br'

/** Below this, a compressed body saves less than its overhead costs. */
const WORTH_COMPRESSING = 1024
/** Above this, work moves to the thread pool so that a large body does not stall other conversations. */
const OFF_LOOP = 64 * 1024

/** Output grows in pieces of at most this size, so that a false size claims no memory before its body proves it. */
const LARGEST_CHUNK = 1024 * 1024

const compressAsync = promisify(brotliCompress)
const decompressAsync = promisify<Uint8Array, object, Buffer>(brotliDecompress)

export interface Packed {
  readonly packing: Packing
  readonly bytes: Uint8Array
}

/** Compresses where it pays off: bodies of some size that shrink by a tenth or more. */
export function pack(raw: Uint8Array): Packed | Promise<Packed> {
  if (raw.length < WORTH_COMPRESSING) return { packing: 'plain', bytes: raw }
  const params = { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length }
  const options = { params, chunkSize: Math.min(raw.length, LARGEST_CHUNK) }
  if (raw.length < OFF_LOOP) {
    // On the event loop, speed counts: quality 0 takes half the time of 1 and leaves a tenth more. A window no larger
    // than the input: the default of 4 MB costs more to allocate than a small body to compress.
    params[constants.BROTLI_PARAM_QUALITY] = 0
    params[constants.BROTLI_PARAM_LGWIN] = 16
    return choose(raw, brotliCompressSync(raw, options))
  }
  return compressAsync(raw, options).then((packed) => choose(raw, packed))
}

function choose(raw: Uint8Array, packed: Uint8Array): Packed {
  return packed.length <= raw.length * 0.9 ? { packing: 'br', bytes: packed } : { packing: 'plain', bytes: raw }
}

/** The raw bytes, which must be exactly `size` long: inflation stops there, so a bomb costs no more than its claim. */
export function unpack(packing: Packing, bytes: Uint8Array, size: number): Uint8Array | Promise<Uint8Array> {
  if (packing === 'plain') return checkSize(bytes, size)
  const options = { maxOutputLength: Math.max(size, 1), chunkSize: Math.min(Math.max(size, 64), LARGEST_CHUNK) }
  if (size < OFF_LOOP) {
    try {
      return checkSize(brotliDecompressSync(bytes, options), size)
    } catch (cause) {
      throw broken(cause)
    }
  }
  return decompressAsync(bytes, options).then(
    (raw) => checkSize(raw, size),
    (cause: unknown) => {
      throw broken(cause)
    },
  )
}

function checkSize(raw: Uint8Array, size: number): Uint8Array {
  if (raw.length !== size) {
    throw new CorruptError(`A stored body holds ${raw.length} bytes where ${size} were written.`, {
      expected: size,
      actual: raw.length,
    })
  }
  return raw
}

function broken(cause: unknown): unknown {
  if (cause instanceof CorruptError) return cause
  return new CorruptError('A stored body does not decompress to what was written.', {}, cause)
}
