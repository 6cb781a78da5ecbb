import { AIMessage, type BaseMessage, HumanMessage } from '@langchain/core/messages'
import {
  type Checkpoint,
  type CheckpointTuple,
  ERROR,
  INTERRUPT,
  RESUME,
  TASKS,
  uuid6,
} from '@langchain/langgraph-checkpoint'
import { type Holdfast, openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { all, type At, backends, cleanUp, loop, makeCheckpoint, put, start } from './support.js'

function messagesOf(tuple: CheckpointTuple | undefined): BaseMessage[] {
  return tuple?.checkpoint.channel_values['messages'] as BaseMessage[]
}

for (const backend of backends) {
  describe.skipIf(backend.missing)(`HoldfastSaver on ${backend.name}`, () => {
    let hf: Holdfast
    let threads = 0
    const thread = (): string => `thread-${threads++}`
    const values = async (saver: HoldfastSaver, config: object) =>
      (await saver.getTuple(config))?.checkpoint.channel_values

    beforeAll(async () => {
      hf = await openHoldfast(await backend.fresh())
    })
    afterAll(() => hf.close())

    it('stores a conversation as what each step added', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const messages: HumanMessage[] = []
      let at = start(id)
      for (let turn = 0; turn < 100; turn++) {
        messages.push(new HumanMessage({ id: `m${turn}`, content: `${turn} `.repeat(200) }))
        at = await put(saver, at, { messages: [...messages], turn }, turn + 1)
      }
      const log = await hf.log({ langgraph: id })
      const sizes = (await log.history({ limit: 1000 })).map(({ header }) => header.size)
      expect(sizes).toHaveLength(100)
      const deltas = sizes.filter((size) => size < 3000).length
      expect(deltas).toBeGreaterThan(95)
      // A saver that knows nothing yet reads every one of them as it was.
      const cold = new HoldfastSaver(hf)
      const tuples = await all(cold.list(start(id)))
      expect(tuples.map(({ checkpoint }) => (checkpoint.channel_values['messages'] as unknown[]).length)).toEqual(
        Array.from({ length: 100 }, (_, i) => 100 - i),
      )
      expect(messagesOf(tuples[40]).at(-1)?.id).toBe('m59')
      expect(tuples[0]?.config).toEqual(at)
      const middle = await cold.getTuple(tuples[37]?.config as object)
      expect(middle).toEqual(tuples[37])
    })

    it('appends to a conversation that another saver began without writing it again', async () => {
      const id = thread()
      const first = Array.from({ length: 50 }, (_, i) => new HumanMessage({ id: `m${i}`, content: 'x'.repeat(500) }))
      const at = await put(new HoldfastSaver(hf), start(id), { messages: first })
      const cold = new HoldfastSaver(hf)
      const loaded = (await values(cold, start(id)))?.['messages'] as HumanMessage[]
      await put(cold, at, { messages: [...loaded, new AIMessage('done')] }, 2)
      // Not even the objects are the same: only what they hold tells.
      const colder = new HoldfastSaver(hf)
      const tuple = await colder.getTuple(start(id))
      const again = [...first, new AIMessage(messagesOf(tuple).at(-1) as never)]
      await put(colder, tuple?.config as never, { messages: [...again, new HumanMessage('more')] }, 3)
      const [last, before] = await (await hf.log({ langgraph: id })).history({ limit: 2 })
      expect(before?.header.size).toBeLessThan(2000)
      expect(last?.header.size).toBeLessThan(2000)
      expect(await values(colder, start(id))).toMatchObject({ messages: { length: 52 } })
    })

    it('notices an item that a node changed in place', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const todos = [
        { text: 'a', done: false },
        { text: 'b', done: false },
      ]
      const profile = { name: 'Ann', tags: ['x'] }
      const message = new AIMessage({ id: '1', content: 'draft' })
      const at = await put(saver, start(id), { todos, profile, messages: [message] })
      const first = todos[0] as { done: boolean }
      first.done = true
      profile.tags.push('y')
      message.content = 'final'
      await put(saver, at, { todos, profile, messages: [message] }, 2)
      const now = await values(saver, start(id))
      expect(now?.['todos']).toEqual([
        { text: 'a', done: true },
        { text: 'b', done: false },
      ])
      expect(now?.['profile']).toEqual({ name: 'Ann', tags: ['x', 'y'] })
      expect(now?.['messages']).toMatchObject([{ content: 'final' }])
      const then = await values(saver, at)
      expect(then?.['profile']).toEqual({ name: 'Ann', tags: ['x'] })
    })

    it('keeps lists that lose, change or reorder items', async () => {
      const saver = new HoldfastSaver(hf)
      const lists = [
        [1, 2, 3, 4],
        [1, 2, 4],
        [4, 2, 1],
        [],
        ['a'],
        [{ a: 1 }, { a: 2 }],
        [{ a: 2 }, { a: 2 }],
        [[1], [2]],
      ]
      let at = start(thread())
      const kept = []
      for (const [i, list] of lists.entries()) kept.push((at = await put(saver, at, { list }, i + 1)))
      for (const [i, config] of kept.entries()) expect(await values(saver, config)).toEqual({ list: lists[i] })
    })

    it('removes a channel that a checkpoint no longer has, and takes unchanged ones from the parent', async () => {
      const saver = new HoldfastSaver(hf)
      const at = await put(saver, start(thread()), { a: 1, b: { deep: [1] }, c: 'c' })
      const next = { ...makeCheckpoint({ a: 2, b: { deep: [1] } }), channel_versions: { a: 2, b: 1, c: 1 } }
      const after = await saver.put(at, next, loop(), { a: 2 })
      expect(await values(saver, after)).toEqual({ a: 2, b: { deep: [1] } })
      expect((await saver.getTuple(after))?.checkpoint.channel_versions).toEqual({ a: 2, b: 1, c: 1 })
      expect(await values(saver, at)).toEqual({ a: 1, b: { deep: [1] }, c: 'c' })
    })

    it('stores what differs from the parent without a new version, as updates of LangGraph do', async () => {
      for (const compare of ['recent', 'all'] as const) {
        const saver = new HoldfastSaver(hf, { compare })
        const notes = { deep: [1] }
        const first = { sent: ['a', 'b'], notes, list: [1, 2] }
        const at = await put(saver, start(thread()), first)
        const next = {
          ...makeCheckpoint({ ...first, sent: [], found: new Map([['x', 1]]) }),
          channel_versions: { sent: 1 },
        }
        const after = await saver.put(at, next, loop(), {})
        const changed = {
          ...makeCheckpoint({ ...next.channel_values, notes: { deep: [2] }, list: [1] }),
          channel_versions: {},
        }
        const last = await saver.put(after, changed, loop(), {})
        for (const reader of [saver, new HoldfastSaver(hf)]) {
          expect(await values(reader, at)).toEqual(first)
          expect(await values(reader, after)).toEqual(next.channel_values)
          expect(await values(reader, last)).toEqual(changed.channel_values)
        }
      }
    })

    it('gives a fork its own values, though channel and version are the same', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const root = await put(saver, start(id), { messages: ['root'] })
      const left = await put(saver, root, { messages: ['root', 'left'] }, 2)
      const right = await put(saver, root, { messages: ['root', 'right'] }, 2)
      const leftNext = await put(saver, left, { messages: ['root', 'left', 'l2'] }, 3)
      const rightNext = await put(saver, right, { messages: ['root', 'right', 'r2'] }, 3)
      for (const reader of [saver, new HoldfastSaver(hf)]) {
        expect(await values(reader, left)).toEqual({ messages: ['root', 'left'] })
        expect(await values(reader, right)).toEqual({ messages: ['root', 'right'] })
        expect(await values(reader, leftNext)).toEqual({ messages: ['root', 'left', 'l2'] })
        expect(await values(reader, rightNext)).toEqual({ messages: ['root', 'right', 'r2'] })
        expect((await reader.getTuple(right))?.parentConfig).toEqual(root)
        expect((await reader.getTuple(start(id)))?.config).toEqual(rightNext)
        const ids = (await all(reader.list(start(id)))).map(({ config }) => config)
        expect(ids).toEqual([rightNext, leftNext, right, left, root])
      }
      expect((await hf.threads({ thread: { langgraph: id } })).threads).toHaveLength(2)
    })

    it('forks a fork, from where its own past and that of its origin meet', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const root = await put(saver, start(id), { n: [0] })
      await put(saver, root, { n: [0, 1] }, 2)
      const forked = await put(saver, root, { n: [0, 2] }, 2)
      await put(saver, forked, { n: [0, 2, 3] }, 3)
      const again = await put(new HoldfastSaver(hf), forked, { n: [0, 2, 4] }, 3)
      const third = await put(new HoldfastSaver(hf), root, { n: [0, 5] }, 2)
      expect(await values(saver, again)).toEqual({ n: [0, 2, 4] })
      expect(await values(saver, third)).toEqual({ n: [0, 5] })
      expect((await all(saver.list(start(id)))).length).toBe(6)
    })

    it('refuses a second successor with onFork refuse, and writes nothing', async () => {
      const saver = new HoldfastSaver(hf, { onFork: 'refuse' })
      const id = thread()
      const root = await put(saver, start(id), { n: 0 })
      const next = await put(saver, root, { n: 1 }, 2)
      await expect(put(saver, root, { n: 2 }, 2)).rejects.toMatchObject({
        code: 'conflict',
        data: { parent: root.configurable.checkpoint_id, head: next.configurable.checkpoint_id },
      })
      await expect(put(saver, start(id), { n: 3 })).rejects.toMatchObject({ code: 'conflict' })
      expect((await all(saver.list(start(id)))).map(({ checkpoint }) => checkpoint.channel_values)).toEqual([
        { n: 1 },
        { n: 0 },
      ])
    })

    it('takes a put that is repeated for the same one', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const root = await put(saver, start(id), { n: [0] })
      const forkPoint = await put(saver, root, { n: [0, 9] }, 2)
      const checkpoint = makeCheckpoint({ n: [0, 1] }, 2)
      for (const reader of [saver, saver, new HoldfastSaver(hf)]) {
        const config = await reader.put(root, checkpoint, loop(), { n: 2 })
        await reader.putWrites(config, [['n', 'w']], 'task')
      }
      expect(await all(saver.list(start(id)))).toHaveLength(3)
      const tuple = await saver.getTuple(start(id))
      expect(tuple?.checkpoint).toEqual(checkpoint)
      expect(tuple?.pendingWrites).toEqual([['task', 'n', 'w']])
      expect(await values(saver, forkPoint)).toEqual({ n: [0, 9] })
    })

    it('takes a put for the same one also when others follow it by now', async () => {
      for (const onFork of ['branch', 'refuse'] as const) {
        const saver = new HoldfastSaver(hf, { onFork })
        const id = thread()
        const checkpoints = [1, 2, 3].map((n) => makeCheckpoint({ n }, n))
        const at = [start(id)]
        for (const [i, one] of checkpoints.entries()) {
          at.push((await saver.put(at[i] as At, one, loop(i), one.channel_versions)) as At)
        }
        const before = await all(saver.list(start(id)))
        for (const again of [saver, new HoldfastSaver(hf, { onFork })]) {
          for (const [i, one] of checkpoints.entries()) {
            await again.put(at[i] as At, one, loop(i), one.channel_versions)
            // LangGraph does so when it saves on exit and nothing has happened.
            await again.put(at[i + 1] as At, one, loop(i), {})
          }
          expect(await all(again.list(start(id)))).toEqual(before)
        }
        const other = { ...(checkpoints[1] as Checkpoint), channel_values: { n: 'other' } }
        await expect(saver.put(at[1] as At, other, loop(1), { n: 2 })).rejects.toMatchObject({ code: 'conflict' })
        expect(await all(new HoldfastSaver(hf).list(start(id)))).toEqual(before)
        // One that is gone is stored whole, and is nobody's parent of itself.
        await saver.deleteThread(id)
        await saver.put(at[2] as At, checkpoints[1] as Checkpoint, loop(1), {})
        const [left, ...rest] = await all(saver.list(start(id)))
        expect([left?.checkpoint.channel_values, left?.parentConfig, rest]).toEqual([{ n: 2 }, undefined, []])
      }
    })

    it('stores a checkpoint whole whose parent was never saved', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const parent = { configurable: { thread_id: id, checkpoint_ns: '', checkpoint_id: uuid6(0) } }
      const checkpoint = makeCheckpoint({ a: 1, b: 2 })
      const config = await saver.put(parent, checkpoint, loop(), { a: 1 })
      const tuple = await saver.getTuple(config)
      expect(tuple?.checkpoint.channel_values).toEqual({ a: 1, b: 2 })
      expect(tuple?.parentConfig).toEqual(parent)
    })

    it('keeps writes by task and index, once each, and replaces special ones', async () => {
      const saver = new HoldfastSaver(hf)
      const at = await put(saver, start(thread()), { n: 0 })
      await saver.putWrites(
        at,
        [
          ['a', 1],
          ['b', 2],
        ],
        'one',
      )
      await saver.putWrites(
        at,
        [
          ['a', 'again'],
          ['b', 'again'],
          ['c', 3],
        ],
        'one',
      )
      await saver.putWrites(at, [[INTERRUPT, 'first']], 'two')
      await saver.putWrites(
        at,
        [
          [INTERRUPT, 'second'],
          [RESUME, ['yes']],
          [ERROR, 'e'],
        ],
        'two',
      )
      const expected = [
        ['one', 'a', 1],
        ['one', 'b', 2],
        ['one', 'c', 3],
        ['two', INTERRUPT, 'second'],
        ['two', RESUME, ['yes']],
        ['two', ERROR, 'e'],
      ]
      expect((await saver.getTuple(at))?.pendingWrites).toEqual(expected)
      // They stay with their checkpoint when it has a successor, also the ones that come later.
      await put(saver, at, { n: 1 }, 2)
      await saver.putWrites(at, [['late', 1]], 'three')
      await saver.putWrites(at, [['a', 'again']], 'one')
      await new HoldfastSaver(hf).putWrites(at, [[INTERRUPT, 'third']], 'two')
      const tuple = await saver.getTuple(at)
      expect(tuple?.pendingWrites).toEqual([
        ...expected.slice(0, 3),
        ['two', INTERRUPT, 'third'],
        ...expected.slice(4),
        ['three', 'late', 1],
      ])
      const [newest] = await all(saver.list({ configurable: { thread_id: at.configurable.thread_id } }))
      expect(newest?.pendingWrites).toEqual([])
    })

    it('keeps writes that arrive before their checkpoint, also when it becomes a fork', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const first = makeCheckpoint({ n: 0 })
      await saver.putWrites({ configurable: { ...start(id).configurable, checkpoint_id: first.id } }, [['n', 'e']], 't')
      const root = await saver.put(start(id), first, loop(), { n: 1 })
      expect((await saver.getTuple(root))?.pendingWrites).toEqual([['t', 'n', 'e']])
      await put(saver, root as never, { n: 1 }, 2)
      const fork = makeCheckpoint({ n: 2 }, 2)
      const at = { configurable: { ...start(id).configurable, checkpoint_id: fork.id } }
      const early = saver.putWrites(at, [['n', 'early']], 't')
      const forking = saver.put(root, fork, loop(), { n: 2 })
      await Promise.all([early, forking])
      await saver.putWrites(at, [['n', 'late']], 'u')
      for (const reader of [saver, new HoldfastSaver(hf)]) {
        expect((await reader.getTuple(at))?.pendingWrites).toEqual([
          ['t', 'n', 'early'],
          ['u', 'n', 'late'],
        ])
      }
    })

    it('keeps writes that arrive while their checkpoint becomes a fork, however they fall', async () => {
      const saver = new HoldfastSaver(hf)
      for (let round = 0; round < 12; round++) {
        const root = await put(saver, start(thread()), { n: 1 })
        await put(saver, root, { n: 2 }, 2)
        const fork = makeCheckpoint({ n: 3 }, 3)
        const at = { configurable: { ...root.configurable, checkpoint_id: fork.id } }
        const tasks = [0, 1, 2, 3, 4, 5]
        const working: Promise<unknown>[] = []
        for (const task of tasks) {
          if (task === round % tasks.length) working.push(saver.put(root, fork, loop(2), { n: 3 }))
          working.push(saver.putWrites(at, [['n', task]], `t${task}`))
          if (round >= tasks.length) for (let turn = 0; turn < 3 * task; turn++) await Promise.resolve()
        }
        await Promise.all(working)
        const next = await put(saver, at, { n: 4 }, 4)
        for (const reader of [saver, new HoldfastSaver(hf)]) {
          const { pendingWrites = [] } = (await reader.getTuple(at)) ?? {}
          expect(pendingWrites.map(([task]) => task).sort()).toEqual(tasks.map((task) => `t${task}`))
          expect((await reader.getTuple(next))?.pendingWrites).toEqual([])
        }
      }
    })

    it('keeps namespaces and threads apart, whatever they are called', async () => {
      const saver = new HoldfastSaver(hf, { tenant: `names-${backend.name}` })
      const names = ['', 'child', 'a:b|c:d', 'main', 'ns:child', '@', 'x'.repeat(2000), '日本|🎉', "'; DROP TABLE --"]
      const ids = ['1', '{langgraph=1}', '\\1', '__proto__', 'constructor', 'a/../b', '日本 🎉', "' OR 1=1 --"]
      for (const id of ids) for (const ns of names) await put(saver, start(id, ns), { who: [id, ns] })
      // A namespace named like a branch of another, and one named like the label of a long one.
      const root = await put(saver, start('forked', 'x'), { who: 'root' })
      await put(saver, root, { who: 'left' }, 2)
      const right = await put(saver, root, { who: 'right' }, 2)
      const { threads: labelled } = await hf.tenant(`names-${backend.name}`).threads({ thread: { langgraph: '1' } })
      const label = labelled.map(({ metadata }) => metadata['ns'] as string).find((ns) => ns.startsWith('#')) as string
      const pretenders = [start('forked', `x@${right.configurable.checkpoint_id}`), start('1', label)]
      for (const at of pretenders) expect(await saver.getTuple(at)).toBeUndefined()
      for (const at of pretenders) await put(saver, at, { who: 'pretender' })
      for (const at of pretenders) expect(await values(saver, at)).toEqual({ who: 'pretender' })
      expect(await values(saver, start('forked', 'x'))).toEqual({ who: 'right' })
      await saver.deleteThread('forked')
      const cold = new HoldfastSaver(hf, { tenant: `names-${backend.name}` })
      for (const id of ids) {
        for (const ns of names) expect(await values(cold, start(id, ns))).toEqual({ who: [id, ns] })
        const tuples = await all(cold.list({ configurable: { thread_id: id } }))
        const listed = tuples.map(({ config }) => config.configurable?.['checkpoint_ns'] as string)
        expect(listed.sort()).toEqual([...names, ...(id === '1' ? [label] : [])].sort())
      }
      await cold.deleteThread('1')
      expect(await all(saver.list({ configurable: { thread_id: '1' } }))).toEqual([])
      expect(await all(saver.list({}))).toHaveLength((ids.length - 1) * names.length)
      expect(await all(new HoldfastSaver(hf, { tenant: 'nobody' }).list({}))).toEqual([])
    })

    it('lists by descending id across namespaces, forks and threads, and pages with before and limit', async () => {
      const saver = new HoldfastSaver(hf, { tenant: `list-${backend.name}` })
      const configs: object[] = []
      const ends = new Map<string, never>()
      for (let i = 0; i < 60; i++) {
        const name = `t${i % 3}/${i % 2 === 0 ? '' : 'child'}`
        const [id, ns] = name.split('/') as [string, string]
        const after = i % 10 === 9 ? start(id, ns) : (ends.get(name) ?? start(id, ns))
        const config = await put(saver, after, { i }, i + 1)
        ends.set(name, config as never)
        configs.push(config)
      }
      const newestFirst = configs.reverse()
      const cold = new HoldfastSaver(hf, { tenant: `list-${backend.name}`, openBranches: 2 })
      const listed = (await all(cold.list({}))).map(({ config }) => config)
      expect(listed).toEqual(newestFirst)
      const paged: object[] = []
      for (let before: object | undefined; ; ) {
        const page = await all(cold.list({}, { limit: 7, ...(before ? { before } : {}) }))
        paged.push(...page.map(({ config }) => config))
        before = page.at(-1)?.config
        if (page.length < 7) break
      }
      expect(paged).toEqual(newestFirst)
      expect(await all(cold.list({}, { limit: 0 }))).toEqual([])
      const one = await all(cold.list(configs[10] as never))
      expect(one.map(({ config }) => config)).toEqual([configs[10]])
    })

    it('finds old checkpoints by id, and orders ids that do not follow time', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const ids = ['m', 'c', 'x', 'a', 'z', 'b']
      let at = start(id)
      for (const [i, name] of ids.entries()) {
        const checkpoint = makeCheckpoint({ name }, i + 1, name)
        at = (await saver.put(at, checkpoint, loop(i), checkpoint.channel_versions)) as never
      }
      const cold = new HoldfastSaver(hf)
      for (const name of ids) {
        const config = { configurable: { ...start(id).configurable, checkpoint_id: name } }
        expect(await values(cold, config)).toEqual({ name })
      }
      const listed = (await all(cold.list(start(id), { before: { configurable: { checkpoint_id: 'y' } } }))).map(
        ({ checkpoint }) => checkpoint.id,
      )
      expect(listed).toEqual(['x', 'm', 'c', 'b', 'a'])
      const unknown = { configurable: { ...start(id).configurable, checkpoint_id: 'n' } }
      expect(await cold.getTuple(unknown)).toBeUndefined()
    })

    it('filters metadata by value, and takes no part of a filter for anything else', async () => {
      const saver = new HoldfastSaver(hf, { tenant: `filter-${backend.name}` })
      const odd = { "a' OR '1'='1": 1, 'x.y': { z: [1, null] }, $eq: 'plain', source: 'input' as const }
      const checkpoint = makeCheckpoint({ n: 1 })
      await saver.put(start('t'), checkpoint, loop(3, odd) as never, { n: 1 })
      const count = async (filter: Record<string, unknown>): Promise<number> =>
        (await all(saver.list({}, { filter }))).length
      expect(await count({ "a' OR '1'='1": 1 })).toBe(1)
      expect(await count({ 'x.y': { z: [1, null] }, $eq: 'plain' })).toBe(1)
      expect(await count({ step: 3, source: 'input' })).toBe(1)
      expect(await count({ step: '3' })).toBe(0)
      expect(await count({ "step' OR 1=1 --": 3 })).toBe(0)
      expect(await count({ step: { $gt: 0 } })).toBe(0)
      expect(await count({ constructor: Object.prototype.constructor.name })).toBe(0)
      expect(await count({ toString: 'x' })).toBe(0)
      expect(await count({ ['__proto__']: null, missing: undefined })).toBe(0)
      // As MemorySaver has it.
      expect(await count({ missing: undefined, step: 3 })).toBe(1)
      expect(await count({ step: undefined })).toBe(0)
      expect(await all(saver.list({ configurable: { thread_id: 't', checkpoint_id: '' } }))).toHaveLength(1)
      await expect(count({ step: () => true })).rejects.toMatchObject({ code: 'invalid-value' })
    })

    it('begins anew after deleteThread, also in a saver that knew the thread', async () => {
      const saver = new HoldfastSaver(hf)
      const other = new HoldfastSaver(hf)
      const id = thread()
      const at = await put(saver, start(id), { n: 1 })
      await put(saver, start(id, 'child'), { n: 1 })
      expect(await values(other, at)).toEqual({ n: 1 })
      await other.deleteThread(id)
      expect(await saver.getTuple(start(id))).toBeUndefined()
      expect(await all(saver.list({ configurable: { thread_id: id } }))).toEqual([])
      await put(other, start(id), { n: 2 })
      expect(await values(saver, start(id))).toEqual({ n: 2 })
      await put(saver, at, { n: 3 }, 2)
      expect(await saver.getTuple(at)).toBeUndefined()
      expect(await values(other, start(id))).toEqual({ n: 3 })
    })

    it('shows old pending sends as LangGraph expects them, on forks too', async () => {
      const saver = new HoldfastSaver(hf)
      const id = thread()
      const root = await saver.put(start(id), { ...makeCheckpoint({}), v: 3 }, loop(), {})
      await saver.putWrites(root, [[TASKS, 's1']], 'b')
      await saver.putWrites(root, [[TASKS, 's0']], 'a')
      await saver.put(root, { ...makeCheckpoint({}), v: 3 }, loop(1), {})
      const fork = await saver.put(root, { ...makeCheckpoint({}), v: 3 }, loop(1), {})
      expect((await saver.getTuple(fork))?.checkpoint.channel_values).toEqual({ [TASKS]: ['s0', 's1'] })
      const sends = (await all(saver.list(start(id)))).map(({ checkpoint }) => checkpoint.channel_values[TASKS])
      expect(sends).toEqual([['s0', 's1'], ['s0', 's1'], undefined])
    })

    it('walks the writes of delta channels through forks, and not through their siblings', async () => {
      const saver = new HoldfastSaver(hf)
      const root = await put(saver, start(thread()), { log: ['seed'] })
      await saver.putWrites(root, [['log', 'r']], 'a')
      const gone = { ...makeCheckpoint({}), channel_versions: { log: 2 } }
      const middle = await saver.put(root, gone, loop(1), { log: 2 })
      await saver.putWrites(middle, [['log', 'm2']], 'b')
      await saver.putWrites(middle, [['log', 'm1']], 'a')
      const left = await saver.put(middle, makeCheckpoint({}), loop(2), {})
      await saver.putWrites(left, [['log', 'left']], 'a')
      await saver.put(left, makeCheckpoint({}), loop(3), {})
      const right = await saver.put(middle, makeCheckpoint({}), loop(2), {})
      await saver.putWrites(right, [['log', 'right']], 'a')
      const end = await saver.put(right, makeCheckpoint({}), loop(3), {})
      const history = await new HoldfastSaver(hf).getDeltaChannelHistory({ config: end, channels: ['log', 'none'] })
      expect(history['log']).toEqual({
        seed: ['seed'],
        writes: [
          ['a', 'log', 'r'],
          ['a', 'log', 'm1'],
          ['b', 'log', 'm2'],
          ['a', 'log', 'right'],
        ],
      })
      expect(history['none']).toEqual({ writes: [] })
    })
  })
}

afterAll(cleanUp)
