import { Embeddings } from '@langchain/core/embeddings'
import { Annotation, START, StateGraph } from '@langchain/langgraph'
import { type BaseStore, InMemoryStore, InvalidNamespaceError, type Operation } from '@langchain/langgraph-checkpoint'
import fc from 'fast-check'
import { type Holdfast, openHoldfast } from 'holdfast'
import { HoldfastStore } from 'holdfast/langgraph'
import { virtualClock } from 'holdfast/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { randomly, rounds } from '../../support/scale.js'
import { backends, cleanUp } from './support.js'

/** Letters counted: texts with the same letters mean the same. */
class LetterEmbeddings extends Embeddings {
  calls = 0

  constructor() {
    super({})
  }

  async embedDocuments(texts: string[]): Promise<number[][]> {
    this.calls++
    return texts.map(letters)
  }

  async embedQuery(text: string): Promise<number[]> {
    return letters(text)
  }
}

function letters(text: string): number[] {
  const counts = new Array<number>(26).fill(0)
  for (const char of text.toLowerCase()) {
    const at = char.charCodeAt(0) - 97
    if (at >= 0 && at < 26) counts[at] = (counts[at] ?? 0) + 1
  }
  return counts
}

for (const backend of backends) {
  describe.skipIf(backend.missing)(`HoldfastStore on ${backend.name}`, () => {
    let hf: Holdfast
    let scopes = 0
    const open = (options: object = {}): HoldfastStore =>
      new HoldfastStore(hf, { scope: { langgraph: `store-${scopes++}` }, ...options })
    beforeAll(async () => {
      hf = await openHoldfast(await backend.fresh())
    })
    afterAll(() => hf.close())

    it('keeps items by namespace and key, with the time they were made and changed', async () => {
      const store = open()
      await store.put(['users', '1'], 'profile', { name: 'Ann', at: new Date(0), tags: new Set(['x']) })
      const first = await store.get(['users', '1'], 'profile')
      expect(first).toEqual({
        namespace: ['users', '1'],
        key: 'profile',
        value: { name: 'Ann', at: new Date(0), tags: new Set(['x']) },
        createdAt: expect.any(Date),
        updatedAt: expect.any(Date),
      })
      await store.put(['users', '1'], 'profile', { name: 'Bob' })
      const second = await store.get(['users', '1'], 'profile')
      expect(second?.value).toEqual({ name: 'Bob' })
      expect(second?.createdAt).toEqual(first?.createdAt)
      await store.delete(['users', '1'], 'profile')
      expect(await store.get(['users', '1'], 'profile')).toBeNull()
      expect(await store.get(['users'], 'profile')).toBeNull()
    })

    it('takes namespaces and keys for what they are', async () => {
      const store = open()
      const labels = ['a', 'a!b', 'a b', '%21', '*', '日本', "' OR 1=1 --", '__proto__', '/', ':', '{}']
      const keys = ['k', 'a\nb', '%', 'x/../y', '__proto__', '🎉']
      const operations: Operation[] = labels.flatMap((label) =>
        keys.map((key) => ({ namespace: ['n', label], key, value: { label, key } })),
      )
      await store.batch(operations)
      for (const label of labels) {
        for (const key of keys) expect((await store.get(['n', label], key))?.value).toEqual({ label, key })
        expect(await store.search(['n', label], { limit: 100 })).toHaveLength(keys.length)
      }
      const namespaces = await store.listNamespaces({ limit: 100 })
      expect(namespaces.map(([, label]) => label).sort()).toEqual([...labels].sort())
      expect(await store.listNamespaces({ prefix: ['n', 'a'] })).toEqual([['n', 'a']])
      for (const namespace of [[], ['a.b'], ['langgraph'], [''], ['a', ''], [7 as never]]) {
        for (const one of [store, new InMemoryStore()]) {
          await expect(one.put(namespace, 'k', {})).rejects.toBeInstanceOf(InvalidNamespaceError)
        }
      }
      await expect(store.put(['a'], '', {})).rejects.toMatchObject({ code: 'invalid-id' })
      await expect(store.put(['a'], 'k', { f: () => 1 })).rejects.toMatchObject({ code: 'invalid-value' })
      await expect(store.put(['a'], 'k', [] as never)).rejects.toMatchObject({ code: 'invalid-option' })
    })

    it('reads before it writes within a batch, and lets the last write of an item win', async () => {
      const store = open()
      await store.put(['b'], 'x', { n: 0 })
      const results = await store.batch([
        { namespace: ['b'], key: 'x', value: { n: 1 } },
        { namespace: ['b'], key: 'x' },
        { namespacePrefix: ['b'] },
        { namespace: ['b'], key: 'x', value: { n: 2 } },
        { namespace: ['c'], key: 'y', value: { n: 3 } },
        { namespace: ['b'], key: 'gone', value: null },
        { matchConditions: [{ matchType: 'prefix', path: ['b'] }], limit: 10, offset: 0 },
      ])
      expect(results[1]).toMatchObject({ value: { n: 0 } })
      expect(results[2]).toMatchObject([{ value: { n: 0 } }])
      expect(results[6]).toEqual([['b']])
      expect(await store.get(['b'], 'x')).toMatchObject({ value: { n: 2 } })
      expect(await store.get(['c'], 'y')).toMatchObject({ value: { n: 3 } })
    })

    it('lists namespaces by prefix, suffix, wildcard and depth', async () => {
      const store = open()
      const paths = [['a'], ['a', 'b', 'v1'], ['a', 'c', 'v1'], ['a', 'c', 'v2'], ['ab', 'x', 'v1'], ['z']]
      for (const path of paths) await store.put(path, 'k', {})
      await store.put(['gone'], 'k', {})
      await store.delete(['gone'], 'k')
      expect(await store.listNamespaces()).toEqual(paths)
      expect(await store.listNamespaces({ prefix: ['a'] })).toEqual(paths.slice(0, 4))
      expect(await store.listNamespaces({ suffix: ['v1'] })).toEqual([paths[1], paths[2], paths[4]])
      expect(await store.listNamespaces({ prefix: ['*', 'c'] })).toEqual([paths[2], paths[3]])
      expect(await store.listNamespaces({ prefix: ['a', '*', 'v1'], suffix: ['*', 'v1'] })).toEqual([
        paths[1],
        paths[2],
      ])
      expect(await store.listNamespaces({ maxDepth: 1 })).toEqual([['a'], ['ab'], ['z']])
      expect(await store.listNamespaces({ maxDepth: 2, limit: 2, offset: 1 })).toEqual([
        ['a', 'b'],
        ['a', 'c'],
      ])
    })

    it('keeps tenants and scopes apart', async () => {
      const [one, two] = [open({ tenant: 't1', scope: { s: '1' } }), open({ tenant: 't2', scope: { s: '1' } })]
      const three = open({ tenant: 't1', scope: { s: '2' } })
      await one.put(['n'], 'k', { who: 1 })
      await two.put(['n'], 'k', { who: 2 })
      expect(await three.get(['n'], 'k')).toBeNull()
      expect(await three.listNamespaces()).toEqual([])
      expect(await one.search([])).toMatchObject([{ value: { who: 1 } }])
      expect(await two.search([])).toMatchObject([{ value: { who: 2 } }])
    })

    it('finds by meaning, by the same index configuration', async () => {
      const embeddings = new LetterEmbeddings()
      const index = { dims: 26, embeddings, fields: ['text', 'notes[*].body', '{title,kind}'] }
      const stores = [open({ index }), new InMemoryStore({ index })] as const
      const found = []
      for (const store of stores) {
        await store.put(['d'], 'cats', { text: 'aaa bbb', title: 'q', kind: 'r' })
        await store.put(['d'], 'dogs', { text: 'zzz', notes: [{ body: 'yyy' }, { body: 'aab' }] })
        await store.put(['d'], 'other', { text: 'mmm nnn' }, ['kind'])
        await store.put(['d'], 'hidden', { text: 'aaa bbb' }, false)
        const items = await store.search(['d'], { query: 'abab' })
        found.push(items.map(({ key, score }) => [key, score === undefined ? undefined : score.toFixed(5)]))
        expect((await store.search(['d'], { query: 'abab', limit: 1, offset: 1 })).map(({ key }) => key)).toEqual([
          'dogs',
        ])
        expect((await store.search(['d'], { query: 'zzz', filter: { text: 'zzz' } })).map(({ key }) => key)).toEqual([
          'dogs',
        ])
      }
      expect(found[0]?.slice(0, 2)).toEqual(found[1]?.slice(0, 2))
      // What has no vector comes last, in whatever order.
      expect(found[0]?.map(([key]) => key).sort()).toEqual(found[1]?.map(([key]) => key).sort())
      await (stores[0] as HoldfastStore).put(['d'], 'cats', { text: 'changed' }, false)
      const [first] = await stores[0].search(['d'], { query: 'aaa bbb' })
      expect(first?.key).toBe('dogs')
      const wrong = open({ index: { dims: 3, embeddings } })
      await expect(wrong.put(['d'], 'k', { text: 'x' })).rejects.toMatchObject({ code: 'invalid-value' })
      expect(await wrong.get(['d'], 'k')).toBeNull()
    })

    it('serves a graph', async () => {
      const State = Annotation.Root({ user: Annotation<string>(), visits: Annotation<number>() })
      const graph = new StateGraph(State)
        .addNode('count', async ({ user }, { store }) => {
          const known = await store?.get(['visits'], user)
          const visits = ((known?.value['n'] as number | undefined) ?? 0) + 1
          await store?.put(['visits'], user, { n: visits })
          return { visits }
        })
        .addEdge(START, 'count')
        .compile({ store: open() as BaseStore })
      await graph.invoke({ user: 'ann' })
      await graph.invoke({ user: 'bob' })
      expect(await graph.invoke({ user: 'ann' })).toMatchObject({ visits: 2 })
    })
  })
}

