import {
  type BlockCode,
  codesOf,
  DISTANCE_BASE,
  DISTANCE_EXTRA,
  END,
  FIXED,
  LENGTH_BASE,
  LENGTH_EXTRA,
  PROSE,
} from './deflate-codes.js'

/**
 * Unpacks raw deflate of one block with one of the codes that small bodies are written with, which takes a third of the
 * time that the platform's engine needs. Whatever is different, damaged included, is left to that.
 */
export class SmallInflate {
  readonly #dictionary: Uint8Array
  readonly #fixed = new BlockReader(FIXED)
  readonly #prose = new BlockReader(PROSE)

  constructor(dictionary: Uint8Array) {
    this.#dictionary = dictionary
  }

  /** Exactly `size` bytes, or undefined if this is not for here to unpack. */
  inflate(packed: Uint8Array, size: number): Uint8Array | undefined {
    const reader = this.#fixed.hasBegun(packed) ? this.#fixed : this.#prose.hasBegun(packed) ? this.#prose : undefined
    return reader?.read(packed, size, this.#dictionary)
  }
}

const MOST_EXTRA = 12

/** Reads one block with one code. */
class BlockReader {
  readonly #code: BlockCode
  readonly #symbols: Uint16Array
  readonly #symbolMask: number
  readonly #distances: Uint16Array
  readonly #distanceMask: number

  constructor(code: BlockCode) {
    this.#code = code
    this.#symbols = tableOf(code.lengths)
    this.#symbolMask = this.#symbols.length - 1
    this.#distances = tableOf(code.distanceLengths)
    this.#distanceMask = this.#distances.length - 1
  }

  hasBegun(packed: Uint8Array): boolean {
    const { header, headerBits } = this.#code
    const whole = headerBits >> 3
    if (packed.length <= whole) return false
    for (let i = 0; i < whole; i++) if (packed[i] !== header[i]) return false
    const mask = (1 << (headerBits & 7)) - 1
    return ((packed[whole] as number) & mask) === (header[whole] as number)
  }

  read(packed: Uint8Array, size: number, dictionary: Uint8Array): Uint8Array | undefined {
    const symbols = this.#symbols
    const distances = this.#distances
    const out = Buffer.allocUnsafe(size)
    let length = 0
    let at = this.#code.headerBits >> 3
    let bits = 8 - (this.#code.headerBits & 7)
    let held = (packed[at++] as number) >> (8 - bits)
    for (;;) {
      // Enough for a symbol and what follows it. Behind the last byte there are zeros, which are noticed below.
      for (; bits <= 20; bits += 8) held |= (packed[at++] ?? 0) << bits
      const entry = symbols[held & this.#symbolMask] as number
      held >>>= entry & 15
      bits -= entry & 15
      const symbol = entry >> 4
      if (symbol < END) {
        if (length === size) return undefined
        out[length++] = symbol
        continue
      }
      // Bytes that were taken beyond the last one must not have been needed.
      if (symbol === END) return length === size && at - (bits >> 3) <= packed.length ? out : undefined
      const index = symbol - END - 1
      const extra = LENGTH_EXTRA[index]
      if (extra === undefined) return undefined
      const many = (LENGTH_BASE[index] as number) + (held & ((1 << extra) - 1))
      held >>>= extra
      bits -= extra
      for (; bits <= 22; bits += 8) held |= (packed[at++] ?? 0) << bits
      const distanceEntry = distances[held & this.#distanceMask] as number
      held >>>= distanceEntry & 15
      bits -= distanceEntry & 15
      const far = distanceEntry >> 4
      const farExtra = DISTANCE_EXTRA[far]
      // Farther than writers go: not every one of its bits need be here.
      if (farExtra === undefined || farExtra > MOST_EXTRA) return undefined
      const distance = (DISTANCE_BASE[far] as number) + (held & ((1 << farExtra) - 1))
      held >>>= farExtra
      bits -= farExtra
      const end = length + many
      if (end > size || distance > length + dictionary.length) return undefined
      // What it refers to may begin in the dictionary and reach into what is being written.
      let from = length - distance
      for (; from < 0 && length < end; from++) out[length++] = dictionary[dictionary.length + from] as number
      for (; length < end; from++) out[length++] = out[from] as number
    }
  }
}

/** By the next bits: the symbol they begin with << 4 | how many bits that takes. */
function tableOf(lengths: Uint8Array): Uint16Array {
  const codes = codesOf(lengths)
  const most = Math.max(...lengths)
  // What no code leads to reads as a symbol that does not exist.
  const table = new Uint16Array(1 << most).fill((lengths.length << 4) | 1)
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const bits = lengths[symbol] as number
    for (let rest = 0; rest < 1 << (most - bits); rest++) {
      table[(codes[symbol] as number) | (rest << bits)] = (symbol << 4) | bits
    }
  }
  return table
}
