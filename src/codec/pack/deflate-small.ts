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

/** Shorter repetitions are not looked for: a reference to three bytes costs as much as they do. */
const SHORTEST = 4
const LONGEST = 258
/** A repetition of this length is good enough. */
const LONG = 64
/** How many earlier places are compared. */
const MOST_PLACES = 16
const HASH_BITS = 13
/** How far back a reader with a window of 8 KB surely reaches. */
const FARTHEST = 8192 - 262

/**
 * Packs small bodies as raw deflate that every reader of the format understands. Setting up the engine of the platform
 * takes longer than packing a few hundred bytes, and it reads the dictionary anew each time: here that is done once.
 * Not reentrant, which synchronous code can't notice.
 */
export class SmallDeflate {
  readonly #mostBytes: number
  readonly #begin: number
  /** The dictionary, and behind it the body. */
  readonly #window: Uint8Array
  /** The newest place, plus one, of four bytes with this hash, after the dictionary and as the body is read. */
  readonly #dictionaryPlaces = new Uint16Array(1 << HASH_BITS)
  readonly #places = new Uint16Array(1 << HASH_BITS)
  /** For each place the one before it with the same hash. */
  readonly #earlier: Uint16Array
  /** Literals, and references as length << 16 | distance. */
  readonly #tokens: Uint32Array
  readonly #out: Uint8Array
  readonly #fixed = new BlockWriter(FIXED)
  readonly #prose = new BlockWriter(PROSE)

