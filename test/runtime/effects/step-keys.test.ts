import { type Context, flow, graph, last, openHoldfast, type RunEvent, START } from 'holdfast'
import { ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'

const { set } = ops

const NAMED = { name: 'keys', version: '1.0.0' }
/** Alike for longer than any path. */
const long = (end: string) => `${'鍵'.repeat(120)}${end}`
const cut = encodeURIComponent(long('')).slice(0, 500)

describe('keys that differ', () => {
  for (const [what, call] of Object.entries({
    step: (ctx: Context, key: string) => ctx.step('work', { key }, () => `done ${key.at(-1)}`),
    pause: (ctx: Context, key: string) => ctx.pause('well?', { key }),
    receive: (ctx: Context, key: string) => ctx.receive('news', { key }),
  })) {
    it(`after hundreds of characters name different ${what}s`, async () => {
      await using hf = await openHoldfast('memory:')
      const program = flow<number, unknown>(NAMED, async (ctx) => [
        await call(ctx, long('a')),
        await call(ctx, long('b')),
      ])
      const thread = hf.thread(program, 't')
      let outcome = await thread.run({ input: 1 })
      for (const value of ['done a', 'done b']) {
        if (outcome.status !== 'paused') break
        if (outcome.pauses[0]) await thread.answer(outcome.pauses[0].id, value)
        else await thread.signal('news', value)
        outcome = await thread.run()
      }
      expect(outcome).toMatchObject({ status: 'completed', output: ['done a', 'done b'] })
    })
  }

  it('are found where version 0.1 cut them off, by the one that it recorded', async () => {
    await using hf = await openHoldfast('memory:')
    let calls = 0
    const program = flow<number, unknown>(NAMED, async (ctx) => {
      const a = await ctx.step('work', { key: long('a'), effect: 'once' }, () => ++calls)
      const answer = await ctx.pause('well?', { key: long('a') })
      return [a, answer, await ctx.step('work', { key: long('b') }, () => 'new')]
    })
    const failing = flow<number, unknown>(NAMED, () => Promise.reject(new Error('not yet')))
    await hf.thread(failing, 't').run({ input: 1 })
    const log = await hf.log('t')
    const claim = await log.claim({ owner: 'version 0.1', ms: 1000 })
    const pause = { id: 'p-old', path: `pause[${cut}]`, kind: 'question', question: 'well?', askedAt: 1 }
    await claim.update(() => [
      {
        kind: 'step',
        ops: [set(['steps', `work[${cut}]`], { status: 'done', result: 'recorded' }), set(['pauses', 'p-old'], pause)],
      },
    ])
    await claim.release()
    const thread = hf.thread(program, 't')
    const asked = await thread.run()
    if (asked.status !== 'paused') throw new Error(JSON.stringify(asked))
    // The same place asks: the old question is not left behind.
    expect(asked.pauses).toMatchObject([{ step: `pause[${cut}]` }])
    await thread.answer(asked.pauses[0]?.id ?? '', 'yes')
    expect(await thread.run()).toMatchObject({ status: 'completed', output: ['recorded', 'yes', 'new'] })
    expect(calls).toBe(0)
  })
})

describe('a key', () => {
  it('that is used for two questions is refused, and not asked for ever', async () => {
    await using hf = await openHoldfast('memory:')
    const program = flow<number, unknown>(NAMED, async (ctx) => [
      await ctx.pause('first?', { key: 'k' }),
      await ctx.pause('first?', { key: 'k' }),
      await ctx.pause('second?', { key: 'k' }),
    ])
    const thread = hf.thread(program, 't')
    const asked = await thread.run({ input: 1 })
    if (asked.status !== 'paused') throw new Error(asked.status)
    await thread.answer(asked.pauses[0]?.id ?? '', 1)
    expect(await thread.run()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid-program', message: expect.stringContaining('"k"') },
    })
  })

  it('that is no text or number is refused with what it is', async () => {
    await using hf = await openHoldfast('memory:')
    for (const [key, given] of [
      [{}, 'object'],
      [null, 'null'],
      ['\ud800', 'surrogate'],
    ]) {
      const program = flow<number, unknown>(NAMED, (ctx) => ctx.step('work', { key: key as never }, () => 1))
      expect(await hf.thread(program, `t ${given}`).run({ input: 1 })).toMatchObject({
        error: { code: 'invalid-program', message: expect.stringContaining(given as string) },
      })
    }
  })
})

