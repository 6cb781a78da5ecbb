import {
  type BlockCode,
  codesOf,
  DISTANCE_BASE,
  DISTANCE_EXTRA,
  END,
  LENGTH_BASE,
  LENGTH_EXTRA,
} from './deflate-codes.js'

/** How far beyond the end reading and writing may go, where it saves a look at each step. */
const ROOM = 16

/**
 * Unpacks one block of deflate with one of the codes that small bodies are written with, which takes a third of the time
 * that the platform's engine needs. Whatever is different, damaged included, is for others. Not reentrant, which
 * synchronous code can't notice.
 */
export class SmallInflate {
  readonly #mostBytes: number
  readonly #begin: number
  readonly #packed: Uint8Array
  readonly #packedView: DataView
  /** The dictionary, and behind it what is unpacked: references reach from the one into the other. */
  readonly #window: Uint8Array
  readonly #windowView: DataView
  readonly #readers: readonly BlockReader[]

  constructor(dictionary: Uint8Array, mostBytes: number, codes: readonly BlockCode[]) {
    this.#readers = codes.map((code) => new BlockReader(code))
    this.#mostBytes = mostBytes
    this.#begin = dictionary.length
    this.#packed = new Uint8Array(mostBytes + ROOM)
    this.#packedView = new DataView(this.#packed.buffer)
    this.#window = new Uint8Array(dictionary.length + mostBytes + ROOM)
    this.#windowView = new DataView(this.#window.buffer)
    this.#window.set(dictionary)
  }

  /** Exactly `size` bytes, or undefined if this is not for here to unpack. */
  inflate(packed: Uint8Array, size: number): Uint8Array | undefined {
    if (Math.max(size, packed.length) > this.#mostBytes) return undefined
    const reader = this.#readers.find((each) => each.hasBegun(packed))
    if (reader === undefined) return undefined
    this.#packed.set(packed)
    const [begin, end] = [this.#begin, this.#begin + size]
    const isRead = reader.read(this.#packedView, packed.length, this.#window, this.#windowView, begin, end)
    return isRead ? Buffer.from(this.#window.subarray(begin, end)) : undefined
  }
}

/** Farther than writers go: not every one of its bits need be here. */
const MOST_EXTRA = 12

/** Reads one block with one code. */
class BlockReader {
  readonly #code: BlockCode
  readonly #symbols: Uint32Array
  readonly #distances: Uint32Array

  constructor(code: BlockCode) {
    this.#code = code
    this.#symbols = pairLiterals(
      tableOf(code.lengths, (symbol) => {
        if (symbol < END) return ONE_LITERAL | (symbol << 8)
        if (symbol === END) return 0
        return reference(LENGTH_BASE[symbol - END - 1], LENGTH_EXTRA[symbol - END - 1])
      }),
    )
    this.#distances = tableOf(code.distanceLengths, (symbol) =>
      reference(DISTANCE_BASE[symbol], DISTANCE_EXTRA[symbol]),
    )
  }

  hasBegun(packed: Uint8Array): boolean {
    const { header, headerBits } = this.#code
    const whole = headerBits >> 3
    if (packed.length <= whole) return false
    for (let i = 0; i < whole; i++) if (packed[i] !== header[i]) return false
    const mask = (1 << (headerBits & 7)) - 1
    return ((packed[whole] as number) & mask) === (header[whole] as number)
  }

  /**
   * Unpacks into `out` what takes it from `length` exactly to `end`; false if that is not what is packed. What it may
   * refer to comes before. Behind both ends there is room.
   */
  read(
    packed: DataView,
    packedLength: number,
    out: Uint8Array,
    outView: DataView,
    begin: number,
    end: number,
  ): boolean {
    const symbols = this.#symbols
    const symbolMask = symbols.length - 1
    const distances = this.#distances
    const distanceMask = distances.length - 1
    const { headerBits } = this.#code
    let length = begin
    let at = headerBits >> 3
    let bits = 8 - (headerBits & 7)
    let held = packed.getUint8(at++) >> (8 - bits)
    // What follows the last byte belongs to nothing. Having used it is noticed at the end of the block.
    while (at <= packedLength + 4 && length <= end) {
      held |= packed.getInt32(at, true) << bits
      at += (31 - bits) >> 3
      bits |= 24
      const entry = symbols[held & symbolMask] as number
      held >>>= entry & 31
      bits -= entry & 31
      const literals = (entry >> 5) & 3
      if (literals > 0) {
        out[length] = entry >> 8
        out[length + 1] = entry >> 16
        length += literals
        continue
      }
      if (entry >> 8 === 0) return length === end && at - (bits >> 3) <= packedLength
      const extra = (entry >> 8) & 15
      const stop = length + (entry >> 16) + (held & ((1 << extra) - 1))
      held >>>= extra
      bits -= extra
      held |= packed.getInt32(at, true) << bits
      at += (31 - bits) >> 3
      bits |= 24
      const far = distances[held & distanceMask] as number
      held >>>= far & 31
      bits -= far & 31
      const farExtra = (far >> 8) & 15
      const distance = (far >> 16) + (held & ((1 << farExtra) - 1))
      if (extra > MOST_EXTRA || farExtra > MOST_EXTRA || stop > end || distance > length) return false
      held >>>= farExtra
      bits -= farExtra
      let from = length - distance
      // Four at a time, which may write a little too far: that is written again.
      if (distance >= 4) {
        for (; length < stop; length += 4, from += 4) outView.setInt32(length, outView.getInt32(from, true), true)
        length = stop
      } else while (length < stop) out[length++] = out[from++] as number
    }
    return false
  }
}

const ONE_LITERAL = 1 << 5
const TWO_LITERALS = 2 << 5

/** What a length or a distance begins with, and how many bits follow. There are codes that mean none. */
function reference(base: number | undefined, extra: number | undefined): number {
  return base === undefined || extra === undefined ? NONE : (base << 16) | (extra << 8)
}

const NONE = 15 << 8

/** By the next bits: what the symbol says that they begin with | how many bits that takes. */
function tableOf(lengths: Uint8Array, say: (symbol: number) => number): Uint32Array {
  const codes = codesOf(lengths)
  const most = Math.max(...lengths)
  const table = new Uint32Array(1 << most).fill(NONE | 1)
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const bits = lengths[symbol] as number
    for (let rest = 0; rest < 1 << (most - bits); rest++) {
      table[(codes[symbol] as number) | (rest << bits)] = say(symbol) | bits
    }
  }
  return table
}

/** Where the bits hold two literals, both are read at once: half as many turns, each of which may go another way. */
function pairLiterals(table: Uint32Array): Uint32Array {
  const most = Math.log2(table.length)
  return table.map((first, index) => {
    const second = table[index >> (first & 31)] as number
    const bits = (first & 31) + (second & 31)
    const isPair = (first & second & ONE_LITERAL) !== 0 && bits <= most
    return isPair ? TWO_LITERALS | ((second >> 8) << 16) | ((first >> 8) << 8) | bits : first
  })
}
