import { Document } from '@langchain/core/documents'
import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages'
import { Command, Overwrite, Send } from '@langchain/langgraph'
import { DeltaSnapshot, isDeltaSnapshot } from '@langchain/langgraph-checkpoint'
import { type Holdfast, openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type At, backends, cleanUp, loop, makeCheckpoint, put, start } from './support.js'

/** Everything that JSON lacks, and what looks like our own notation. */
const ODD: Record<string, unknown> = {
  bytes: new Uint8Array([0, 1, 127, 128, 255]),
  long: new Uint8Array(40_000).map((_, i) => i % 251),
  date: new Date('2026-02-30T12:00:00.123Z'),
  bigint: -(2n ** 70n),
  numbers: [0, -0, Number.NaN, Number.POSITIVE_INFINITY, 1e-300, Number.MAX_SAFE_INTEGER],
  map: new Map<unknown, unknown>([
    ['a', 1],
    [{ k: 1 }, new Map([[1n, new Set([1])]])],
    [undefined, null],
  ]),
  set: new Set<unknown>([1, '1', { a: 1 }]),
  nothing: [undefined, null, { gone: undefined }],
  regexp: /a\/b[^c]+/giu,
  floats: new Float32Array([1.5, -2, Number.NaN]),
  longs: new BigInt64Array([1n, -1n]),
  text: 'NUL \0, lone \ud800 surrogate, 🎉, \u2028',
  tags: { $: 'Map', v: [['x', 1]] },
  tagged: [{ $: 'undefined' }, { $: 'message', class: 'AIMessage', v: {} }, { $: { $: 'Set' } }],
  langchain: { lc: 1, type: 'constructor', id: ['langchain_core', 'messages', 'AIMessage'], kwargs: { content: 'x' } },
  jsonplus: { lc: 2, type: 'constructor', id: ['Set'], method: null, args: [[1]], kwargs: {} },
  proto: JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}') as unknown,
  empty: { object: {}, array: [], string: '' },
}

const MESSAGES: BaseMessage[] = [
  new HumanMessage({
    id: 'h',
    content: [
      { type: 'text', text: 'hi' },
      { type: 'image_url', image_url: 'data:,x' },
    ],
  }),
  new HumanMessage({ content: 'named', name: 'ann', additional_kwargs: { lc: 1, deep: { $: 'Map' } } }),
  new AIMessage({
    id: 'a',
    content: '',
    tool_calls: [{ id: 'c1', name: 'search', args: { q: 'x', n: [1] }, type: 'tool_call' }],
    invalid_tool_calls: [{ id: 'c2', name: 'bad', args: '{', error: 'e', type: 'invalid_tool_call' }],
    usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
    response_metadata: { model: 'm' },
  } as never),
  new AIMessage({ content: [{ type: 'text', text: 'v1' }], response_metadata: { output_version: 'v1' } }),
  new AIMessageChunk({ content: 'part', tool_call_chunks: [{ id: 'c', index: 0, name: 'f', args: '{"a"' }] }),
  new SystemMessage('rules'),
  new ToolMessage({ content: 'out', tool_call_id: 'c1', status: 'error', artifact: { rows: new Map([[1, 2]]) } }),
  new FunctionMessage({ content: 'out', name: 'f' }),
  new ChatMessage({ content: 'x', role: 'critic' }),
  new RemoveMessage({ id: 'gone' }),
]

for (const backend of backends) {
  describe.skipIf(backend.missing)(`values on ${backend.name}`, () => {
    let hf: Holdfast
    beforeAll(async () => {
      hf = await openHoldfast(await backend.fresh())
    })
    afterAll(() => hf.close())

    it('come back exactly, as channel values, as writes and as metadata', async () => {
      const checkpoint = makeCheckpoint(ODD)
      const metadata = loop(0, { odd: ODD })
      const at = (await new HoldfastSaver(hf).put(
        start('odd'),
        checkpoint,
        metadata,
        checkpoint.channel_versions,
      )) as At
      const saver = new HoldfastSaver(hf)
      await saver.putWrites(
        at,
        Object.entries(ODD).map(([channel, value]) => [channel, value]),
        'task',
      )
      const tuple = await new HoldfastSaver(hf).getTuple(at)
      expect(tuple?.checkpoint.channel_values).toStrictEqual(ODD)
      expect(tuple?.metadata).toStrictEqual(metadata)
      expect(tuple?.pendingWrites?.map(([, channel, value]) => [channel, value])).toStrictEqual(Object.entries(ODD))
      // What did not change is found not to have changed, and is not written again.
      await put(saver, at, ODD, 2)
      const log = await hf.log({ langgraph: 'odd' })
      for await (const { body } of log.entries(log.fold.seq)) {
        expect(body.ops?.map(([, path]) => path[0])).not.toContain('channels')
      }
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
    })

    it('keep the bytes of a write as bytes', async () => {
      const saver = new HoldfastSaver(hf)
      const at = await put(saver, start('bytes'), { n: 1 })
      const bytes = new Uint8Array(256).map((_, i) => i)
      await saver.putWrites(at, [['image', bytes]], 'task')
      expect((await saver.getTuple(at))?.pendingWrites).toStrictEqual([['task', 'image', bytes]])
    })
  })
}

