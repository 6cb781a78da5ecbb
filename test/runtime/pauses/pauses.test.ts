import { append, END, flow, graph, type Holdfast, last, merge, openHoldfast, START } from 'holdfast'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'

let clock: VirtualClock
let hf: Holdfast

beforeEach(async () => {
  clock = virtualClock()
  hf = await openHoldfast('memory:', { clock })
})

afterEach(() => hf.close())

/** The one question that is open on a thread. */
async function question(id: string) {
  const pauses = await hf.inspect(id).pauses()
  expect(pauses).toHaveLength(1)
  return pauses[0]
}

/** Everything a thread holds: to see that nothing was written. */
async function logOf(id: string) {
  const log = await hf.log(id)
  return log.history({ limit: 1000 })
}

async function settle(turns = 20): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
}

const ask = flow({ name: 'ask', version: '1.0.0' }, async (ctx) => ({ said: await ctx.pause('well?') }))

describe('a question', () => {
  it('comes with its schema, and the answer as the schema reads it', async () => {
    const schema = z.object({ amount: z.number().min(1), note: z.string().default('none') })
    let before = 0
    const program = flow({ name: 'pay', version: '1.0.0' }, async (ctx) => {
      const quote = await ctx.step('quote', () => ++before)
      return { quote, answer: await ctx.pause({ how: 'much' }, { schema }) }
    })
    const thread = hf.thread(program, 't')
    const outcome = await thread.run({ input: {} })
    expect(outcome).toMatchObject({ status: 'paused', waiting: [] })
    const open = await question('t')
    expect(open).toMatchObject({
      kind: 'question',
      question: { how: 'much' },
      schema: { type: 'object', properties: { amount: { type: 'number', minimum: 1 } }, required: ['amount'] },
    })
    // Asked again, it is the same question.
    expect(await thread.run({ input: {} })).toMatchObject({ status: 'paused', pauses: [{ id: open.id }] })
    await thread.answer(open.id, { amount: 5 }, { by: 'ann' })
    expect(await thread.run()).toMatchObject({
      status: 'completed',
      output: { quote: 1, answer: { amount: 5, note: 'none' } },
    })
    expect(before).toBe(1)
  })

  it('is refused where its schema offers no JSON Schema, unless one is given beside it', async () => {
    const bare = { '~standard': { version: 1, vendor: 'mine', validate: (value: unknown) => ({ value }) } } as const
    const asking = (options: object) =>
      flow({ name: 'bare', version: '1.0.0' }, (ctx) => ctx.pause('?', { schema: bare, ...options }))
    expect(await hf.thread(asking({}), 'a').run({ input: {} })).toMatchObject({
      status: 'failed',
      error: { code: 'invalid-option' },
    })
    await hf.thread(asking({ jsonSchema: { type: 'string' } }), 'b').run({ input: {} })
    const { id } = await question('b')
    await expect(hf.inspect('b').answer(id, 5)).rejects.toMatchObject({ code: 'invalid-value' })
    await hf.inspect('b').answer(id, 'five')
  })

  it('keeps an id of its own beside others, over every return to them', async () => {
    let entered = 0
    const program = flow({ name: 'three', version: '1.0.0' }, async (ctx) => {
      entered++
      return Promise.all([ctx.pause('same'), ctx.pause('same'), ctx.pause('named', { key: 'k' })])
    })
    const thread = hf.thread(program, 't')
    await thread.run({ input: {} })
    const ids = (await thread.pauses()).map(({ id }) => id)
    expect(new Set(ids).size).toBe(3)
    await thread.answer(ids[1], 'second')
    expect(await thread.run()).toMatchObject({ status: 'paused' })
    expect((await thread.pauses()).map(({ id }) => id)).toEqual([ids[0], ids[2]])
    await thread.answer(ids[2], 'third')
    await thread.run()
    await thread.answer(ids[0], 'first')
    expect(await thread.run()).toMatchObject({ status: 'completed', output: ['first', 'second', 'third'] })
    expect(entered).toBe(4)
  })

  it('that changed when the program came back is a new one, and the old id says superseded', async () => {
    let price = 10
    const program = flow({ name: 'offer', version: '1.0.0' }, (ctx) =>
      Promise.all([ctx.pause({ price }), ctx.pause('anything else?')]),
    )
    const thread = hf.thread(program, 't')
    await thread.run({ input: {} })
    const [old, other] = await thread.pauses()
    price = 12
    await thread.answer(other.id, 'no')
    await thread.run()
    const now = await question('t')
    expect(now).toMatchObject({ question: { price: 12 }, step: old.step })
    expect(now.id).not.toBe(old.id)
    const before = await logOf('t')
    await expect(thread.answer(old.id, true)).rejects.toMatchObject({
      code: 'pause-closed',
      data: { pause: old.id, reason: 'superseded' },
      remedy: expect.stringContaining('new one'),
    })
    expect(await logOf('t')).toEqual(before)
    await thread.answer(now.id, 'yes')
    expect(await thread.run()).toMatchObject({ output: ['yes', 'no'] })
  })
})

