import { promisify } from 'node:util'
import {
  brotliCompress,
  brotliCompressSync,
  brotliDecompress,
  brotliDecompressSync,
  constants,
  inflateRaw,
  inflateRawSync,
} from 'node:zlib'
import { CorruptError } from '../../core/errors.js'
import { CODES_1, CODES_2 } from './deflate-codes.js'
import { SmallDeflate } from './deflate-small.js'
import { DICTIONARY_1, DICTIONARY_2 } from './dictionary.js'
import { SmallInflate } from './inflate-small.js'

/**
 * How a body's bytes are packed: `br` is Brotli, `d1` raw deflate with our first dictionary, `d2` deflate with our second
 * and with codes of our own. Readers know every name here forever; writers use all but `d1`.
 */
export type Packing = 'plain' | 'br' | 'd1' | 'd2'

export function isPacking(name: unknown): name is Packing {
  return name === 'plain' || name === 'br' || name === 'd1' || name === 'd2'
}

/**
 * Below this a body is stored as it is: packing would cost a flow's step a fifth of all its time, and save little more
 * than a row's own overhead.
 */
const WORTH_DICTIONARY = 512
/** Below this, Brotli finds too little to repeat. */
const WORTH_BROTLI = 1024
/**
 * Up to here the dictionary is used for anything, thoroughly. That makes prose a quarter smaller than Brotli does, but
 * takes half as long again or more, which many sessions at a time would notice.
 */
const ANY_WITH_DICTIONARY = 1536
/** Up to here it is used for prose, quickly: a seventh smaller, in the same time, and unpacked in three fifths. */
const PROSE_WITH_DICTIONARY = 3 * 1024
/** Up to here it is used for records of the runtime, half of which it holds. Longer ones repeat themselves. */
const RECORDS_WITH_DICTIONARY = 8 * 1024

/** What is packed is at most so much of what it was. */
const WORTH_IT = 0.9

/** Above this, work moves to the thread pool so that a large body does not stall other conversations. */
const OFF_LOOP = 64 * 1024

/** Output grows in pieces of at most this size, so that a false size claims no memory before its body proves it. */
const LARGEST_CHUNK = 1024 * 1024

const INFLATE = { windowBits: 13, dictionary: DICTIONARY_1 }
const smallDeflate = new SmallDeflate(DICTIONARY_2, RECORDS_WITH_DICTIONARY, CODES_2)
const smallInflate = {
  d1: new SmallInflate(DICTIONARY_1, RECORDS_WITH_DICTIONARY, CODES_1),
  d2: new SmallInflate(DICTIONARY_2, RECORDS_WITH_DICTIONARY, CODES_2),
}

// On the event loop, speed counts: quality 0 takes half the time of 1 and leaves a tenth more. A window no larger than
// the input: the default of 4 MB costs more to allocate than a small body to compress.
const QUICK = { [constants.BROTLI_PARAM_QUALITY]: 0, [constants.BROTLI_PARAM_LGWIN]: 16 }

const compressAsync = promisify(brotliCompress)
const decompressAsync = promisify<Uint8Array, object, Buffer>(brotliDecompress)
const inflateAsync = promisify<Uint8Array, object, Buffer>(inflateRaw)

export interface Packed {
  readonly packing: Packing
  readonly bytes: Uint8Array
}

/** Packs the body of an entry: a small one, prose, or one with `records`, with the dictionary, others like any bytes. */
export function packEntry(raw: Uint8Array, records: boolean): Packed | Promise<Packed> {
  const { length } = raw
  if (length < WORTH_DICTIONARY) return { packing: 'plain', bytes: raw }
  const isThorough = length < (records ? RECORDS_WITH_DICTIONARY : ANY_WITH_DICTIONARY)
  if (!isThorough && !(length < PROSE_WITH_DICTIONARY && isProse(raw))) return pack(raw)
  const bytes = smallDeflate.deflate(raw, length * WORTH_IT, isThorough)
  return bytes === undefined ? { packing: 'plain', bytes: raw } : { packing: 'd2', bytes }
}

/**
 * Whether two fifths are spaces and letters behind "f": words, for which the code of small bodies is made. Numbers,
 * hexadecimal, base64 and capitals have fewer, and would get up to half as long again as with Brotli.
 */
function isProse(raw: Uint8Array): boolean {
  let found = 0
  for (let at = 0; at < raw.length; at += SAMPLED) {
    const byte = raw[at] as number
    if (byte === 0x20 || (byte > 0x66 && byte <= 0x7a)) found++
  }
  return found * SAMPLED * 5 >= raw.length * 2
}

/** One of so many bytes is looked at. */
const SAMPLED = 8

/** Compresses where it pays off: bytes of some size that shrink by a tenth or more. */
export function pack(raw: Uint8Array): Packed | Promise<Packed> {
  if (raw.length < WORTH_BROTLI) return { packing: 'plain', bytes: raw }
  const chunkSize = Math.min(raw.length, LARGEST_CHUNK)
  if (raw.length < OFF_LOOP) return choose(raw, brotliCompressSync(raw, { params: QUICK, chunkSize }))
  const params = { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length }
  return compressAsync(raw, { params, chunkSize }).then((packed) => choose(raw, packed))
}

function choose(raw: Uint8Array, packed: Uint8Array): Packed {
  return packed.length <= raw.length * WORTH_IT ? { packing: 'br', bytes: packed } : { packing: 'plain', bytes: raw }
}

/** The raw bytes, which must be exactly `size` long: inflation stops there, so a bomb costs no more than its claim. */
export function unpack(packing: Packing, bytes: Uint8Array, size: number): Uint8Array | Promise<Uint8Array> {
  if (packing === 'plain') return checkSize(bytes, size)
  const isDeflated = packing === 'd1'
  if (packing !== 'br') {
    const raw = smallInflate[packing].inflate(bytes, size)
    if (raw !== undefined) return raw
    // No other engine knows its codes.
    if (packing === 'd2') throw broken(undefined)
  }
  const maxOutputLength = Math.max(size, 1)
  // One byte more: the engine asks again whether there is more whenever a piece is full.
  const chunkSize = Math.min(Math.max(size + 1, 64), LARGEST_CHUNK)
  const options = isDeflated ? { ...INFLATE, maxOutputLength, chunkSize } : { maxOutputLength, chunkSize }
  if (size < OFF_LOOP) {
    try {
      return checkSize(isDeflated ? inflateRawSync(bytes, options) : brotliDecompressSync(bytes, options), size)
    } catch (cause) {
      throw broken(cause)
    }
  }
  return (isDeflated ? inflateAsync : decompressAsync)(bytes, options).then(
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
