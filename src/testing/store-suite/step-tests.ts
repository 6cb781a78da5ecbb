import assert from 'node:assert/strict'
import { type Draft, ops, type StoreWrite } from '../../log/index.js'
import { contents, keysOf, notes, refuses, type StoreTest } from './store-context.js'

const { set } = ops

const step = (store: readonly StoreWrite[]): readonly Draft[] => [{ kind: 'step', ops: [set('done', true)], store }]

export const stepTests: readonly StoreTest[] = [
  {
    name: 'makes the writes of a step with its entry, before the update resolves',
    async run({ hf, clock }) {
      const collection = hf.store.scope({ user: 'u' }).collection<unknown>('c', { index: ['n'] })
      await collection.put('old', 1)
      const log = await hf.log('thread')
      await clock.advance(5)
      const value = { n: 1, at: new Date(7), big: 9n, bytes: new Uint8Array([1]), long: 'x'.repeat(100_000) }
      const store = [
        await collection.write.put('new', value),
        collection.write.delete('old'),
        collection.write.delete('none'),
      ]
      await log.update(() => step(store))
      const item = await collection.get('new')
      assert.deepEqual(item?.value, value)
      assert.equal(item.createdAt.getTime(), clock.now())
      assert.equal(await collection.get('old'), undefined)
      assert.deepEqual(keysOf(await collection.search({ filter: { n: 1 } })), ['new'])
      await log.update(() => [{ kind: 'step', ops: [set('more', 1)] }])
      assert.equal((await collection.get('new'))?.version, item.version)
      const again = await collection.put('new', 2, { expect: item.version })
      assert.notEqual(again.version, item.version)
    },
  },
  {
    name: 'keeps the last of several writes to one item, within an entry and across entries',
    async run({ hf }) {
      const { write } = notes(hf)
      const list = () => contents(notes(hf))
      const log = await hf.log('thread')
      const put = (key: string, value: unknown) => write.put(key, value)
      const first = [await put('a', 1), write.delete('a'), await put('b', 1), await put('a', 2), write.delete('b')]
      await log.update(() => step(first))
      assert.deepEqual(await list(), [['a', 2]])
      const [one, two, three] = [await put('a', 3), await put('b', 3), await put('a', 4)]
      await log.update(() => [...step([one, two]), ...step([three])])
      assert.deepEqual(await list(), [
        ['a', 4],
        ['b', 3],
      ])
      const many = await Promise.all(Array.from({ length: 20 }, (_, i) => put('a', `u${i}`)))
      await Promise.all(many.map((each) => log.update(() => step([each]))))
      assert.deepEqual((await list())[0], ['a', 'u19'])
    },
  },
  {
    name: 'writes nothing when an update is refused, aborted or decided anew',
    async run({ hf, open }) {
      const collection = notes(hf)
      const log = await hf.log('thread')
      await log.update(() => step([]).map(({ kind, ops }) => ({ kind, ...(ops ? { ops } : {}) })))
      const bad = await collection.write.put('bad', 1)
      await assert.rejects(log.update(() => step([bad, ['put', 'x', '', 1, null]])))
      await assert.rejects(log.update(() => [{ kind: 'step', store: [bad], ops: [['set', 5] as never] }]))
      await log.update(() => undefined)
      await assert.rejects(
        log.update(() => {
          throw new TypeError('no')
        }),
        TypeError,
      )
      for (const odd of [
        [['put', 'a\0b', 'k', 1, null]],
        [['put', 's', 'k', 1, 1.5]],
        [['put', 's', 'k', 1]],
        [['drop', 's', 'k']],
        [['delete', 's']],
        [],
        [['put', 's', 'k'.repeat(1025), 1, null]],
      ]) {
        await refuses(() => log.update(() => step(odd as never)), 'invalid-value')
      }
      assert.deepEqual(await contents(collection), [])
      const other = await (await open()).log('thread')
      await other.update(() => [{ kind: 'step', ops: [set('n', 1)] }])
      const [stale, fresh] = [await collection.write.put('stale', 1), await collection.write.put('fresh', 1)]
      await log.update(({ state }) => step([state.n === 1 ? fresh : stale]))
      assert.deepEqual(await contents(collection), [['fresh', 1]])
    },
  },
  {
    name: 'lets a fenced worker write nothing',
    async run({ hf, open }) {
      const collection = notes(hf)
      const mine = await (await hf.log('thread')).claim({ owner: 'a', ms: 60_000 })
      const write = await collection.write.put('k', 'a')
      await mine.update(() => step([write]))
      const theirs = await (await (await open()).log('thread')).claim({ owner: 'b', ms: 60_000, force: true })
      const other = await collection.write.put('k', 'b')
      await theirs.update(() => step([other]))
      const late = await collection.write.put('k', 'late')
      await refuses(() => mine.update(() => step([late])), 'fenced')
      assert.deepEqual(await contents(collection), [['k', 'b']])
    },
  },
  {
    name: 'carries writes in the first entry, in claims of owners and in forks, each once',
    async run({ hf }) {
      const collection = notes(hf)
      const write = await collection.write.put('first', 1)
      const log = await hf.log('thread')
      await log.update(() => step([write]))
      const item = await collection.get('first')
      const fork = await log.fork({ branch: 'b' as never, draft: { store: [await collection.write.put('forked', 2)] } })
      await collection.delete('first')
      await hf.log('thread', { branch: 'b' })
      await hf.log('thread')
      assert.deepEqual(await contents(collection), [['forked', 2]], 'a fork does not repeat what its origin wrote')
      await fork.update(() => step([write]))
      assert.deepEqual(await contents(collection), [
        ['first', 1],
        ['forked', 2],
      ])
      assert.notEqual((await collection.get('first'))?.version, item?.version)
    },
  },
  {
    name: 'keeps items when the thread that wrote them is erased or pruned',
    async run({ hf }) {
      const collection = notes(hf)
      const log = await hf.log('thread')
      const write = await collection.write.put('k', 1)
      await log.update(() => step([write]))
      await log.update(() => [{ kind: 'step', keyframe: true }])
      await hf.prune('thread', 1)
      assert.equal((await collection.get('k'))?.value, 1)
      await hf.erase('thread')
      assert.equal((await collection.get('k'))?.value, 1)
      await (await hf.log('thread')).update(() => step([write]))
      assert.equal((await collection.get('k'))?.value, 1)
    },
  },
]
