import { isHoldfastError } from '#src/core/errors.js'
import type { Op, Path, State } from '#src/log/entry/ops.js'
import { append, last, merge, reduced, type StateKey } from '#src/runtime/program/state/state-key.js'
import { type Recorded, StateShape } from '#src/runtime/program/state/state-shape.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { deepFreeze } from '../../codec/values.js'

const message = z.object({ role: z.enum(['user', 'assistant']), text: z.string() })

function reduce(
  key: StateKey,
  before: unknown,
  ...updates: readonly unknown[]
): { value: unknown; ops: readonly Op[] } {
  return reduceRecorded(
    key,
    before,
    updates.map((update) => ({ update: { k: update } })),
  )
}

function reduceRecorded(key: StateKey, before: unknown, updates: readonly Recorded[]) {
  const state = (before === undefined ? {} : { k: before }) as State
  const { state: after, ops } = new StateShape({ k: key }).reduce(deepFreeze(state), updates, ['values'])
  return { value: after['k'], ops }
}

const at: Path = ['values', 'k']
const from: Path = ['run', 'results', 0]

describe('a state', () => {
  it('starts with initial values, made anew by functions, and an empty list per append key', () => {
    const shape = new StateShape({
      count: last(undefined, { initial: 3 }),
      made: last<{ a: number }>(undefined, { initial: () => ({ a: 1 }) }),
      empty: append<string>(),
      none: last<string>(),
      merged: merge<{ a: number }>(),
      nothing: last<null>(undefined, { initial: null }),
    })
    expect(shape.initial()).toStrictEqual({ count: 3, made: { a: 1 }, empty: [], nothing: null })
    expect(shape.initial()['made']).not.toBe(shape.initial()['made'])
  })

  it('gets the initial values of keys that were declared after it was recorded, and keeps what it has', () => {
    const shape = new StateShape({ old: last(undefined, { initial: 1 }), added: append<string>() })
    expect(shape.complete({ old: 5 })).toStrictEqual({ old: 5, added: [] })
  })

  it.each(['', 'x'.repeat(129), '__proto__'])('refuses the key name %j', (name) => {
    const keys = Object.defineProperty({}, name, { value: last(), enumerable: true })
    expect(() => new StateShape(keys)).toThrow(expect.objectContaining({ code: 'invalid-program' }))
    expect(() => new StateShape(keys)).toThrow(JSON.stringify(name.slice(0, 128)))
  })

  it('takes the longest name, and names of inherited properties', async () => {
    const long = 'x'.repeat(128)
    const shape = new StateShape({ [long]: last(), constructor: last(), toString: append() })
    const update = await shape.check({ [long]: 1, constructor: 2, toString: 3 }, 'update')
    const { state } = shape.reduce({}, [{ update }], [])
    expect(state).toStrictEqual({ [long]: 1, constructor: 2, toString: [3] })
  })

  it('refuses what is no key, no shape, no schema or no reducer', () => {
    const refused = expect.objectContaining({ code: 'invalid-program' })
    expect(() => new StateShape({ topic: 'text' as unknown as StateKey })).toThrow('state.topic')
    expect(() => new StateShape({ topic: null as unknown as StateKey })).toThrow(refused)
    expect(() => new StateShape([] as unknown as {})).toThrow(refused)
    expect(() => last({} as never)).toThrow(refused)
    expect(() => last(null as never)).toThrow(refused)
    expect(() => reduced(undefined, undefined as never)).toThrow(refused)
  })
})

