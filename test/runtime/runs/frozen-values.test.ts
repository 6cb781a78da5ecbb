import { append, END, flow, graph, Holdfast, last, openHoldfast, reduced, START, send } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

// What others do with the objects they are given must never change what is recorded: a kept log would go on from it,
// and the next keyframe would store it.

interface Cart {
  items: string[]
}

let hf: Holdfast
beforeEach(async () => {
  hf = await openHoldfast('memory:')
})
afterEach(() => hf.close())

/** The state as somebody reads it who has seen nothing of the runs here. */
async function stored(thread: string): Promise<unknown> {
  return (await hf.log(thread)).fold.state['state']
}

describe('what a run hands out', () => {
  it('may be changed by the caller: an outcome is its own', async () => {
    const count = graph({ name: 'count', version: '1.0.0', state: { n: last<number>(), list: append<Cart>() } })
      .node('add', (state) => ({ n: (state.n ?? 0) + 1, list: [{ items: [`item ${state.n ?? 0}`] }] }))
      .edge(START, 'add')
      .edge('add', END)
    for (let run = 0; run < 3; run++) {
      const outcome = await hf.thread(count, 'a').run({ input: {}, key: `run ${run}` })
      const state = outcome.state as { n: number; list: Cart[] }
      expect(state).toEqual({ n: run + 1, list: Array.from({ length: run + 1 }, (_, i) => ({ items: [`item ${i}`] })) })
      state.n = 99
      state.list[0]?.items.push('poison')
      state.list.push({ items: [] })
    }
    expect(await stored('a')).toMatchObject({ n: 3, list: { length: 3 } })
  })

  it.each(['step', { every: 10 }, 'boundary'] as const)(
    'is not for a flow to change, which finds it as it was when it comes back (frequency %j)',
    async (frequency) => {
      const shop = flow({ name: 'shop', version: '1.0.0' }, async (ctx, input: Cart) => {
        expect(() => input.items.push('changed')).toThrow(TypeError)
        const cart = await ctx.step('cart', (): Cart => ({ items: ['book'] }))
        expect(() => cart.items.push('changed')).toThrow(TypeError)
        const signal = (await ctx.receive('more')) as Cart
        expect(() => signal.items.push('changed')).toThrow(TypeError)
        const seen = [input, cart, signal]
        for (const question of ['one', 'two', 'three']) {
          const answer = (await ctx.pause(question)) as Cart
          expect(() => answer.items.push('changed')).toThrow(TypeError)
          seen.push(answer)
        }
        return seen.map(({ items }) => items)
      })
      const thread = hf.thread(shop, 'a')
      let outcome = await thread.run({ input: { items: ['input'] }, frequency })
      await thread.signal('more', { items: ['signal'] })
      outcome = await thread.run({ frequency })
      for (const answer of ['one', 'two', 'three']) {
        const [question] = await thread.pauses()
        await thread.answer(question?.id ?? '', { items: [answer] })
        outcome = await thread.run({ frequency })
      }
      const kept = ['input', 'book', 'signal', 'one', 'two', 'three'].map((item) => [item])
      expect(outcome).toMatchObject({ status: 'completed', output: kept })
    },
  )

  it('is not for a node to change that is sent it, which finds it as it was when it is tried again', async () => {
    const seen: number[] = []
    const fan = graph({ name: 'fan', version: '1.0.0', state: { done: append<number>() } })
      .node('work', {
        retry: { attempts: 3, initialMs: 1 },
        run: (_, ctx) => {
          const { items } = ctx.input as Cart
          expect(() => items.push('changed')).toThrow(TypeError)
          seen.push(items.length)
          if (seen.length < 3) throw new Error('again')
          return { done: [items.length] }
        },
      })
      .branch(START, () => [send('work', { items: ['one'] })], ['work'])
      .edge('work', END)
    expect(await hf.thread(fan, 'a').run({ input: {} })).toMatchObject({ status: 'completed', state: { done: [1] } })
    expect(seen).toEqual([1, 1, 1])
  })
})

