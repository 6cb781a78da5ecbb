import { describe, expect, it } from 'vitest'
import { lazyFields, withLazyFields } from '../../src/core/lazy-fields.js'

const source = () => {
  const made = { count: 0 }
  return {
    made,
    get key() {
      made.count++
      return 'made'
    },
  }
}

describe('lazy fields', () => {
  it('are made when they are read, and not before', () => {
    const from = source()
    const object = withLazyFields({ a: 1 }, from, lazyFields(['key']))
    expect(from.made.count).toBe(0)
    expect(object.key).toBe('made')
    expect(from.made.count).toBe(1)
  })

  it("are the object's own: a copy has their values, and nothing else", () => {
    const object = withLazyFields({ a: 1 }, source(), lazyFields(['key']))
    expect(Object.keys(object)).toEqual(['a', 'key'])
    expect({ ...object }).toStrictEqual({ a: 1, key: 'made' })
    expect(Reflect.ownKeys({ ...object })).toEqual(['a', 'key'])
  })

  it('are found through what stands in for the object', () => {
    const object = withLazyFields({ a: 1 }, source(), lazyFields(['key']))
    expect(new Proxy(object, {}).key).toBe('made')
    expect((Object.create(object) as typeof object).key).toBe('made')
  })

  it('are found through a proxy that wraps whatever it returns', () => {
    const wrap = <Wrapped extends object>(object: Wrapped): Wrapped =>
      new Proxy(object, {
        get(target, name, receiver) {
          const value: unknown = Reflect.get(target, name, receiver)
          return (typeof value === 'object' && value !== null) || typeof value === 'function' ? wrap(value) : value
        },
      })
    class Source {
      readonly #state = { count: 12 }

      get state() {
        return this.#state
      }
    }
    const object = withLazyFields({ a: 1 }, new Source(), lazyFields(['state']))
    expect(wrap(object).state.count).toBe(12)
  })

  it('are replaced only where that is allowed', () => {
    const fixed = withLazyFields({}, source(), lazyFields(['key']))
    expect(() => Object.assign(fixed, { key: 'other' })).toThrow(TypeError)
    const open = withLazyFields({}, source(), lazyFields(['key'], true))
    expect(Object.assign(open, { key: 'other' }).key).toBe('other')
    expect({ ...open }).toStrictEqual({ key: 'other' })
  })
})