describe('filters of HoldfastStore', () => {
  const scalar = fc.oneof(
    fc.integer({ min: -3, max: 3 }),
    fc.constantFrom('a', 'b', '2', ''),
    fc.boolean(),
    fc.constant(null),
  )
  const condition = fc.oneof(
    scalar,
    fc.record(
      {
        $eq: scalar,
        $ne: scalar,
        $gt: scalar,
        $gte: scalar,
        $lt: scalar,
        $lte: scalar,
        $in: fc.array(scalar),
        $nin: fc.array(scalar),
      },
      { requiredKeys: [] },
    ),
  )
  // The last marks what is no plain object in the stored form.
  const fields = fc.constantFrom('x', 'y', '$')

  it('find what those of InMemoryStore find', async () => {
    await using hf = await openHoldfast('memory:')
    let scopes = 0
    const values = fc.array(fc.dictionary(fields, scalar, { maxKeys: 3 }), { maxLength: 8 })
    const filters = fc.array(fc.dictionary(fields, condition, { maxKeys: 2 }), { minLength: 1, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(values, filters, async (items, wanted) => {
        const scope = { s: String(scopes++) }
        const narrowed = { scope: { ...scope, narrowed: 'yes' }, filterFields: ['x', '$'] }
        const written: BaseStore[] = [
          new HoldfastStore(hf, { scope }),
          new HoldfastStore(hf, narrowed),
          new InMemoryStore(),
        ]
        for (const store of written) {
          await store.batch(items.map((value, i) => ({ namespace: ['n'], key: String(i), value })))
        }
        // The last one reads by fields that were not named when the items were written.
        const stores: BaseStore[] = [...written, new HoldfastStore(hf, { scope, filterFields: ['y'] })]
        for (const filter of wanted) {
          const found = await Promise.all(
            stores.map(async (store) =>
              (await store.search(['n'], { filter, limit: 100 })).map(({ key }) => key).sort(),
            ),
          )
          for (const one of found) expect(one).toEqual(found[2])
        }
        expect(await written[1]?.batch(items.map((_, i) => ({ namespace: ['n'], key: String(i) })))).toMatchObject(
          items.map((value) => ({ value })),
        )
      }),
      randomly(rounds(60)),
    )
  })

  it('refuse an operator that nobody knows, and take keys for nothing but keys', async () => {
    await using hf = await openHoldfast('memory:')
    const store = new HoldfastStore(hf)
    await store.put(['n'], 'k', { a: 1, 'b.c': 2, "x' OR '1'='1": 3 })
    const count = async (filter: Record<string, unknown>): Promise<number> =>
      (await store.search(['n'], { filter })).length
    await expect(count({ a: { $regex: '.*' } })).rejects.toMatchObject({ code: 'invalid-option' })
    await expect(count([] as never)).rejects.toMatchObject({ code: 'invalid-option' })
    expect(await count({ 'b.c': 2, "x' OR '1'='1": 3 })).toBe(1)
    expect(await count({ "a' OR '1'='1": 1 })).toBe(0)
    expect(await count({ toString: Object.prototype.toString })).toBe(0)
  })
})

describe('expiry in HoldfastStore', () => {
  it('counts minutes, and begins anew when an item is read', async () => {
    const clock = virtualClock()
    await using hf = await openHoldfast('memory:', { clock })
    const store = new HoldfastStore(hf, { ttl: { defaultTtl: 10 } })
    const still = new HoldfastStore(hf, { ttl: { defaultTtl: 10, refreshOnRead: false }, scope: { s: 'still' } })
    for (const one of [store, still]) {
      await one.put(['n'], 'read', { n: 1 })
      await one.put(['n'], 'left', { n: 2 })
      await one.put(['short'], 'own', { n: 3 }, undefined, { ttl: 1 })
    }
    await clock.advance(9 * 60_000)
    expect(await store.get(['n'], 'read')).not.toBeNull()
    expect(await still.get(['n'], 'read')).not.toBeNull()
    expect(await store.get(['short'], 'own')).toBeNull()
    await clock.advance(2 * 60_000)
    expect(await store.get(['n'], 'read')).not.toBeNull()
    expect(await store.get(['n'], 'left')).toBeNull()
    expect(await still.get(['n'], 'read')).toBeNull()
    expect(await store.listNamespaces()).toEqual([['n']])
    expect((await store.search([])).map(({ key }) => key)).toEqual(['read'])
    await expect(store.put(['n'], 'k', {}, undefined, { ttl: 0 })).rejects.toMatchObject({ code: 'invalid-option' })
  })
})

afterAll(cleanUp)
