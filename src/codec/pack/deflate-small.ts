import {
  type BlockCode,
  codesOf,
  DISTANCE_BASE,
  DISTANCE_EXTRA,
  END,
  LENGTH_BASE,
  LENGTH_EXTRA,
} from './deflate-codes.js'

/** Shorter repetitions are not looked for: a reference to three bytes costs as much as they do. */
const SHORTEST = 4
const LONGEST = 258
/** A repetition of this length is good enough. */
const LONG = 64
/** How many earlier places are compared where that is done thoroughly. */
const MOST_PLACES = 16
/** How much of a repetition can be referred to by itself: the rest is found where it came from. */
const REPEATED = 16
const HASH_BITS = 13
/** How far back a reader with a window of 8 KB surely reaches. */
const FARTHEST = 8192 - 262

/**
 * Packs small bodies as one block of deflate, with the code that makes it shortest. Setting up the engine of the platform
 * takes longer than packing a few hundred bytes, and it reads the dictionary anew each time: here that is done once.
 * Not reentrant, which synchronous code can't notice.
 *
 * What takes time is not the work but the branches that no processor foresees, of which there should be no more than
 * one for each reference.
 */
export class SmallDeflate {
  readonly #mostBytes: number
  readonly #begin: number
  /** The dictionary, and behind it the body. */
  readonly #window: Uint8Array
  readonly #view: DataView
  /** The newest place of four bytes with this hash, after the dictionary and as the body is read; 0 if there is none. */
  readonly #dictionaryPlaces = new Uint16Array(1 << HASH_BITS)
  readonly #places = new Uint16Array(1 << HASH_BITS)
  /** For each place the one before it with the same hash. */
  readonly #earlier: Uint16Array
  /** For each reference two numbers: where in the window it stands, and its length << 16 | distance. */
  readonly #references: Uint32Array
  readonly #out: Uint8Array
  readonly #writers: readonly BlockWriter[]
  /** How many bits more than with the first writer what is found takes with the others: a sum of what the tables hold. */
  #extra = 0
  readonly #blockExtra: number
  /** By literal, behind them by length, and behind those by symbol of a distance. */
  readonly #extras: Int32Array