  constructor(dictionary: Uint8Array, mostBytes: number) {
    this.#mostBytes = mostBytes
    this.#begin = dictionary.length
    this.#window = new Uint8Array(dictionary.length + mostBytes)
    this.#window.set(dictionary)
    this.#earlier = new Uint16Array(dictionary.length + mostBytes)
    this.#tokens = new Uint32Array(mostBytes)
    this.#out = new Uint8Array(mostBytes)
    const places = this.#dictionaryPlaces
    for (let at = 0; at + SHORTEST <= dictionary.length; at++) {
      const hash = hashOf(fourAt(this.#window, at))
      this.#earlier[at] = places[hash] as number
      places[hash] = at + 1
    }
  }

  /** The packed body, or undefined if it would be longer than `most` bytes, or the body is too long for this. */
  deflate(raw: Uint8Array, most: number): Uint8Array | undefined {
    if (raw.length > this.#mostBytes) return undefined
    const count = this.#findTokens(raw)
    const tokens = this.#tokens
    const fixed = this.#fixed.bitsOf(tokens, count)
    const prose = this.#prose.bitsOf(tokens, count)
    if (Math.min(fixed, prose) > Math.min(most, raw.length) * 8) return undefined
    const length = (fixed <= prose ? this.#fixed : this.#prose).write(tokens, count, this.#out)
    return Buffer.from(this.#out.subarray(0, length))
  }

  /** Divides the body into literals and references to what came before, and returns how many there are. */
  #findTokens(raw: Uint8Array): number {
    const window = this.#window
    const places = this.#places
    const earlier = this.#earlier
    const tokens = this.#tokens
    window.set(raw, this.#begin)
    places.set(this.#dictionaryPlaces)
    const end = this.#begin + raw.length
    const lastHashed = end - SHORTEST
    let count = 0
    let at = this.#begin
    // The four bytes from here on: each place takes one more from the window.
    let four = raw.length < SHORTEST ? 0 : fourAt(window, at) << 8
    while (at < end) {
      let longest = 0
      let from = 0
      if (at <= lastHashed) {
        four = (four >>> 8) | ((window[at + 3] as number) << 24)
        const hash = hashOf(four)
        let place = places[hash] as number
        earlier[at] = place
        places[hash] = at + 1
        const most = Math.min(LONGEST, end - at)
        for (let left = MOST_PLACES; left > 0 && place > 0 && at - place < FARTHEST; left--) {
          const before = place - 1
          place = earlier[before] as number
          if (window[before + longest] !== window[at + longest]) continue
          let length = 0
          while (length < most && window[before + length] === window[at + length]) length++
          if (length <= longest) continue
          longest = length
          from = before
          if (length === most || length >= LONG) break
        }
      }
      if (longest < SHORTEST) {
        tokens[count++] = window[at++] as number
        continue
      }
      tokens[count++] = (longest << 16) | (at - from)
      const next = at + longest
      for (at++; at < next && at <= lastHashed; at++) {
        four = (four >>> 8) | ((window[at + 3] as number) << 24)
        const hash = hashOf(four)
        earlier[at] = places[hash] as number
        places[hash] = at + 1
      }
      at = next
    }
    return count
  }
}

/** Writes tokens as one block with one code. */
class BlockWriter {
  readonly #code: BlockCode
  /** What a literal is written as, and with how many bits; the end of the block at its symbol. */
  readonly #literals: Uint16Array
  readonly #literalBits: Uint8Array
  /** The same by length, with the bits that follow the symbol. */
  readonly #lengths = new Uint32Array(LONGEST + 1)
  readonly #lengthBits = new Uint8Array(LONGEST + 1)
  /** The same by symbol of a distance, without what follows it. */
  readonly #distances: Uint16Array
  readonly #distanceBits: Uint8Array

  constructor(code: BlockCode) {
    this.#code = code
    this.#literals = codesOf(code.lengths)
    this.#literalBits = code.lengths
    this.#distances = codesOf(code.distanceLengths)
    this.#distanceBits = code.distanceLengths
    for (let length = SHORTEST; length <= LONGEST; length++) {
      const index = lastAtMost(LENGTH_BASE, length)
      const symbol = END + 1 + index
      const bits = code.lengths[symbol] as number
      this.#lengths[length] = (this.#literals[symbol] as number) | ((length - (LENGTH_BASE[index] as number)) << bits)
      this.#lengthBits[length] = bits + (LENGTH_EXTRA[index] as number)
    }
  }

  /** How long the block would be. */
  bitsOf(tokens: Uint32Array, count: number): number {
    const literalBits = this.#literalBits
    const lengthBits = this.#lengthBits
    const distanceBits = this.#distanceBits
    let bits = this.#code.headerBits + (literalBits[END] as number)
    for (let i = 0; i < count; i++) {
      const token = tokens[i] as number
      if (token < END) {
        bits += literalBits[token] as number
        continue
      }
      const symbol = distanceSymbol(token & 0xffff)
      bits += (lengthBits[token >> 16] as number) + (distanceBits[symbol] as number)
      bits += DISTANCE_EXTRA[symbol] as number
    }
    return bits
  }

  /** Writes the block, which fits, and returns how many bytes it takes. */
  write(tokens: Uint32Array, count: number, out: Uint8Array): number {
    const { header, headerBits } = this.#code
    const literals = this.#literals
    const literalBits = this.#literalBits
    const whole = headerBits >> 3
    out.set(header.subarray(0, whole))
    let length = whole
    let bits = headerBits & 7
    let held = bits === 0 ? 0 : (header[whole] as number)
    for (let i = 0; i < count; i++) {
      const token = tokens[i] as number
      if (token < END) {
        held |= (literals[token] as number) << bits
        bits += literalBits[token] as number
      } else {
        held |= (this.#lengths[token >> 16] as number) << bits
        bits += this.#lengthBits[token >> 16] as number
        for (; bits >= 8; bits -= 8, held >>= 8) out[length++] = held
        const distance = token & 0xffff
        const symbol = distanceSymbol(distance)
        const symbolBits = this.#distanceBits[symbol] as number
        const rest = distance - (DISTANCE_BASE[symbol] as number)
        held |= ((this.#distances[symbol] as number) | (rest << symbolBits)) << bits
        bits += symbolBits + (DISTANCE_EXTRA[symbol] as number)
      }
      for (; bits >= 8; bits -= 8, held >>= 8) out[length++] = held
    }
    held |= (literals[END] as number) << bits
    bits += literalBits[END] as number
    for (; bits > 0; bits -= 8, held >>= 8) out[length++] = held
    return length
  }
}

function fourAt(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
  return low | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)
}

function hashOf(four: number): number {
  return Math.imul(four, 0x9e3779b1) >>> (32 - HASH_BITS)
}

/** Symbols of distances up to 256, and of longer ones by their 128s, because a symbol covers whole ones of those. */
const NEAR = Uint8Array.from({ length: 257 }, (_, distance) => lastAtMost(DISTANCE_BASE, distance))
const FAR = Uint8Array.from({ length: 257 }, (_, times) => lastAtMost(DISTANCE_BASE, times * 128 + 1))

function distanceSymbol(distance: number): number {
  return (distance <= 256 ? NEAR[distance] : FAR[(distance - 1) >> 7]) as number
}

function lastAtMost(bases: readonly number[], value: number): number {
  let index = bases.length - 1
  while (index > 0 && (bases[index] as number) > value) index--
  return index
}