describe('names that every object has', () => {
  it('work as signals, steps, keys of the state and shared keys of a subgraph', async () => {
    for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
      await using hf = await openHoldfast('memory:')
      const inner = graph({ ...NAMED, name: 'inner', state: { [name]: last<string>(), own: last<string>() } })
        .node('inside', (state) => ({ own: Object.hasOwn(state, name) ? 'set' : 'not set' }))
        .edge(START, 'inside')
      const program = graph({ ...NAMED, state: { [name]: last<string>(), own: last<string>() } })
        .node('sub', inner)
        .node(name, async (_, ctx) => {
          const first = await ctx.step(name, () => 'step')
          return { [name]: `${first} ${await ctx.receive(name)}` }
        })
        .edge(START, 'sub')
        .edge('sub', name)
      const thread = hf.thread(program, 't')
      expect(await thread.run({ input: {} })).toMatchObject({ status: 'paused', waiting: [{ name }] })
      expect(await thread.run()).toMatchObject({ status: 'paused' })
      await thread.signal(name, 'signal')
      const { status, state } = await thread.run()
      expect([status, state]).toEqual(['completed', { [name]: 'step signal', own: 'not set' }])
    }
  })
})

describe('input that can’t be stored', () => {
  const echo = flow<unknown, unknown>(NAMED, async (_, input) => input)
  const cyclic: Record<string, unknown> = { list: [1] }
  ;(cyclic['list'] as unknown[]).push({ back: cyclic })
  let deep: unknown = 'bottom'
  for (let i = 0; i < 100_000; i++) deep = i % 2 ? { in: deep } : [deep]

  it('because it refers back to itself, or lies too deep, is refused with the path', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(echo, 't')
    await expect(thread.run({ input: cyclic })).rejects.toMatchObject({
      code: 'invalid-value',
      data: { path: '$.list[1].back' },
    })
    await expect(thread.run({ input: deep })).rejects.toMatchObject({ code: 'too-large' })
    await expect(thread.enqueue(cyclic)).rejects.toMatchObject({ code: 'invalid-value' })
    await expect(thread.run({ input: [deep], frequency: 'none' })).rejects.toMatchObject({ code: 'too-large' })
  })

  it('fails the step that was given it, or the run that returns it, by name', async () => {
    await using hf = await openHoldfast('memory:')
    for (const [i, value] of [cyclic, deep].entries()) {
      const code = value === cyclic ? 'invalid-value' : 'too-large'
      const bodies: ((ctx: Context) => Promise<unknown>)[] = [
        (ctx) => ctx.step('s', { input: value }, () => 1),
        (ctx) => ctx.step('s', () => value),
        (ctx) => ctx.pause(value),
        async () => value,
      ]
      for (const [j, body] of bodies.entries()) {
        const program = flow<number, unknown>(NAMED, (ctx) => body(ctx))
        const outcome = await hf.thread(program, `t ${i} ${j}`).run({ input: 1 })
        const error = { code: j === 1 ? 'step-failed' : code, message: expect.stringMatching(/cycle|nesting/) }
        expect(outcome, `body ${j}`).toMatchObject({ status: 'failed', error })
      }
    }
  })
})

it('shares one signal between any number of runs and streams without a warning', async () => {
  const warnings: Error[] = []
  const warn = (warning: Error) => void warnings.push(warning)
  process.on('warning', warn)
  await using hf = await openHoldfast('memory:')
  const stop = new AbortController()
  let begun = 0
  let all = () => {}
  const allBegun = new Promise<void>((resolve) => {
    all = resolve
  })
  const program = flow<number, unknown>(NAMED, (ctx) =>
    ctx.step('hang', async ({ abortSignal: abort }) => {
      if (++begun === 30) all()
      await new Promise((resolve) => abort.addEventListener('abort', resolve))
    }),
  )
  const running = Array.from({ length: 30 }, (_, i) => {
    const options = { input: i, signal: stop.signal }
    const thread = hf.thread(program, `t${i}`)
    if (i % 2) return thread.run(options)
    const stream = thread.stream(options)
    void (async () => {
      const events: RunEvent[] = []
      for await (const event of stream) events.push(event)
    })().catch(() => {})
    return stream.outcome
  })
  await allBegun
  stop.abort()
  for (const outcome of await Promise.allSettled(running)) expect(outcome.status).toBe('rejected')
  await new Promise(setImmediate)
  process.off('warning', warn)
  expect(warnings).toEqual([])
})