describe('values of LangChain and LangGraph', () => {
  let hf: Holdfast
  beforeAll(async () => {
    hf = await openHoldfast('memory:')
  })
  afterAll(() => hf.close())

  const roundTrip = async (value: unknown): Promise<unknown> => {
    const at = await put(new HoldfastSaver(hf), start(`t${Math.random()}`), { value })
    return (await new HoldfastSaver(hf).getTuple(at))?.checkpoint.channel_values['value']
  }

  it.each(MESSAGES.map((message, i) => [`${i} ${message.constructor.name}`, message] as const))(
    'keep message %s',
    async (_, message) => {
      const back = (await roundTrip(message)) as BaseMessage
      expect(back.constructor).toBe(message.constructor)
      expect(back.toDict()).toEqual(message.toDict())
      expect(back.id).toBe(message.id)
      expect(back.getType()).toBe(message.getType())
    },
  )

  it('keep what was set on a message after it was made', async () => {
    const message = new AIMessage('text')
    message.id = 'later'
    message.tool_calls = [{ id: 'c', name: 'f', args: {} }]
    const back = (await roundTrip([message])) as AIMessage[]
    expect(back[0]).toMatchObject({ id: 'later', tool_calls: [{ id: 'c', name: 'f', args: {} }] })
  })

  it('keep documents and snapshots', async () => {
    const document = new Document({ id: 'd', pageContent: 'text', metadata: { at: new Date(0), tags: new Set(['x']) } })
    const back = (await roundTrip({ docs: [document] })) as { docs: Document[] }
    expect(back.docs[0]).toBeInstanceOf(Document)
    expect(back).toStrictEqual({ docs: [document] })
    const snapshot = (await roundTrip(new DeltaSnapshot([new HumanMessage('x')]))) as DeltaSnapshot
    expect(isDeltaSnapshot(snapshot)).toBe(true)
    expect((snapshot.value as HumanMessage[])[0]?.content).toBe('x')
  })

  it('keep errors with their name, stack, cause and own fields', async () => {
    class RateLimit extends Error {
      override name = 'RateLimit'
      readonly retryAfter = 3
    }
    const error = new RateLimit('slow down', { cause: new TypeError('inner') })
    const back = (await roundTrip(error)) as RateLimit
    expect(back).toBeInstanceOf(Error)
    expect(back).toMatchObject({ name: 'RateLimit', message: 'slow down', retryAfter: 3, stack: error.stack })
    expect(back.cause).toBeInstanceOf(TypeError)
    const many = new AggregateError([new RangeError('one'), 'two'], 'many', { cause: 3 })
    const gathered = (await roundTrip(many)) as AggregateError
    expect(gathered).toBeInstanceOf(AggregateError)
    expect(gathered).toMatchObject({ message: 'many', cause: 3, errors: [{ message: 'one' }, 'two'] })
    expect(gathered.errors[0]).toBeInstanceOf(RangeError)
    expect(Object.keys(gathered)).toEqual(Object.keys(many))
  })

  it('keep the places of a list that were never set', async () => {
    const list: unknown[] = [1]
    list[2] = 3
    expect(await roundTrip(list)).toEqual([1, undefined, 3])
  })

  it('keep Send, Command and Overwrite in the form that LangGraph reads', async () => {
    expect(await roundTrip([new Send('node', { a: new Date(0) })])).toStrictEqual([
      { node: 'node', args: { a: new Date(0) } },
    ])
    expect(await roundTrip(new Command({ update: { a: 1 }, goto: 'x' }))).toMatchObject({ lg_name: 'Command' })
    expect(await roundTrip(new Overwrite([1]))).toEqual({ __overwrite__: [1] })
  })

  class Point {
    readonly x = 1
  }
  class Reminder extends HumanMessage {}
  const cycle: { self?: unknown } = {}
  cycle.self = cycle

  it.each<[string, unknown, string]>([
    ['a function', () => 1, '$.channel_values.value.deep[1]'],
    ['a symbol', Symbol('x'), '$.channel_values.value.deep[1]'],
    ['an instance of a class', new Point(), '$.channel_values.value.deep[1]'],
    ['a message of a class of its own', new Reminder('x'), '$.channel_values.value.deep[1]'],
    ['an invalid date', new Date(Number.NaN), '$.channel_values.value.deep[1]'],
    ['a promise', Promise.resolve(), '$.channel_values.value.deep[1]'],
    ['a cycle', cycle, '$.channel_values.value.deep[1].self'],
    ['a key that is a symbol', { [Symbol('k')]: 1 }, '$.channel_values.value.deep[1]'],
  ])('refuse %s, with the path to it, and store nothing', async (_, value, path) => {
    const saver = new HoldfastSaver(hf)
    const thread = `refused-${Math.random()}`
    await expect(put(saver, start(thread), { fine: 1, value: { deep: [0, value] } })).rejects.toMatchObject({
      code: 'invalid-value',
      data: { path },
    })
    expect(await saver.getTuple(start(thread))).toBeUndefined()
    const at = await put(saver, start(thread), { fine: 1 })
    await expect(
      saver.putWrites(
        at,
        [
          ['a', 1],
          ['b', value],
        ],
        'task',
      ),
    ).rejects.toMatchObject({ code: 'invalid-value' })
    expect((await saver.getTuple(at))?.pendingWrites).toEqual([])
  })

  it('are not made from a name that is not on the list', async () => {
    const at = await put(new HoldfastSaver(hf), start('forged'), { value: 1 })
    const log = await hf.log({ langgraph: 'forged' })
    for (const node of [
      { $: 'message', class: 'constructor', v: {} },
      { $: 'message', class: 'ChatOpenAI', v: {} },
      { $: 'typed', class: 'Function', v: new Uint8Array() },
      { $: 'eval', v: 'process.exit()' },
    ]) {
      await log.update(() => [{ kind: 'forged', ops: [['set', ['channels', 'value'], node]] }])
      await expect(new HoldfastSaver(hf).getTuple(at)).rejects.toMatchObject({ code: 'corrupt' })
    }
  })
})

afterAll(cleanUp)
