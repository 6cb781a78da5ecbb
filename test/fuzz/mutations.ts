import fc from 'fast-check'

/** One change of bytes: flipped, cut, doubled, overwritten, or spliced from a dictionary of what decoders look for. */
type Change = (bytes: Buffer) => Buffer

/** What means something to one decoder or another. */
const WORDS = [
  'null',
  '{}',
  '[]',
  '""',
  '-1',
  '1e999',
  '0',
  'true',
  '__proto__',
  'constructor',
  '\n',
  '\0',
  '"',
  ',',
  ']',
  '}',
  ' ',
  '\\u0000',
  '\ud800',
  '9007199254740993',
]

// Evenly: left to itself, the library would mostly choose the very beginning.
const at = fc.noBias(fc.integer({ min: 0, max: 999_999 })).map((part) => part / 1_000_000)

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(at, fc.integer({ min: 0, max: 7 })).map(
    ([where, bit]): Change =>
      (bytes) => {
        const copy = Buffer.from(bytes)
        const i = Math.floor(where * copy.length)
        if (copy.length > 0) copy[i] = (copy[i] ?? 0) ^ (1 << bit)
        return copy
      },
  ),
  at.map(
    (where): Change =>
      (bytes) =>
        bytes.subarray(0, Math.floor(where * bytes.length)),
  ),
  fc.tuple(at, at).map(
    ([from, to]): Change =>
      (bytes) => {
        const [low, high] = [from, to].sort((a, b) => a - b).map((one) => Math.floor(one * bytes.length)) as [
          number,
          number,
        ]
        return Buffer.concat([bytes.subarray(0, low), bytes.subarray(high)])
      },
  ),
  fc.tuple(at, at).map(
    ([from, to]): Change =>
      (bytes) => {
        const [low, high] = [from, to].sort((a, b) => a - b).map((one) => Math.floor(one * bytes.length)) as [
          number,
          number,
        ]
        return Buffer.concat([bytes.subarray(0, high), bytes.subarray(low)])
      },
  ),
  fc.tuple(at, fc.constantFrom(...WORDS)).map(
    ([where, word]): Change =>
      (bytes) => {
        const i = Math.floor(where * bytes.length)
        return Buffer.concat([bytes.subarray(0, i), Buffer.from(word), bytes.subarray(i)])
      },
  ),
  fc.tuple(at, fc.constantFrom(...WORDS)).map(
    ([where, word]): Change =>
      (bytes) => {
        const i = Math.floor(where * bytes.length)
        return Buffer.concat([bytes.subarray(0, i), Buffer.from(word), bytes.subarray(i + word.length)])
      },
  ),
)

/** Bytes that are nearly one of these, or nothing like them. */
export function mutated(seeds: readonly Uint8Array[]): fc.Arbitrary<Buffer> {
  const near = fc
    .tuple(fc.constantFrom(...seeds), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([seed, changes]) => changes.reduce<Buffer>((bytes, one) => one(bytes), Buffer.from(seed)))
  const far = fc.uint8Array({ maxLength: 200 }).map((bytes): Buffer => Buffer.from(bytes))
  return fc.oneof({ weight: 9, arbitrary: near }, { weight: 1, arbitrary: far })
}

/** Plain data in which parts were replaced by something of another type, or left out. */
export function misshapen(seeds: readonly unknown[]): fc.Arbitrary<unknown> {
  const odd = fc.constantFrom<unknown>(
    null,
    undefined,
    0,
    -1,
    1.5,
    '',
    'x',
    '__proto__',
    [],
    {},
    [[]],
    [null],
    true,
    [1, 2, 3],
  )
  return fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.array(at, { maxLength: 6 }), odd), { minLength: 1, maxLength: 3 }),
    )
    .map(([seed, changes]) => changes.reduce((value: unknown, [path, put]) => replaced(value, path, put), seed))
}

function replaced(value: unknown, path: readonly number[], put: unknown): unknown {
  const isInside =
    typeof value === 'object' && value !== null && !(value instanceof Uint8Array) && !(value instanceof Date)
  const [where, ...rest] = path
  if (!isInside || where === undefined) return put
  const keys = Object.keys(value)
  const key = keys[Math.floor(where * keys.length)]
  if (key === undefined) return put
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string, unknown>
  const inner = replaced(copy[key], rest, put)
  if (inner === undefined) delete copy[key]
  else Object.defineProperty(copy, key, { value: inner, enumerable: true, configurable: true, writable: true })
  return copy
}