describe('bad answers', () => {
  const strict = flow({ name: 'strict', version: '1.0.0' }, (ctx) =>
    ctx.pause('?', { schema: z.object({ a: z.object({ b: z.number() }) }), expiresInMs: 1000 }),
  )

  it.each(['no-such-pause', '', 'constructor', '__proto__', 'toString'])('to %j, which was never asked', async (id) => {
    await hf.thread(strict, 't').run({ input: {} })
    const before = await logOf('t')
    await expect(hf.inspect('t').answer(id, { a: { b: 1 } })).rejects.toMatchObject({
      code: 'not-found',
      data: { pause: id },
      remedy: expect.stringContaining('thread.pauses()'),
    })
    expect(await logOf('t')).toEqual(before)
  })

  it('that do not fit, with the path to what does not', async () => {
    await hf.thread(strict, 't').run({ input: {} })
    const { id } = await question('t')
    const before = await logOf('t')
    const answered = (value: unknown) => hf.inspect('t').answer(id, value)
    await expect(answered({ a: { b: 'x' } })).rejects.toMatchObject({ code: 'invalid-value', data: { path: '$.a.b' } })
    await expect(answered({ a: {} })).rejects.toMatchObject({ code: 'invalid-value', data: { path: '$.a' } })
    await expect(answered(undefined)).rejects.toMatchObject({ code: 'invalid-value' })
    await expect(answered({ a: { b: () => 1 } })).rejects.toMatchObject({ code: 'invalid-value' })
    await expect(hf.inspect('t').answer(id, { a: { b: 1 } }, { by: '' })).rejects.toMatchObject({
      code: 'invalid-value',
      data: { field: 'by' },
    })
    expect(await logOf('t')).toEqual(before)
  })

  it('to a question that was answered, with who was first, also when the run is over', async () => {
    const thread = hf.thread(ask, 't')
    await thread.run({ input: {} })
    const { id } = await question('t')
    await thread.answer(id, 1, { by: 'ann' })
    const named = { code: 'pause-closed', data: { reason: 'answered', by: 'ann', at: clock.now() } }
    const before = await logOf('t')
    await expect(thread.answer(id, 2, { by: 'bob' })).rejects.toMatchObject(named)
    await expect(thread.answer(id, 2)).rejects.toThrow('answered by ann at 2025-01-01T00:00:00.000Z')
    expect(await logOf('t')).toEqual(before)
    await clock.advance(5000)
    expect(await thread.run()).toMatchObject({ output: { said: 1 } })
    await expect(thread.answer(id, 2, { by: 'bob' })).rejects.toMatchObject(named)
  })

  it('to a question that expired or whose run was cancelled', async () => {
    const thread = hf.thread(strict, 't')
    await thread.run({ input: {} })
    const { id } = await question('t')
    await clock.advance(1000)
    const before = await logOf('t')
    await expect(thread.answer(id, { a: { b: 1 } })).rejects.toMatchObject({
      code: 'pause-closed',
      data: { reason: 'expired' },
    })
    expect(await logOf('t')).toEqual(before)
    const other = hf.thread(ask, 'u')
    await other.run({ input: {} })
    const late = await question('u')
    await other.cancel({ reason: 'enough' })
    await expect(other.answer(late.id, 1)).rejects.toMatchObject({ data: { reason: 'cancelled' } })
  })

  it('on a thread that does not exist', async () => {
    await expect(hf.inspect('nowhere').answer('p', 1)).rejects.toMatchObject({ code: 'not-found' })
    expect((await hf.threads()).threads).toEqual([])
  })
})

