import { AIMessage } from '@langchain/core/messages'
import { flow } from 'holdfast'
import { HoldfastSaver, HoldfastStore } from 'holdfast/langgraph'
import { expect, it } from 'vitest'
import { all, put, start } from '../adapters/langgraph/support.js'
import { onEveryBackend } from '../support/every-backend.js'

// The classes of faults that were found in products of this kind, each as an attack on ours, on every backend.

const keep = flow({ name: 'keep', version: '1.0.0' }, (ctx, input: unknown) => ctx.step('keep', () => input))

/** Text that ends a string, a path or a query where it was pasted in, and asks for everything. */
const INJECTIONS = [
  "x') OR 1=1 --",
  "x' OR '1'='1",
  "') UNION SELECT * FROM logs --",
  "a') = 'b' OR json_extract(metadata, '$.owner",
  '$.owner',
  '"); DROP TABLE logs; --',
  '*',
  '@tenant:{*}',
  'x} | @owner:{mallory',
  '(@owner:{*})=>[KNN 10 @v $B]',
  '-@owner:{x}',
  "'|'",
  '\\',
]

/** What a query parser would take for an operator, and a careless check for a value. */
const OBJECTS: readonly unknown[] = [
  { $ne: null },
  { $gt: '' },
  { $regex: '.*' },
  { toString: () => 'victim' },
  ['victim'],
  { length: 6 },
]

await onEveryBackend('CVE-2025-67644: names and values of a metadata filter', (open) => {
  it('are names and values, and find nothing that they do not name', async () => {
    const hf = await open()
    const log = await hf.log('victim')
    await log.update(() => [{ kind: 'step', index: { metadata: { owner: 'ada', plan: 'gold' } } }])
    for (const text of INJECTIONS) {
      for (const metadata of [{ [text]: 'x' }, { owner: text }, { [text]: text }, { owner: 'ada', [text]: 'x' }]) {
        expect((await hf.threads({ metadata })).threads, JSON.stringify(metadata)).toEqual([])
      }
      expect((await hf.threads({ tags: [text] })).threads).toEqual([])
      expect((await hf.threads({ status: text })).threads).toEqual([])
      expect((await hf.tenant('other').threads({ metadata: { owner: text } })).threads).toEqual([])
    }
    expect((await hf.threads({ metadata: { owner: 'ada' } })).threads).toHaveLength(1)
  })

  it('are no more in the saver of LangGraph', async () => {
    const saver = new HoldfastSaver(await open())
    await put(saver, start('victim'), { secret: 1 })
    for (const text of INJECTIONS) {
      for (const filter of [{ [text]: 'x' }, { source: text }]) {
        expect(await all(saver.list({ configurable: { thread_id: 'victim' } }, { filter })), text).toEqual([])
      }
    }
    expect(
      await all(saver.list({ configurable: { thread_id: 'victim' } }, { filter: { source: 'loop' } })),
    ).toHaveLength(1)
  })
})

await onEveryBackend('CVE-2025-8709: operators of a store filter', (open) => {
  it('are the known ones, and their fields and values mean nothing else', async () => {
    const hf = await open()
    const notes = hf.store.scope({ user: 'victim' }).collection<unknown>('notes', { index: ['owner'] })
    await notes.put('k', { owner: 'ada', secret: 1 })
    for (const text of INJECTIONS) {
      expect((await notes.search({ filter: { owner: text } })).items).toEqual([])
      expect((await notes.search({ filter: [{ field: text, eq: 'x' }] })).items).toEqual([])
      await expect(notes.search({ filter: { owner: { [text]: 'x' } } as never })).rejects.toMatchObject({
        code: 'invalid-option',
      })
    }
    const store = new HoldfastStore(hf)
    await store.put(['users', 'victim'], 'k', { owner: 'ada' })
    for (const text of INJECTIONS) {
      const ways = [{ [text]: 'x' }, { owner: text }, { owner: { $eq: text } }]
      for (const filter of ways) expect(await store.search(['users', 'victim'], { filter })).toEqual([])
      const found = await store.search(['users', 'victim'], { filter: { owner: { [text]: 'x' } } }).catch(() => [])
      expect(found).toEqual([])
      expect(await store.search(['users', text], {}).catch(() => [])).toEqual([])
    }
    expect(await store.search(['users', 'victim'], { filter: { owner: { $eq: 'ada' } } })).toHaveLength(1)
  })
})

