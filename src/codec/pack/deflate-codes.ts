// Deflate (RFC 1951) as numbers: what a length or a distance is written as, and the codes that small bodies use.

export const LENGTH_BASE = Uint16Array.from([
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
])
export const LENGTH_EXTRA = Uint8Array.from([
  0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
])
export const DISTANCE_BASE = Uint16Array.from([
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
  8193, 12289, 16385, 24577,
])
export const DISTANCE_EXTRA = Uint8Array.from([
  0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
])

/** The symbol after the last literal: the end of the block. Those of lengths follow. */
export const END = 256

/** A Huffman code for the only block of a body, and how that block begins. */
export interface BlockCode {
  /** Bits of each symbol: literals, the end, lengths. */
  readonly lengths: Uint8Array
  readonly distanceLengths: Uint8Array
  readonly header: Uint8Array
  readonly headerBits: number
}

/** Runs of [bits of a symbol, how many symbols]. */
type Runs = readonly (readonly [bits: number, count: number])[]

function lengthsOf(runs: Runs): Uint8Array {
  return Uint8Array.from(runs.flatMap(([bits, count]) => Array<number>(count).fill(bits)))
}

/** Deflate's own fixed code. */
export const FIXED: BlockCode = {
  lengths: lengthsOf([
    [8, 144],
    [9, 112],
    [7, 24],
    [8, 8],
  ]),
  distanceLengths: lengthsOf([[5, 30]]),
  header: Uint8Array.of(0b011),
  headerBits: 3,
}

/** A code for prose in JSON, as `d1` was written with: a block like any other of deflate, which says what its code is. */
export const PROSE: BlockCode = {
  lengths: lengthsOf([
    ...([
      [12, 32],
      [4, 1],
      [11, 1],
      [9, 10],
      [7, 14],
      [8, 1],
      [9, 38],
    ] as Runs),
    // The letters from "a" to "z".
    ...([5, 7, 6, 6, 4, 7, 7, 7, 6, 8, 8, 6, 7, 6, 5, 5, 10, 5, 5, 5, 8, 7, 7, 7, 7, 7].map((bits) => [
      bits,
      1,
    ]) as Runs),
    ...([
      [12, 133],
      [10, 1],
      [12, 1],
      [5, 8],
      [10, 20],
    ] as Runs),
  ]),
  distanceLengths: lengthsOf([
    [9, 1],
    [8, 7],
    [5, 5],
    [4, 13],
    [11, 4],
  ]),
  header: Buffer.from('7T0DgCy7lmvb3vOv0XbPtW37pqtOd9dMdSUvybTWtm3btm3btu23cZ7td8fRsT8A', 'base64'),
  headerBits: 377,
}

/** The codes of bodies packed with `d1`. */
export const CODES_1: readonly BlockCode[] = [FIXED, PROSE]

/** A bit length for each symbol, as a digit. */
function lengthsFrom(digits: string): Uint8Array {
  return Uint8Array.from(digits, (digit) => Number.parseInt(digit, 16))
}

/**
 * The codes of bodies packed with `d2`. A block says which by its number, where deflate would describe the code: that
 * takes fifty bytes, a sixth of a packed record. Counted on conversations of agents and on the project's own prose.
 *
 * Frozen: no block says what these codes are, so every body packed with them needs exactly these to be read, for ever.
 */
export const CODES_2: readonly BlockCode[] = [
  // For what is neither of the others: text in other scripts, numbers, ids.
  { ...FIXED, header: Uint8Array.of(0), headerBits: 2 },
  // Records, which are mostly references.
  {
    lengths: lengthsFrom(
      'cccccccccccccccccccccccccccccccc5ccccccaabbc878c65666666669bccccc78788788899877779888798787cccc8' +
        '876665888676686568567777887ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc' +
        'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc8c558797777665776668987887ccc8',
    ),
    distanceLengths: lengthsFrom('aaaaaaaa995666556554442264aaaa'),
    header: Uint8Array.of(1),
    headerBits: 2,
  },
  // Prose, as English and its neighbors write it, in the midst of records.
  {
    lengths: lengthsFrom(
      'cccccccccccccccccccccccccccccccc4c9bccc988ac686a767777777789ccccc899999a98a999899a9899a9aa9ab8ca' +
        '65766477659766556a555677979bcacccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc' +
        'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc9c44567878aa98a998a999cc9acccb',
    ),
    distanceLengths: lengthsFrom('aaaa8877665555454545445442aaaa'),
    header: Uint8Array.of(2),
    headerBits: 2,
  },
]

/** The bits that stand for each symbol, first bit lowest: shorter codes first, and symbols in order. */
export function codesOf(lengths: Uint8Array): Uint16Array {
  const codes = new Uint16Array(lengths.length)
  let code = 0
  for (let bits = 1; bits <= 15; bits++) {
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      if (lengths[symbol] === bits) codes[symbol] = reversed(code++, bits)
    }
    code <<= 1
  }
  return codes
}

function reversed(code: number, bits: number): number {
  let turned = 0
  for (let i = 0; i < bits; i++) turned = (turned << 1) | ((code >> i) & 1)
  return turned
}