describe('the state', () => {
  const state = { carts: append<Cart>(), topic: last<{ words: string[] }>() }
  const input = { carts: [{ items: ['book'] }], topic: { words: ['a'] } }
  const changes: [string, (state: never) => unknown][] = [
    ['adds to a list', (state: { carts: Cart[] }) => state.carts.push({ items: [] })],
    ['changes an item', (state: { carts: Cart[] }) => state.carts[0]?.items.push('pen')],
    ['sets a key', (state: { topic: unknown }) => Object.assign(state, { topic: null })],
    ['removes a property', (state: { topic: { words?: unknown } }) => delete state.topic.words],
  ]

  it.each(changes)('is not for a node to change: one that %s fails, and nothing of it is kept', async (_, change) => {
    let wrong = true
    const sloppy = graph({ name: 'sloppy', version: '1.0.0', state })
      .node('first', () => ({}))
      .node('second', (state) => {
        if (wrong) change(state as never)
        return {}
      })
      .edge(START, 'first')
      .edge('first', 'second')
      .edge('second', END)
    const thread = hf.thread(sloppy, 'a')
    expect(await thread.run({ input })).toMatchObject({
      status: 'failed',
      error: { code: 'step-failed', message: expect.stringContaining('Node "second" changed the state in place') },
    })
    wrong = false
    expect(await thread.run()).toMatchObject({ status: 'completed', state: input })
    expect(await stored('a')).toEqual(input)
  })

  it('is not for a branch to change', async () => {
    const sloppy = graph({ name: 'sloppy', version: '1.0.0', state })
      .node('only', () => ({}))
      .branch(
        START,
        (state) => {
          ;(state.carts as Cart[]).push({ items: [] })
          return 'only'
        },
        ['only'],
      )
      .edge('only', END)
    await hf.thread(sloppy, 'a').run({ input })
    expect(await stored('a')).not.toMatchObject({ carts: { length: 2 } })
  })

  it('is not for a reducer to change: the old value is as it was when the reducer fails', async () => {
    let wrong = false
    const sloppy = graph({
      name: 'sloppy',
      version: '1.0.0',
      state: {
        words: reduced<string[], string>(
          undefined,
          (old, word) => {
            if (!wrong) return [...old, word]
            old.push(word)
            return old
          },
          { initial: () => [] },
        ),
      },
    })
      .node('say', () => ({ words: 'said' }))
      .edge(START, 'say')
      .edge('say', END)
    const thread = hf.thread(sloppy, 'a')
    await thread.run({ input: {}, key: '1' })
    wrong = true
    expect(await thread.run({ input: {}, key: '2' })).toMatchObject({
      status: 'failed',
      error: { code: 'invalid-program', message: expect.stringContaining('state.words') },
    })
    wrong = false
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { words: ['said', 'said'] } })
  })
})

describe('dates and bytes in the state', () => {
  const made = () => ({ at: new Date(1000), file: new Uint8Array([1, 2, 3]) })
  type Doc = ReturnType<typeof made>
  const state = {
    at: last<Date>(),
    file: last<Uint8Array>(),
    doc: last<Doc>(),
    docs: append<Doc>(),
    dates: append<Date>(),
    files: append<Uint8Array>(),
    sums: reduced<Doc[], Doc>(undefined, (old, doc) => [...old, doc], { initial: () => [] }),
  }
  const input = () => ({
    ...made(),
    doc: made(),
    docs: [made()],
    dates: [new Date(1000)],
    files: [made().file],
    sums: made(),
  })
  const expected = () => ({ ...input(), sums: [made()] })
  type Whole = ReturnType<typeof expected>

  /** Every way to the dates and bytes of a state. */
  const dates: ((state: Whole) => Date | undefined)[] = [
    ({ at }) => at,
    ({ doc }) => doc.at,
    ({ docs }) => docs[0]?.at,
    ({ dates: [first] }) => first,
    ({ sums }) => sums[0]?.at,
  ]
  const files: ((state: Whole) => Uint8Array | undefined)[] = [
    ({ file }) => file,
    ({ doc }) => doc.file,
    ({ docs }) => docs[0]?.file,
    ({ files: [first] }) => first,
    ({ sums }) => sums[0]?.file,
  ]

  it('are what they were for every node and branch, whatever the one before did with them', async () => {
    const seen: unknown[] = []
    const spoil = (shown: unknown) => {
      seen.push(structuredClone(shown))
      for (const date of dates) expect(() => date(shown as Whole)?.setTime(5)).toThrow(/read only/)
      for (const file of files) file(shown as Whole)?.fill(9)
    }
    const program = graph({ name: 'spoils', version: '1.0.0', state })
      .node('first', (shown) => spoil(shown))
      .node('second', (shown) => spoil(shown))
      .branch(
        'first',
        (shown) => {
          spoil(shown)
          return 'second'
        },
        ['second'],
      )
      .edge(START, 'first')
      .edge('second', END)
    const outcome = await hf.thread(program, 'a').run({ input: input() })
    if (outcome.status !== 'completed') throw new Error(JSON.stringify(outcome))
    expect(seen).toEqual([expected(), expected(), expected()])
    expect(outcome.state).toEqual(expected())
    expect(await stored('a')).toEqual(expected())
    // The outcome is its reader's own.
    outcome.state.at?.setTime(7)
    expect(await hf.thread(program, 'a').state()).toEqual(expected())
  })

  it('fail a node that sets them in place, which is told so', async () => {
    const program = graph({ name: 'sets', version: '1.0.0', state })
      .node('only', ({ at }) => void at?.setFullYear(1999))
      .edge(START, 'only')
    expect(await hf.thread(program, 'a').run({ input: input() })).toMatchObject({
      error: { message: expect.stringContaining('Node "only" changed the state in place') },
    })
  })

  it('are what they were for reducers, also those of results on record', async () => {
    const spoiled: Doc[] = []
    const keep = reduced<Doc[], Doc>(
      undefined,
      (old, doc) => {
        for (const one of [...old, doc]) {
          one.file.fill(9)
          try {
            one.at.setTime(5)
          } catch {
            spoiled.push(one)
          }
        }
        return [...old, doc]
      },
      { initial: () => [] },
    )
    const program = graph({ name: 'reduces', version: '1.0.0', state: { keep, note: last<string>() } })
      .node('one', () => ({ keep: made() }))
      .node('ask', async (_, ctx) => ({ note: await ctx.pause<string>('well?') }))
      .edge(START, 'one')
      .edge(START, 'ask')
    const thread = hf.thread(program, 'a')
    for (const key of ['1', '2']) {
      const asked = await thread.run({ input: {}, key })
      if (asked.status !== 'paused') throw new Error(asked.status)
      await thread.answer(asked.pauses[0]?.id ?? '', 'yes')
      await thread.run()
    }
    expect(spoiled).toHaveLength(3)
    expect(await stored('a')).toEqual({ keep: [made(), made()], note: 'yes' })
  })

  it('may be changed by who listens to a stream, without harm to the run', async () => {
    const program = graph({ name: 'listened', version: '1.0.0', state })
      .node('first', () => ({}))
      .node('one', () => ({ docs: made() }))
      .node('two', () => ({ docs: made() }))
      .node('last', ({ docs }) => ({ at: docs[0]?.at as Date }))
      .edge(START, 'first')
      .edge('first', 'one')
      .edge('first', 'two')
      .edge(['one', 'two'], 'last')
    const stream = hf.thread(program, 'a').stream({ input: { at: new Date(1000) } })
    for await (const event of stream) {
      if (event.type !== 'state') continue
      for (const [, , value] of event.ops) for (const doc of [value].flat() as unknown as Doc[]) doc.at?.setTime(5)
    }
    expect((await stream.outcome).state.docs).toEqual([made(), made()])
    expect(await stored('a')).toMatchObject({ docs: [made(), made()], at: new Date(1000) })
  })
})