describe('an update', () => {
  const shape = new StateShape({
    topic: last(z.string().max(5)),
    messages: append(message),
    when: last(z.coerce.date()),
    facts: merge(z.object({ a: z.number(), b: z.string() }).partial()),
    any: last<unknown>(),
    maybe: last(z.any().transform(() => undefined)),
    lists: append<readonly number[]>(),
    bag: merge<Record<string, unknown>>(),
  })

  it('has what the schemas made of it, with one appended item as a list', async () => {
    const update = { when: '2026-01-02T00:00:00Z', messages: { role: 'user', text: 'hi', more: 1 }, facts: { a: 1 } }
    expect(await shape.check(update, 'update')).toStrictEqual({
      when: new Date('2026-01-02T00:00:00Z'),
      messages: [{ role: 'user', text: 'hi' }],
      facts: { a: 1 },
    })
  })

  it('may be missing, leave keys out or have them undefined; null is a value', async () => {
    expect(await shape.check(undefined, 'update')).toStrictEqual({})
    expect(await shape.check({ topic: undefined, gone: undefined, any: null }, 'update')).toStrictEqual({ any: null })
    expect(await shape.check({ maybe: 1 }, 'update')).toStrictEqual({})
  })

  it('takes a list for a list of items, also where items are lists', async () => {
    expect(await shape.check({ lists: [[1], [2, 3]] }, 'update')).toStrictEqual({ lists: [[1], [2, 3]] })
    expect(await shape.check({ messages: [] }, 'update')).toStrictEqual({ messages: [] })
  })

  const refusals: readonly (readonly [string, unknown, string])[] = [
    ['a number', 5, 'update'],
    ['null', null, 'update'],
    ['a list', [], 'update'],
    ['a Map', new Map(), 'update'],
    ['an undeclared key', { topic: 'a', total: 1 }, 'update.total'],
    ['an undeclared key with odd characters', { 'a b': 1 }, 'update["a b"]'],
    ['an inherited name', { constructor: 1 }, 'update.constructor'],
    ['a value that is too long', { topic: 'abcdef' }, 'update.topic'],
    ['one bad item', { messages: { role: 'nobody', text: '' } }, 'update.messages.role'],
    ['a bad item in a list', { messages: [{ role: 'user', text: '' }, { role: 'user' }] }, 'update.messages[1].text'],
    ['a property of the wrong type', { facts: { a: 'x' } }, 'update.facts.a'],
    ['a list to merge', { bag: [1] }, 'update.bag'],
    ['a Date to merge', { bag: new Date() }, 'update.bag'],
    ['null to merge', { bag: null }, 'update.bag'],
  ]
  it.each(refusals)('is refused when it is or has %s, with the path to it', async (_, update, path) => {
    await expect(shape.check(update, 'update')).rejects.toMatchObject({ code: 'invalid-value', data: { path } })
  })

  it('is refused with the keys that are declared', async () => {
    const error: unknown = await Promise.resolve(shape.check({ total: 1 }, 'update')).catch((e: unknown) => e)
    if (!isHoldfastError(error)) throw error
    expect(error.message).toContain('topic, messages')
    expect(error.data['declared']).toContain('facts')
  })
})

describe('last', () => {
  it('is the last update, as one op; undefined changes nothing', () => {
    expect(reduce(last(), 1, 2, 3)).toStrictEqual({ value: 3, ops: [['set', at, 3]] })
    expect(reduce(last(), 1, undefined)).toStrictEqual({ value: 1, ops: [] })
    expect(reduce(last(), 1, null)).toStrictEqual({ value: null, ops: [['set', at, null]] })
    expect(reduce(last(), 1, 1)).toStrictEqual({ value: 1, ops: [] })
  })

  it('refers to a recorded value, unless it is shorter than the reference', () => {
    const value = { a: 1 }
    const refer = (k: unknown) => reduceRecorded(last(), undefined, [{ update: { k }, from }]).ops
    expect(refer(value)).toStrictEqual([['copy', at, [...from, 'k']]])
    expect(refer('x'.repeat(65))).toStrictEqual([['copy', at, [...from, 'k']]])
    expect(refer('x')).toStrictEqual([['set', at, 'x']])
    expect(refer(null)).toStrictEqual([['set', at, null]])
  })
})

describe('append', () => {
  it('adds items to the end, in order', () => {
    expect(reduce(append(), [1], [2], [3, 4])).toStrictEqual({
      value: [1, 2, 3, 4],
      ops: [
        ['push', at, [2]],
        ['push', at, [3, 4]],
      ],
    })
    expect(reduce(append(), [1], [])).toStrictEqual({ value: [1], ops: [] })
  })

  it('refers to recorded items', () => {
    const updates = [{ update: { k: [2] }, from }, { update: { k: [3] } }]
    expect(reduceRecorded(append(), [1], updates)).toStrictEqual({
      value: [1, 2, 3],
      ops: [
        ['concat', at, [...from, 'k']],
        ['push', at, [3]],
      ],
    })
  })

  it('writes initial items that the fold does not have', () => {
    const key = append(undefined, { initial: ['a'] })
    expect(reduce(key, undefined, ['b'])).toStrictEqual({ value: ['a', 'b'], ops: [['set', at, ['a', 'b']]] })
    expect(reduce(append(), undefined, [])).toStrictEqual({ value: [], ops: [['set', at, []]] })
  })

  it('takes a hundred thousand items at once', () => {
    const many = Array.from({ length: 200_000 }, (_, i) => i)
    expect((reduce(append(), [0], many).value as unknown[]).length).toBe(200_001)
  })

  it('refuses to add to what is no list', () => {
    expect(() => reduce(append(), 'text', [1])).toThrow(expect.objectContaining({ code: 'invalid-value' }))
    expect(() => reduce(append(), null, [1])).toThrow('state.k')
  })
})

