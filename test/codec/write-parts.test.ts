import { describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { encodeValue } from '#src/codec/value.js'
import { writeParts } from '#src/codec/encode/write-parts.js'

const partsOf = (name: string) => (name === 'list' ? 'items' : name === 'record' ? 'properties' : 'whole')
const write = (input: object) => writeParts(input, partsOf, DEFAULT_LIMITS)
const jsonOf = (value: unknown) => encodeValue(value, DEFAULT_LIMITS).json

describe('parts of a value that are written on their own', () => {
  it('are encoded as if they had not been, alone and together', () => {
    const make = () => ({
      list: [{ a: 1, at: new Date(5) }, 'text', null],
      record: { big: { n: 10n, nested: [{ x: -0 }] }, plain: 3, left: undefined },
      whole: { y: [1, 2] },
      ['__proto__']: 1,
    })
    expect(jsonOf(write(make()))).toBe(jsonOf(make()))
    const { list, record, whole } = write(make()) as unknown as ReturnType<typeof make>
    const parts = [...list, ...Object.values(record), whole]
    expect(parts.map(jsonOf)).toEqual(
      [...make().list, make().record.big, make().record.plain, make().whole].map(jsonOf),
    )
  })

  it('can not be changed by anybody', () => {
    const kept = write({ list: [{ a: [1] }], record: { b: { c: 1 } } }) as { list: { a: number[] }[]; record: object }
    const all = [kept, kept.list, kept.list[0], kept.list[0]?.a, kept.record, Object.values(kept.record)[0]]
    expect(all.every((one) => Object.isFrozen(one))).toBe(true)
  })

  it('are none where the whole has to be looked at', () => {
    const cyclic: { list: unknown[] } = { list: [] }
    cyclic.list.push(cyclic)
    const sparse: unknown[] = []
    sparse.length = 2
    for (const input of [
      cyclic,
      { list: sparse },
      { list: [new Map()] },
      { whole: () => 1 },
      { whole: new Uint8Array(3) },
      { [Symbol('s')]: 1 },
      { list: ['x'.repeat(DEFAULT_LIMITS.maxBytes / 16)] },
    ]) {
      expect(write(input)).toBeUndefined()
    }
  })
})
