import { inspect, isDeepStrictEqual } from 'node:util'
import { cloneValue, showValue } from '#src/codec/clone.js'
import { encodeValue } from '#src/codec/value.js'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { applyOp, type Op, type State } from '#src/log/entry/ops.js'
import { isWide, WIDE_KEYS } from '#src/codec/wide-record.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

type Plain = Record<string, number | null>

const key = fc.oneof(
  fc.integer({ min: 0, max: 400 }).map((i) => `step[${i}]`),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', '', '7'),
)
const change = fc.record({ key, value: fc.option(fc.integer(), { nil: undefined, freq: 4 }) })

function opOf({ key, value }: { key: string; value: number | undefined }): Op {
  return value === undefined ? ['delete', ['map', key]] : ['set', ['map', key], value]
}

/** What a record holds, in an order that plain objects and wide ones share. */
function entriesOf(record: object): (readonly [string, unknown])[] {
  return Object.keys(record).map((name) => [name, (record as Plain)[name]] as const)
}

function wideState(keys = 2 * WIDE_KEYS): State {
  const plain = Object.fromEntries(Array.from({ length: keys }, (_, i) => [`step[${i}]`, i]))
  const state = applyOp({ map: plain }, ['set', ['map', 'last'], -1])
  expect(isWide(state['map'] as object)).toBe(true)
  return state
}

describe('a record with many keys', () => {
  it('is at every version what a plain one would be, whatever is made of it later', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 * WIDE_KEYS }),
        fc.array(fc.tuple(fc.boolean(), fc.array(change, { maxLength: 60 })), { maxLength: 12 }),
        (already, batches) => {
          const names = Array.from({ length: already }, (_, i) => `step[${i}]`)
          let state: State = { map: Object.fromEntries(names.map((name, i) => [name, i])) }
          const model = new Map<string, number>(names.map((name, i) => [name, i]))
          const versions: { state: State; model: Map<string, number> }[] = []
          for (const [isOneEntry, changes] of batches) {
            // An entry with several operations changes in place what it has made itself.
            const owned = isOneEntry ? new Set<object>() : undefined
            for (const each of changes) {
              state = applyOp(state, opOf(each), owned)
              if (each.value === undefined) model.delete(each.key)
              else model.set(each.key, each.value)
            }
            versions.push({ state, model: new Map(model) })
          }
          for (const { state: then, model: expected } of versions) {
            const map = then['map'] as object
            expect(new Map(entriesOf(map))).toEqual(expected)
            for (const [name, value] of expected) {
              expect(Object.hasOwn(map, name)).toBe(true)
              expect((map as Plain)[name]).toBe(value)
            }
          }
        },
      ),
      randomly(rounds(60)),
    )
  })

  it('lists its keys in the order in which they came', () => {
    let state = wideState()
    state = applyOp(state, ['set', ['map', 'step[3]'], 'again'])
    state = applyOp(state, ['delete', ['map', 'step[5]']])
    state = applyOp(state, ['set', ['map', 'step[5]'], 'back'])
    const names = Object.keys(state['map'] as object)
    expect(names.slice(0, 6)).toEqual(['step[0]', 'step[1]', 'step[2]', 'step[3]', 'step[4]', 'step[6]'])
    expect(names.slice(-2)).toEqual(['last', 'step[5]'])
  })

  it('looks like a plain record to whoever reads it', () => {
    const map = wideState()['map'] as object
    const plain = { ...map }
    expect(isWide(plain)).toBe(false)
    expect(map).toEqual(plain)
    expect(isDeepStrictEqual(map, plain)).toBe(true)
    expect(JSON.stringify(map)).toBe(JSON.stringify(plain))
    expect(inspect(map, { maxArrayLength: null })).toBe(inspect(plain, { maxArrayLength: null }))
    expect(encodeValue(map, DEFAULT_LIMITS)).toEqual(encodeValue(plain, DEFAULT_LIMITS))
    expect(Object.getPrototypeOf(map)).toBe(Object.prototype)
    expect('toString' in map).toBe(true)
    expect('missing' in map).toBe(false)
    expect((map as Plain)['missing']).toBeUndefined()
    expect(String(map)).toBe('[object Object]')
  })

  it('tells a value that is null from one that is not there', () => {
    const { map } = applyOp(wideState(), ['set', ['map', 'toString'], null]) as { map: Plain }
    expect(map['toString']).toBeNull()
    expect(Object.hasOwn(map, 'valueOf')).toBe(false)
  })

  it('can be changed by nobody but an operation', () => {
    const map = wideState()['map'] as Plain
    expect(() => {
      map['step[0]'] = 9
    }).toThrow(TypeError)
    expect(() => delete map['step[0]']).toThrow(TypeError)
    expect(() => Object.freeze(map)).toThrow(TypeError)
    expect(() => Object.setPrototypeOf(map, null)).toThrow(TypeError)
    expect(map['step[0]']).toBe(0)
  })

  it('is shown to programs as a record that is frozen throughout', () => {
    const state = applyOp(wideState(), ['set', ['map', 'inner'], { list: [1] }])
    const shown = showValue(state['map'] as never) as { inner: { list: number[] } }
    expect(shown).toEqual({ ...(state['map'] as object) })
    expect(Object.isFrozen(shown)).toBe(true)
    expect(() => shown.inner.list.push(2)).toThrow(TypeError)
    const own = cloneValue(state['map'] as never) as { inner: { list: number[] } }
    own.inner.list.push(2)
    expect((state['map'] as unknown as typeof own).inner.list).toEqual([1])
  })

  it('is copied and added to elsewhere without being shared by mistake', () => {
    const owned = new Set<object>()
    let state = applyOp(wideState(), ['set', ['map', 'new'], 1], owned)
    state = applyOp(state, ['copy', ['other'], ['map']], owned)
    state = applyOp(state, ['set', ['map', 'new'], 2], owned)
    state = applyOp(state, ['set', ['other', 'more'], 3], owned)
    expect((state['map'] as Plain)['new']).toBe(2)
    expect((state['other'] as Plain)['new']).toBe(1)
    expect(Object.hasOwn(state['map'] as object, 'more')).toBe(false)
  })
})
