import assert from 'node:assert/strict'
import vm from 'node:vm'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { encodeValue, renderPath } from '#src/codec/value.js'
import { type HoldfastError, isHoldfastError } from '#src/core/errors.js'
import { describe, it } from 'vitest'

function refusal(value: unknown): HoldfastError {
  try {
    encodeValue(value, DEFAULT_LIMITS)
  } catch (error) {
    assert(isHoldfastError(error, 'invalid-value'), String(error))
    return error
  }
  throw new assert.AssertionError({ message: 'The value was accepted.' })
}

class Point {
  x = 1
}
class List extends Array<number> {}

const cyclic: Record<string, unknown> = { a: {} }
cyclic['a'] = { back: cyclic }
const cyclicList: unknown[] = []
cyclicList.push(1, [cyclicList])
const revoked = Proxy.revocable({}, {})
revoked.revoke()
const revokedList = Proxy.revocable([], {})
revokedList.revoke()

const REFUSED: readonly (readonly [name: string, value: unknown, path: string, words: RegExp])[] = [
  ['undefined itself', undefined, '$', /undefined/],
  ['undefined in a list', { a: [1, undefined] }, '$.a[1]', /undefined/],
  // oxlint-disable-next-line no-sparse-arrays
  ['a gap in a list', { a: [1, , 3] }, '$.a[1]', /undefined/],
  ['a list of gaps', [new Array(3)], '$[0][0]', /undefined/],
  ['a function', { on: { click: () => 1 } }, '$.on.click', /function/],
  ['a class', [Point], '$[0]', /function/],
  ['a symbol', { a: Symbol('s') }, '$.a', /symbol/],
  ['a symbol as a key', { a: { [Symbol('s')]: 1 } }, '$.a', /symbol/],
  ['an instance of a class', { 'odd key': [new Point()] }, '$["odd key"][0]', /Point/],
  ['a subclass of Array', { l: List.of(1, 2) }, '$.l', /List/],
  ['a Map', { m: new Map() }, '$.m', /Map/],
  ['a Set', { m: new Set() }, '$.m', /Set/],
  ['a WeakMap', { m: new WeakMap() }, '$.m', /WeakMap/],
  ['an Error', { e: new TypeError('x') }, '$.e', /TypeError/],
  ['a Promise', { p: Promise.resolve(1) }, '$.p', /Promise/],
  ['a RegExp', { r: /x/ }, '$.r', /RegExp/],
  ['a URL', { u: new URL('a:b') }, '$.u', /URL/],
  ['a boxed number', { n: Object(1) }, '$.n', /Number/],
  ['a boxed string', { n: Object('x') }, '$.n', /String/],
  ['a boxed bigint', { n: Object(1n) }, '$.n', /BigInt/],
  ['an iterator', { i: [].values() }, '$.i', /Iterator|Object/],
  ['arguments of a foreign class', { v: vm.runInNewContext('new (class Foreign {})()') }, '$.v', /Foreign/],
  ['a Map of another realm', { v: vm.runInNewContext('new Map()') }, '$.v', /Map/],
  ['an invalid Date', { at: [new Date(Number.NaN)] }, '$.at[0]', /invalid Date/],
  ['an object that only claims to be a Date', { at: Object.create(Date.prototype) }, '$.at', /Date/],
  ['a proxy of a Date', { at: new Proxy(new Date(), {}) }, '$.at', /Date/],
  ['a proxy of bytes', { b: new Proxy(new Uint8Array(2), {}) }, '$.b', /Uint8Array/],
  ['a proxy of a Map', { m: new Proxy(new Map(), {}) }, '$.m', /Map/],
  ['a revoked proxy', { p: [revoked.proxy] }, '$.p[0]', /could not be read/],
  ['a revoked proxy of a list', { p: [revokedList.proxy] }, '$.p[0]', /could not be read/],
  ['other typed arrays', { b: new Uint16Array(2) }, '$.b', /Uint16Array/],
  ['clamped bytes', { b: new Uint8ClampedArray(2) }, '$.b', /Uint8ClampedArray/],
  ['floats', { b: new Float64Array(2) }, '$.b', /Float64Array/],
  ['a DataView', { b: new DataView(new ArrayBuffer(1)) }, '$.b', /DataView/],
  ['a bare ArrayBuffer', { b: new ArrayBuffer(1) }, '$.b', /ArrayBuffer/],
  ['an object made of another object', { o: Object.create({ inherited: 1 }) }, '$.o', /Object/],
  ['a cycle', cyclic, '$.a.back', /contains it/],
  ['a cycle through lists', cyclicList, '$[1][0]', /contains it/],
]

describe('what can not be stored exactly is refused with the path to it', () => {
  it.each(REFUSED)('%s', (_, value, path, words) => {
    const error = refusal(value)
    assert.equal(error.data['path'], path)
    assert.equal(error.data['field'], path)
    assert.match(error.message, words)
    assert(error.message.includes(path))
    assert(error.remedy.length > 0)
  })

  it('a getter that throws, with its error as the cause and the next value unharmed', () => {
    const cause = new Error('from the getter')
    const bad = {
      fine: [1],
      get trap(): never {
        throw cause
      },
    }
    const error = refusal({ list: [0, bad] })
    assert.equal(error.data['path'], '$.list[1].trap')
    assert.equal(error.cause, cause)
    assert.equal(encodeValue({ list: [0, { fine: [1] }] }, DEFAULT_LIMITS).json, '[{"list":[0,{"fine":[1]}]}]')
  })

  it('a proxy whose traps throw', () => {
    for (const trap of ['get', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'] as const) {
      const proxy = new Proxy(
        { a: 1 },
        {
          [trap]: () => {
            throw new Error('trapped')
          },
        },
      )
      const error = refusal({ p: proxy })
      assert.match(String(error.data['path']), /^\$\.p/)
      assert.equal((error.cause as Error).message, 'trapped')
    }
  })

  it('renders every path so that it can be read back', () => {
    assert.equal(renderPath([]), '$')
    assert.equal(
      renderPath(['a', 0, '', '__proto__', 'a-b', '"', 'é', '0', '$x']),
      '$.a[0][""].__proto__["a-b"]["\\""]["é"]["0"].$x',
    )
  })
})