await onEveryBackend('CVE-2026-27022: queries of a backend', (open) => {
  it('are not made of ids: no thread, tenant or branch reaches another', async () => {
    const hf = await open()
    await hf.thread(keep, 'victim').run({ input: 'secret' })
    for (const text of INJECTIONS) {
      expect((await hf.log(text)).exists).toBe(false)
      expect((await hf.log('victim', { branch: text }).catch(() => ({ exists: false }))).exists).toBe(false)
      expect((await hf.tenant(text).threads()).threads).toEqual([])
      expect((await hf.threads({ thread: text })).threads).toEqual([])
      expect(await hf.erase(text)).toEqual({ erased: 0 })
    }
    expect((await hf.threads()).threads).toHaveLength(1)
  })
})

await onEveryBackend('CVE-2026-48121: ids that are objects', (open) => {
  it('are refused, and match nothing', async () => {
    const hf = await open()
    const saver = new HoldfastSaver(hf)
    await put(saver, start('victim'), { secret: 1 })
    for (const id of OBJECTS) {
      const config = { configurable: { thread_id: id as never, checkpoint_ns: '' } }
      const refused = (reading: Promise<unknown>) =>
        reading.then(
          (found) => found ?? 'nothing',
          () => 'nothing',
        )
      expect(await refused(saver.getTuple(config))).toBe('nothing')
      expect(await refused(all(saver.list(config)).then((found) => (found.length === 0 ? undefined : found)))).toBe(
        'nothing',
      )
      await expect(saver.put(config as never, {} as never, {} as never, {})).rejects.toBeInstanceOf(Error)
      await refused(saver.deleteThread(id as never))
      const nested = { user: id } as never
      expect(() => hf.thread(keep, nested)).toThrow(expect.objectContaining({ code: 'invalid-id' }))
      expect(() => hf.tenant(id as never)).toThrow(expect.objectContaining({ code: 'invalid-id' }))
      expect(() => hf.inspect('victim', { branch: id as never })).toThrow(
        expect.objectContaining({ code: 'invalid-id' }),
      )
    }
    expect(await saver.getTuple(start('victim'))).toBeDefined()
  })
})

await onEveryBackend('CVE-2025-64439 and CVE-2025-68665: constructors in stored data', (open) => {
  const REVIVALS = [
    { lc: 1, type: 'constructor', id: ['langchain', 'llms', 'openai', 'OpenAI'], kwargs: { openAIApiKey: 'x' } },
    { lc: 2, type: 'constructor', id: ['node:child_process', 'execSync'], method: null, args: ['touch /tmp/owned'] },
    { lc: 1, type: 'secret', id: ['OPENAI_API_KEY'] },
    { lc: 1, type: 'not_implemented', id: ['x'] },
    { $: 'Function', v: 'process.exit(1)' },
    { $: 'message', class: 'constructor', v: {} },
    { __proto__: null, constructor: { prototype: { polluted: true } } },
  ].map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>)

  it('come back as the data they were, in states, messages and items', async () => {
    process.env['OPENAI_API_KEY'] ??= 'a secret of the environment'
    const hf = await open()
    const saver = new HoldfastSaver(hf)
    for (const [i, value] of REVIVALS.entries()) {
      const outcome = await hf.thread(keep, `t${i}`).run({ input: value })
      expect(outcome).toMatchObject({ status: 'completed', output: value })
      const message = new AIMessage({ content: 'x', additional_kwargs: { value } })
      await put(saver, start(`g${i}`), { value, messages: [message] })
      const tuple = await saver.getTuple(start(`g${i}`))
      expect(tuple?.checkpoint.channel_values['value']).toEqual(value)
      const [read] = (tuple?.checkpoint.channel_values['messages'] ?? []) as AIMessage[]
      expect(read?.additional_kwargs['value']).toEqual(value)
      const items = hf.store.scope({ user: 'u' }).collection<unknown>('c')
      await items.put('k', value)
      expect((await items.get('k'))?.value).toEqual(value)
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })
})