describe('what holds a result that is not written yet', () => {
  const settings = [
    { durability: 'sync', frequency: 'step' },
    { durability: 'async', frequency: 'step' },
    { durability: { lag: 2 }, frequency: { every: 3 } },
    { durability: 'sync', frequency: 'boundary' },
  ] as const
  const receipt = { id: 'r-1', lines: [{ item: 'kettle', at: new Date(0) }] }

  it.each(settings)('is stored whole, as another process reads it: %j', async (setting) => {
    const driver = await openDriver('memory:')
    const open = () => new Holdfast(new LogStore(driver))
    const program = flow<number, unknown>({ name: 'receipts', version: '1.0.0' }, async (ctx) => {
      const first = await ctx.step('first', () => receipt)
      const second = await ctx.step('second', () => ({ first, all: [first] }))
      await ctx.step('third', { effect: 'once', input: second }, () => [second])
      return { first, second, said: await ctx.pause({ first, second }) }
    })
    const gated = graph({
      name: 'gated',
      version: '1.0.0',
      state: { receipt: last<typeof receipt>(), n: last<number>() },
    })
      .node('make', () => ({ receipt }))
      .node('beside', () => ({ n: 1 }))
      .edge(START, 'make')
      .edge(START, 'beside')
      .pauseAfter('make')
    const one = open()
    expect(await one.thread(program, 'flow').run({ input: 1, ...setting })).toMatchObject({ status: 'paused' })
    expect(await one.thread(gated, 'graph').run({ input: {}, ...setting })).toMatchObject({ status: 'paused' })
    const other = open()
    const second = { first: receipt, all: [receipt] }
    const [asked] = await other.inspect('flow').pauses()
    expect(asked?.question).toStrictEqual({ first: receipt, second })
    await other.inspect('flow').answer(asked?.id ?? '', second)
    expect(await other.thread(program, 'flow').run()).toMatchObject({
      output: { first: receipt, second, said: second },
    })
    const [gate] = await other.inspect('graph').pauses()
    expect(gate?.question).toMatchObject({ update: { receipt } })
    await other.inspect('graph').answer(gate?.id ?? '', { approved: true })
    expect(await other.thread(gated, 'graph').run()).toMatchObject({ state: { receipt, n: 1 } })
    for (const thread of ['flow', 'graph']) expect(await other.verify(thread)).toMatchObject({ problems: [] })
    await driver.close()
  })
})