describe('merge', () => {
  it('sets only the properties that changed', () => {
    const shared = { deep: true }
    const { value, ops } = reduce(
      merge(),
      { a: 1, b: 2, c: shared },
      { a: 1, b: 3, c: shared },
      { d: null, a: undefined },
    )
    expect(value).toStrictEqual({ a: 1, b: 3, c: shared, d: null })
    expect(ops).toStrictEqual([
      ['set', [...at, 'b'], 3],
      ['set', [...at, 'd'], null],
    ])
  })

  it('writes initial properties that the fold does not have', () => {
    const key = merge(undefined, { initial: { a: 1, b: 1 } })
    expect(reduce(key, undefined, { b: 2 })).toStrictEqual({
      value: { a: 1, b: 2 },
      ops: [['set', at, { a: 1, b: 2 }]],
    })
    expect(reduce(merge(), undefined, {})).toStrictEqual({ value: {}, ops: [['set', at, {}]] })
  })

  it('keeps properties with the names of inherited ones, and never sets a prototype', () => {
    const update: unknown = JSON.parse('{"__proto__": {"admin": true}, "constructor": 1}')
    const { value, ops } = reduce(merge(), {}, update)
    expect(Object.keys(value as object)).toStrictEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect((value as { admin?: unknown }).admin).toBeUndefined()
    expect(ops).toContainEqual(['set', [...at, '__proto__'], { admin: true }])
  })

  it('refers to recorded properties', () => {
    const updates = [{ update: { k: { big: { x: 1 }, small: 1 } }, from }]
    expect(reduceRecorded(merge(), { big: 0 }, updates).ops).toStrictEqual([
      ['copy', [...at, 'big'], [...from, 'k', 'big']],
      ['set', [...at, 'small'], 1],
    ])
    expect(reduceRecorded(merge(), undefined, updates).ops).toStrictEqual([['copy', at, [...from, 'k']]])
  })
})

describe('reduced', () => {
  const sum = reduced(undefined, (old: number, add: number) => old + add, { initial: 10 })
  const list = reduced(undefined, (old: readonly number[] | undefined, add: number) => [...(old ?? []), add])

  it('calls the reducer for each update, from the initial value on', () => {
    expect(reduce(sum, undefined, 1, 2)).toStrictEqual({ value: 13, ops: [['set', at, 13]] })
    expect(reduce(sum, 1, 1)).toStrictEqual({ value: 2, ops: [['set', at, 2]] })
  })

  it('hands null to the reducer as the value that it is', () => {
    const seen: unknown[] = []
    const key = reduced(undefined, (old: number | null, add: number) => (seen.push(old), add), { initial: 5 })
    reduce(key, null, 1)
    expect(seen).toStrictEqual([null])
  })

  it('pushes what a list gained, and writes nothing when nothing changed', () => {
    expect(reduce(list, [1], 2, 3)).toStrictEqual({ value: [1, 2, 3], ops: [['push', at, [2, 3]]] })
    const same = reduced(undefined, (old: unknown) => old, { initial: {} })
    expect(reduce(same, { a: 1 }, 'x').ops).toStrictEqual([])
    const copied = reduced(undefined, (old: readonly unknown[]) => [...old], { initial: [] })
    expect(reduce(copied, [1, {}], 'x').ops).toStrictEqual([])
  })

  it('writes a list whole when its beginning changed', () => {
    const newest = reduced(undefined, (old: readonly number[], add: number) => [...old, add].slice(-2), { initial: [] })
    expect(reduce(newest, [1, 2], 3)).toStrictEqual({ value: [2, 3], ops: [['set', at, [2, 3]]] })
  })

  it('refuses a reducer that returns nothing or changes the old list in place', () => {
    const nothing = reduced(undefined, () => undefined as unknown)
    expect(() => reduce(nothing, 1, 2)).toThrow(expect.objectContaining({ code: 'invalid-value' }))
    const mutating = reduced(undefined, (old: number[], add: number) => (old.push(add), old), { initial: [] })
    const shape = new StateShape({ k: mutating })
    expect(() => shape.reduce({ k: [1] }, [{ update: { k: 2 } }], [])).toThrow(
      expect.objectContaining({ code: 'invalid-program', data: expect.objectContaining({ field: 'state.k' }) }),
    )
  })

  it('reports a recorded update of a key that is no longer declared', () => {
    const shape = new StateShape({ k: last() })
    expect(() => shape.reduce({}, [{ update: { gone: 1 } }], [])).toThrow(
      expect.objectContaining({ code: 'incompatible', data: expect.objectContaining({ reason: 'undeclared-key' }) }),
    )
  })
})