describe('a question that expires', () => {
  const expiring = (options: object) =>
    flow({ name: 'expiring', version: '1.0.0' }, (ctx) => ctx.pause('?', { expiresInMs: 1000, ...options }))

  it('takes its default, by a worker that nobody told', async () => {
    const program = expiring({ onExpire: { answer: 'no' } })
    await hf.thread(program, 't').run({ input: {} })
    const { expiresAt } = await question('t')
    expect(expiresAt).toEqual(new Date(clock.now() + 1000))
    const worker = hf.worker({ programs: [program], handleSignals: false, pollMs: 100 })
    await clock.advance(900)
    expect((await hf.inspect('t').pauses()).length).toBe(1)
    await clock.advance(300)
    await settle()
    await worker.stop()
    expect(await hf.inspect('t').waitFor()).toMatchObject({ status: 'completed', output: 'no' })
  })

  it('fails its run without a default, and is asked anew when the run is resumed', async () => {
    const inNode = graph({ name: 'node', version: '1.0.0', state: { said: last<string>() } })
      .node('ask', async (_, ctx) => ({ said: await ctx.pause<string>('?', { expiresInMs: 1000 }) }))
      .edge(START, 'ask')
      .edge('ask', END)
    for (const program of [expiring({}), inNode] as const) {
      const thread = hf.thread(program as never, program === inNode ? 'node' : 'flow')
      await thread.run({ input: {} as never })
      const [{ id }] = await thread.pauses()
      await clock.advance(1000)
      expect(await thread.run()).toMatchObject({ status: 'failed', canResume: true })
      expect(await thread.run()).toMatchObject({
        status: 'paused',
        pauses: [{ id, expiresAt: new Date(clock.now() + 1000) }],
      })
      await thread.answer(id, 'late')
      expect(await thread.run()).toMatchObject({ status: 'completed' })
    }
  })

  it('keeps an answer that came in time, though who runs the thread did not see it yet', async () => {
    let open = (): void => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    let entered = 0
    const program = flow({ name: 'late', version: '1.0.0' }, async (ctx) => {
      if (++entered === 2) await gate
      const answers = [ctx.pause('one', { expiresInMs: 1000, onExpire: { answer: 'default' } }), ctx.pause('two')]
      return Promise.all(answers)
    })
    const thread = hf.thread(program, 't')
    await thread.run({ input: {} })
    const [one, two] = await thread.pauses()
    await thread.answer(two.id, 2)
    const running = thread.run()
    await settle()
    expect(entered).toBe(2)
    await hf.inspect('t').answer(one.id, 'in time', { by: 'ann' })
    await clock.advance(1500)
    open()
    expect(await running).toMatchObject({ status: 'completed', output: ['in time', 2] })
  })
})

describe('pauses around nodes', () => {
  const state = { log: append<string>(), n: last<number>() }

  it('hold before and after a node, whose work is done once, and may change its update', async () => {
    let ran = 0
    const program = graph({ name: 'gates', version: '1.0.0', state })
      .node('work', () => ({ log: [`ran ${++ran}`], n: ran }))
      .edge(START, 'work')
      .edge('work', END)
      .pauseBefore('work')
      .pauseAfter('work')
    const thread = hf.thread(program, 't')
    expect(await thread.run({ input: {} })).toMatchObject({ pauses: [{ kind: 'before', question: { node: 'work' } }] })
    expect(ran).toBe(0)
    await thread.answer((await question('t')).id, { approved: true, update: { n: 7 } })
    expect(await thread.run()).toMatchObject({
      pauses: [{ kind: 'after', question: { node: 'work', update: { log: ['ran 1'], n: 1 } } }],
    })
    await expect(thread.answer((await question('t')).id, { approved: 'yes' })).rejects.toMatchObject({
      data: { path: '$.approved' },
    })
    await thread.answer((await question('t')).id, { approved: true, update: { n: 8 } })
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { log: ['ran 1'], n: 8 } })
    expect(ran).toBe(1)
  })

  it('skip a node that was not approved, and drop an update that was not', async () => {
    const program = graph({ name: 'refused', version: '1.0.0', state })
      .node('a', () => ({ log: ['a'] }))
      .node('b', () => ({ log: ['b'] }))
      .edge(START, 'a')
      .edge('a', 'b')
      .edge('b', END)
      .pauseBefore('a')
      .pauseAfter('b')
    const thread = hf.thread(program, 't')
    await thread.run({ input: {} })
    await thread.answer((await question('t')).id, { approved: false })
    await thread.run()
    await thread.answer((await question('t')).id, { approved: false, update: { log: ['instead'] } })
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { log: ['instead'] } })
  })

  it('are passed once: a sibling that waits longer does not bring them back', async () => {
    const program = graph({ name: 'siblings', version: '1.0.0', state })
      .node('a', () => ({ log: ['a'] }))
      .node('b', async (_, ctx) => ({ log: [await ctx.pause<string>('b?')] }))
      .edge(START, 'a')
      .edge(START, 'b')
      .edge('a', END)
      .edge('b', END)
      .pauseAfter('a')
    const thread = hf.thread(program, 't')
    await thread.run({ input: {} })
    const [after, inside] = [...(await thread.pauses())].sort((x, y) => x.kind.localeCompare(y.kind))
    await thread.answer(after.id, { approved: true })
    expect(await thread.run()).toMatchObject({ status: 'paused', pauses: [{ id: inside.id }] })
    await thread.answer(inside.id, 'b')
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { log: ['a', 'b'] } })
  })
})

