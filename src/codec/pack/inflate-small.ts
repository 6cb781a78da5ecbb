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
  readonly #mostBytes: number
  readonly #begin: number
  /** The dictionary, and behind it what is unpacked: references reach from the one into the other. */
  readonly #window: Uint8Array
  readonly #fixed = new BlockReader(FIXED)
  readonly #prose = new BlockReader(PROSE)

  constructor(dictionary: Uint8Array, mostBytes: number) {
    this.#mostBytes = mostBytes
    this.#begin = dictionary.length
    this.#window = new Uint8Array(dictionary.length + mostBytes)
    this.#window.set(dictionary)
  }

  /** Exactly `size` bytes, or undefined if this is not for here to unpack. */
  inflate(packed: Uint8Array, size: number): Uint8Array | undefined {
    if (size > this.#mostBytes) return undefined
    const reader = this.#fixed.hasBegun(packed) ? this.#fixed : this.#prose.hasBegun(packed) ? this.#prose : undefined
    return reader?.read(packed, size, this.#window, this.#begin)
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

  /** @param out what it may refer to, and behind that, from `begin` on, room for the result */
  read(packed: Uint8Array, size: number, out: Uint8Array, begin: number): Uint8Array | undefined {
    const symbols = this.#symbols
    const symbolMask = this.#symbolMask
    const { headerBits } = this.#code
    // A few zeros behind the last byte, so that the end needs no look at each step. Having used them is noticed below.
    const bytes = new Uint8Array(packed.length + 8)
    bytes.set(packed)
    const end = begin + size
    let length = begin
    let at = headerBits >> 3
    let bits = 8 - (headerBits & 7)
    let held = (bytes[at++] as number) >> (8 - bits)
    for (;;) {
      if (bits < 15) {
        held |= ((bytes[at] as number) | ((bytes[at + 1] as number) << 8)) << bits
        at += 2
        bits += 16
        if (at > bytes.length) return undefined
      }
      const entry = symbols[held & symbolMask] as number
      held >>= entry & 15
      bits -= entry & 15
      const symbol = entry >> 4
      if (symbol < END) {
        if (length === end) return undefined
        out[length++] = symbol
        continue
      }
      if (symbol === END) {
        if (length !== end || at - (bits >> 3) > packed.length) return undefined
        return Buffer.from(out.subarray(begin, end))
      }
      const extra = LENGTH_EXTRA[symbol - END - 1]
      if (extra === undefined) return undefined
      if (bits < 15) {
        held |= ((bytes[at] as number) | ((bytes[at + 1] as number) << 8)) << bits
        at += 2
        bits += 16
      }
      const stop = length + (LENGTH_BASE[symbol - END - 1] as number) + (held & ((1 << extra) - 1))
      held >>= extra
      bits -= extra
      for (; bits <= 22; bits += 8) held |= (bytes[at++] as number) << bits
      const farEntry = this.#distances[held & this.#distanceMask] as number
      held >>= farEntry & 15
      bits -= farEntry & 15
      const far = farEntry >> 4
      const farExtra = DISTANCE_EXTRA[far]
      // Farther than writers go: not every one of its bits need be here.
      if (farExtra === undefined || farExtra > MOST_EXTRA || at > bytes.length) return undefined
      const distance = (DISTANCE_BASE[far] as number) + (held & ((1 << farExtra) - 1))
      held >>= farExtra
      bits -= farExtra
      if (stop > end || distance > length) return undefined
      for (let from = length - distance; length < stop; from++) out[length++] = out[from] as number
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