  constructor(dictionary: Uint8Array, mostBytes: number, codes: readonly BlockCode[]) {
    this.#writers = codes.map((code) => new BlockWriter(code))
    const extraOf = (symbol: number) => sideBySide(codes, ({ lengths }) => lengths[symbol] as number)
    this.#blockExtra = extraOf(END) + sideBySide(codes, ({ headerBits }) => headerBits)
    this.#extras = Int32Array.from([
      ...Array.from({ length: END }, (_, literal) => extraOf(literal)),
      ...Array.from({ length: LONGEST + 1 }, (_, length) => extraOf(symbolOfLength(length))),
      ...Array.from(DISTANCE_BASE, (_, symbol) =>
        sideBySide(codes, ({ distanceLengths }) => distanceLengths[symbol] as number),
      ),
    ])
    this.#mostBytes = mostBytes
    this.#begin = dictionary.length
    this.#window = new Uint8Array(dictionary.length + mostBytes + ROOM)
    this.#view = new DataView(this.#window.buffer)
    this.#window.set(dictionary)
    this.#earlier = new Uint16Array(dictionary.length + mostBytes)
    this.#references = new Uint32Array(mostBytes)
    // A body that can't be packed is noticed when it is written: no symbol takes more than 16 bits.
    this.#out = new Uint8Array(2 * mostBytes + ROOM)
    const places = this.#dictionaryPlaces
    for (let at = 1; at + SHORTEST <= dictionary.length; at++) {
      const hash = hashOf(this.#view.getInt32(at, true))
      this.#earlier[at] = places[hash] as number
      places[hash] = at
    }
  }

  /**
   * The packed body, or undefined if it would be longer than `most` bytes, or the body is too long for this. Where it is
   * not done thoroughly, it takes three fifths of the time, and prose gets a twentieth longer.
   */
  deflate(raw: Uint8Array, most: number, isThorough = true): Uint8Array | undefined {
    if (raw.length > this.#mostBytes) return undefined
    this.#window.set(raw, this.#begin)
    const end = this.#begin + raw.length
    const count = this.#findReferences(end, isThorough)
    const length = this.#shortest().write(this.#window, this.#begin, end, this.#references, count, this.#out)
    return length <= Math.min(most, raw.length) ? Buffer.from(this.#out.subarray(0, length)) : undefined
  }

  /** Finds what came before, counts what the writers differ by, and returns how many numbers that takes. */
  #findReferences(end: number, isThorough: boolean): number {
    const window = this.#window
    const view = this.#view
    const places = this.#places
    const earlier = this.#earlier
    const references = this.#references
    const extras = this.#extras
    places.set(this.#dictionaryPlaces)
    const lastHashed = end - SHORTEST
    let count = 0
    let extra = this.#blockExtra
    let at = this.#begin
    while (at <= lastHashed) {
      const four = view.getInt32(at, true)
      const hash = hashOf(four)
      let place = places[hash] as number
      places[hash] = at
      let from = place
      let longest = 0
      if (view.getInt32(place, true) === four && at - place < FARTHEST) longest = lengthOf(view, place, at, end)
      if (isThorough) {
        earlier[at] = place
        for (let left = MOST_PLACES; left > 1 && longest < LONG; left--) {
          place = earlier[place] as number
          if (place === 0 || at - place >= FARTHEST) break
          if (view.getInt32(place, true) !== four || window[place + longest] !== window[at + longest]) continue
          const length = lengthOf(view, place, at, end)
          if (length <= longest) continue
          longest = length
          from = place
        }
      }
      if (longest === 0) {
        extra = (extra + (extras[window[at++] as number] as number)) | 0
        continue
      }
      const distance = extras[END + LONGEST + 1 + (SYMBOLS[at - from] as number)] as number
      extra = (extra + (extras[END + longest] as number) + distance) | 0
      references[count++] = at
      references[count++] = (longest << 16) | (at - from)
      const next = at + longest
      const stop = Math.min(next - 1, lastHashed)
      for (at = Math.max(at + 1, next - REPEATED); at <= stop; at++) {
        const hash = hashOf(view.getInt32(at, true))
        if (isThorough) earlier[at] = places[hash] as number
        places[hash] = at
      }
      at = next
    }
    for (; at < end; at++) extra = (extra + (extras[window[at] as number] as number)) | 0
    this.#extra = extra
    return count
  }

  /** The first of the writers that take the fewest bits. */
  #shortest(): BlockWriter {
    const second = (this.#extra << 16) >> 16
    const third = (this.#extra - second) >> 16
    const best = third < Math.min(second, 0) ? 2 : second < 0 ? 1 : 0
    return this.#writers[best] as BlockWriter
  }
}

/** For what is read and written ahead of the end, and for the header of a block. */
const ROOM = 64

/**
 * How many bits more than the first the second code takes, and the third in the upper half: both are summed up at once.
 * For what is packed here, neither sum outgrows its half.
 */
function sideBySide([first, second, third]: readonly BlockCode[], bitsOf: (code: BlockCode) => number): number {
  const extraOf = (code: BlockCode | undefined) => (code === undefined ? 0 : bitsOf(code) - bitsOf(first as BlockCode))
  return extraOf(second) + (extraOf(third) << 16)
}

/** Writes one block with one code. */
class BlockWriter {
  readonly #code: BlockCode
  /** By literal, and for the end of the block: how many bits << 24 | what is written. */
  readonly #literals: Uint32Array
  /** The same by length, with the bits that follow the symbol. */
  readonly #lengths = new Uint32Array(LONGEST + 1)
  /** The same by symbol of a distance, without what follows it. */
  readonly #distances: Uint32Array

  constructor(code: BlockCode) {
    this.#code = code
    this.#literals = withBits(code.lengths)
    this.#distances = withBits(code.distanceLengths)
    for (let length = SHORTEST; length <= LONGEST; length++) {
      const symbol = symbolOfLength(length)
      const rest = length - (LENGTH_BASE[symbol - END - 1] as number)
      const more = LENGTH_EXTRA[symbol - END - 1] as number
      this.#lengths[length] =
        (this.#literals[symbol] as number) + (more << 24) + (rest << (code.lengths[symbol] as number))
    }
  }

  /** Writes what is in the window from `at` to `end` and returns how many bytes that takes. */
  write(window: Uint8Array, at: number, end: number, references: Uint32Array, count: number, out: Uint8Array): number {
    const { header, headerBits } = this.#code
    const literals = this.#literals
    const lengths = this.#lengths
    const distances = this.#distances
    let length = headerBits >> 3
    out.set(header.subarray(0, length))
    let bits = headerBits & 7
    let held = bits === 0 ? 0 : (header[length] as number)
    let next = at
    for (let i = 0; ; i += 2) {
      const stop = i < count ? (references[i] as number) : end
      // Whether bytes are full or not, all that may be are written: what is not full is written again.
      for (; next < stop; next++) {
        const code = literals[window[next] as number] as number
        held |= (code & 0xffffff) << bits
        bits += code >> 24
        out[length] = held
        out[length + 1] = held >> 8
        length += bits >> 3
        held >>= bits & 24
        bits &= 7
      }
      if (i >= count) break
      const reference = references[i + 1] as number
      const code = lengths[reference >> 16] as number
      held |= (code & 0xffffff) << bits
      bits += code >> 24
      out[length] = held
      out[length + 1] = held >> 8
      out[length + 2] = held >> 16
      length += bits >> 3
      held >>= bits & 24
      bits &= 7
      const distance = reference & 0xffff
      const symbol = SYMBOLS[distance] as number
      const far = distances[symbol] as number
      const farBits = far >> 24
      held |= ((far & 0xffffff) | ((distance - (DISTANCE_BASE[symbol] as number)) << farBits)) << bits
      bits += farBits + (DISTANCE_EXTRA[symbol] as number)
      out[length] = held
      out[length + 1] = held >> 8
      out[length + 2] = held >> 16
      length += bits >> 3
      held >>= bits & 24
      bits &= 7
      next += reference >> 16
    }
    const code = literals[END] as number
    held |= (code & 0xffffff) << bits
    bits += code >> 24
    for (; bits > 0; bits -= 8, held >>= 8) out[length++] = held
    return length
  }
}

/** How long what is here repeats what was there, of which the first four bytes are known to be the same. */
function lengthOf(view: DataView, there: number, here: number, end: number): number {
  const most = Math.min(LONGEST, end - here)
  for (let length = SHORTEST; length < most; length += 4) {
    const differing = view.getInt32(there + length, true) ^ view.getInt32(here + length, true)
    if (differing !== 0) return Math.min(most, length + ((31 - Math.clz32(differing & -differing)) >> 3))
  }
  return most
}

function hashOf(four: number): number {
  return Math.imul(four, 0x9e3779b1) >>> (32 - HASH_BITS)
}

function withBits(lengths: Uint8Array): Uint32Array {
  return Uint32Array.from(codesOf(lengths), (code, symbol) => ((lengths[symbol] as number) << 24) | code)
}

function symbolOfLength(length: number): number {
  return END + 1 + lastAtMost(LENGTH_BASE, length)
}

function lastAtMost(bases: Uint16Array, value: number): number {
  let index = bases.length - 1
  while (index > 0 && (bases[index] as number) > value) index--
  return index
}

/** The symbol of each distance. */
const SYMBOLS = Uint8Array.from({ length: FARTHEST + 1 }, (_, distance) => lastAtMost(DISTANCE_BASE, distance))