describe('approval of a node', () => {
  const charged: unknown[] = []
  beforeEach(() => void charged.splice(0))
  const program = graph({
    name: 'shop',
    version: '1.0.0',
    state: { order: last<{ amount: number }>(), result: last<string>() },
  })
    .node('charge', {
      effect: 'once',
      approval: {
        needed: (s) => (s['order'] as { amount: number }).amount > 10,
        question: (s) => ({ charge: s['order'] }),
        answer: {
          type: 'object',
          properties: { approved: { type: 'boolean' }, amount: { type: 'number' }, reason: { type: 'string' } },
          required: ['approved'],
          additionalProperties: false,
        },
        approved: (_, answer) => ({ amount: (answer as { amount?: number }).amount }),
        denied: (_, answer) => ({ result: `denied: ${(answer as { reason?: string }).reason}` }),
      },
      run: (s, ctx) => {
        const edited = (ctx.input as { amount?: number } | undefined)?.amount
        charged.push(edited ?? s.order?.amount)
        return { result: 'charged' }
      },
    })
    .edge(START, 'charge')
    .edge('charge', END)

  it('is asked only where it is needed', async () => {
    expect(await hf.thread(program, 't').run({ input: { order: { amount: 5 } } })).toMatchObject({
      status: 'completed',
      state: { result: 'charged' },
    })
    expect(charged).toEqual([5])
  })

  it('approves, approves with edited arguments, or denies, and the effect has exactly those', async () => {
    const outcomes = []
    for (const [id, answer] of Object.entries({
      yes: { approved: true },
      edited: { approved: true, amount: 12 },
      no: { approved: false, reason: 'too much' },
    })) {
      const thread = hf.thread(program, id)
      expect(await thread.run({ input: { order: { amount: 50 } } })).toMatchObject({
        pauses: [{ kind: 'approval', question: { charge: { amount: 50 } } }],
      })
      const open = await question(id)
      await expect(thread.answer(open.id, { approved: true, amout: 1 })).rejects.toMatchObject({
        code: 'invalid-value',
      })
      await thread.answer(open.id, answer, { by: 'ann' })
      outcomes.push((await thread.run()).state)
    }
    expect(charged).toEqual([50, 12])
    expect(outcomes.map((state) => (state as { result: string }).result)).toEqual([
      'charged',
      'charged',
      'denied: too much',
    ])
  })
})

describe('a paused thread', () => {
  it('holds no timer, though its node has a time limit, and is not run again by that limit', async () => {
    let entered = 0
    const program = graph({ name: 'limited', version: '1.0.0', state: { said: merge<Record<string, string>>() } })
      .node('a', {
        timeoutMs: 1000,
        run: async (_, ctx) => {
          entered++
          return { said: { a: await ctx.pause<string>('a?') } }
        },
      })
      .edge(START, 'a')
      .edge('a', END)
    const thread = hf.thread(program, 't')
    const stream = thread.stream({ input: {} })
    const events: string[] = []
    for await (const event of stream) events.push(event.type)
    expect(await stream.outcome).toMatchObject({ status: 'paused' })
    await clock.advance(60_000)
    expect(entered).toBe(1)
    await thread.answer((await question('t')).id, 'fine')
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { said: { a: 'fine' } } })
  })
})

describe('names that every object has', () => {
  it('are names of steps like any other', async () => {
    const program = flow({ name: 'names', version: '1.0.0' }, async (ctx) => [
      await ctx.step('constructor', () => 1),
      await ctx.step('toString', () => 2),
      await ctx.pause('so?'),
    ])
    const thread = hf.thread(program, 't')
    await thread.run({ input: {} })
    await thread.answer((await question('t')).id, 3)
    expect(await thread.run()).toMatchObject({ status: 'completed', output: [1, 2, 3] })
  })
})
