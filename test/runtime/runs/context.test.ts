import { agent, append, flow, graph, last, openHoldfast, START, tool } from 'holdfast'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { calls, setUp } from '../../agent/agent-setup.js'

const { serve, store } = setUp()

const region = z.object({ region: z.string() })

/** Says what it sees of its context, before and after a question. */
const order = flow(
  { name: 'order', version: '1.0.0', context: region.extend({ token: z.string() }), transientContext: ['token'] },
  async (ctx) => {
    expectTypeOf(ctx.context).toEqualTypeOf<{ region: string; token: string }>()
    const before = await ctx.step('before', () => `${ctx.context.region} ${ctx.context.token}`)
    await ctx.pause('Go on?')
    return [before, await ctx.step('after', () => `${ctx.context.region} ${ctx.context.token}`)]
  },
)

async function answered(hf: Awaited<ReturnType<typeof openHoldfast>>) {
  for (const { id } of await hf.inspect('t').pauses()) await hf.inspect('t').answer(id, true)
}

describe('what run({ context }) brings', () => {
  it('may be brought in parts: with the input, and by the worker or whoever resumes the run', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(order, 't')
    await thread.enqueue('x', { context: { region: 'EU' } })
    await expect(thread.enqueue('y', { context: { region: 5 } })).rejects.toMatchObject({ code: 'invalid-value' })
    const worker = hf.worker({ programs: [order], handleSignals: false, context: () => ({ token: 'one' }) })
    expect(await thread.waitFor()).toMatchObject({ status: 'paused' })
    await worker.stop()
    await answered(hf)
    expect(await thread.run({ context: { token: 'two' } })).toMatchObject({ output: ['EU one', 'EU two'] })
  })

  it('is missed before a worker begins a run that nobody brought it to, or that would not fit', async () => {
    await using hf = await openHoldfast('memory:')
    const seen: unknown[] = []
    const plain = flow({ name: 'plain', version: '1.0.0', context: region }, async (ctx) => {
      seen.push(ctx.context)
      return ctx.context.region
    })
    const thread = hf.thread(plain, 't')
    await thread.enqueue('x')
    await thread.enqueue('y')
    for (const [context, code] of [
      [undefined, 'missing-context'],
      [{ region: 5 }, 'invalid-value'],
    ] as const) {
      const error = await new Promise<unknown>((resolve) => {
        const worker = hf.worker({
          programs: [plain],
          handleSignals: false,
          context: () => context,
          onEvent: (event) => {
            if (event.type === 'error') void worker.stop().then(() => resolve(event.error))
          },
        })
      })
      expect(error).toMatchObject({ code })
    }
    await expect(thread.run()).rejects.toMatchObject({ code: 'missing-context' })
    expect(seen).toEqual([])
    // Brought to the first, and not lent to the one behind it.
    expect(await thread.run({ context: { region: 'EU' } })).toMatchObject({ status: expect.any(String) })
    expect(seen).toEqual([{ region: 'EU' }])
    const worker = hf.worker({ programs: [plain], handleSignals: false, context: () => ({ region: 'US' }) })
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'US' })
    await worker.stop()
    expect(seen).toEqual([{ region: 'EU' }, { region: 'US' }])
  })

  it('is recorded with the run, and not with it when the run is over', async () => {
    await using hf = await openHoldfast('memory:')
    const plain = flow({ name: 'plain', version: '1.0.0' }, async (ctx) => [ctx.context, await ctx.pause('?')])
    const thread = hf.thread(plain, 't')
    await thread.run({ input: 1, context: { region: 'US-West', gone: undefined } })
    await answered(hf)
    expect(await thread.run()).toMatchObject({ output: [{ region: 'US-West' }, true] })
    expect(await thread.replay()).toMatchObject({ status: 'identical' })
    const [newest] = await thread.history({ limit: 1 })
    expect(
      (
        await hf
          .inspect('t')
          .look(newest?.id ?? '')
          .facts()
      ).run,
    ).not.toHaveProperty('context')
  })

  it('reaches the tools of a run that a worker takes over', async () => {
    const { model } = await serve({
      reply: ({ messages }) => (messages.length < 3 ? calls(['find']) : { text: 'Done.' }),
    })
    const seen: unknown[] = []
    const support = agent({
      name: 'support',
      version: '1.0.0',
      model,
      tools: {
        find: tool({
          inputSchema: z.object({}),
          effect: 'read',
          context: region,
          needsApproval: (_, { context }) => context.region === 'US-West',
          execute: (_, { context }) => {
            expectTypeOf(context).toEqualTypeOf<{ region: string }>()
            seen.push(context)
            return context.region
          },
        }),
      },
    })
    const hf = await store()
    const thread = hf.thread(support, 't')
    const paused = await thread.run({ input: 'Where is it?', context: { region: 'US-West' } })
    if (paused.status !== 'paused') throw new Error(paused.status)
    await using _ = hf.worker({ programs: [support], pollMs: 5, handleSignals: false })
    await thread.answer(paused.pauses[0]?.id ?? '', { approved: true })
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'Done.' })
    expect(seen).toStrictEqual([{ region: 'US-West' }])
  })

  it('is what the schema makes of it, and refused by it before anything is written', async () => {
    await using hf = await openHoldfast('memory:')
    const counted = graph({
      name: 'counted',
      version: '1.0.0',
      state: { seen: append<number>() },
      context: z.object({ times: z.coerce.number() }),
    })
      .node('one', (_, ctx) => ({ seen: ctx.context.times }))
      .edge(START, 'one')
    const thread = hf.thread(counted, 't')
    await expect(thread.run({ input: {} })).rejects.toMatchObject({ code: 'invalid-value', data: { path: 'context' } })
    await expect(thread.run({ input: {}, context: { times: 'many' } })).rejects.toMatchObject({
      data: { path: 'context.times' },
    })
    expect(await thread.state()).toBeUndefined()
    expect(await thread.run({ input: {}, context: { times: '3' } })).toMatchObject({ state: { seen: [3] } })
  })

  it('is refused with its name when it can’t be recorded, or is too large to be', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(
      flow({ name: 'p', version: '1.0.0' }, () => 1),
      't',
    )
    await expect(thread.run({ input: 1, context: { user: 'ada', db: { query: () => 1 } } })).rejects.toThrow(
      /context\.db can't be recorded.*transientContext: \["db"\]/s,
    )
    await expect(thread.run({ input: 1, context: { text: 'x'.repeat(300_000) } })).rejects.toMatchObject({
      code: 'too-large',
      data: { field: 'context.text', limit: 262_144 },
    })
    expect(await thread.state()).toBeUndefined()
  })

  it('is redacted as all that is kept, also for the process that brought it', async () => {
    await using hf = await openHoldfast('memory:', { redact: (text) => text.replace(/sk-\w+/g, '…') })
    const thread = hf.thread(
      flow({ name: 'p', version: '1.0.0' }, (ctx) => ctx.context),
      't',
    )
    const outcome = await thread.run({ input: 1, context: { key: 'sk-123' } })
    expect(JSON.stringify(outcome)).not.toContain('sk-123')
  })

  it('belongs to its own run: input that waits runs with its own, whoever drives it', async () => {
    await using hf = await openHoldfast('memory:')
    const who = flow({ name: 'who', version: '1.0.0' }, (ctx) => ctx.step('who', () => ctx.context))
    const thread = hf.thread(who, 't')
    await thread.enqueue('first', { context: { user: 'ada' }, key: 'a' })
    await thread.enqueue('second', { key: 'b' })
    expect(await thread.run({ input: 'third', context: { user: 'eve' }, key: 'c' })).toMatchObject({
      output: { user: 'eve' },
    })
    expect(await thread.run({ input: 'first', key: 'a' })).toMatchObject({ output: { user: 'ada' } })
    expect(await thread.run({ input: 'second', key: 'b' })).toMatchObject({ status: 'completed', output: undefined })
  })

  describe('to input that was left without any', () => {
    const asks = flow({ name: 'asks', version: '1.0.0', context: region }, async (ctx) => {
      const before = ctx.context
      await ctx.pause('?')
      return [before, ctx.context]
    })
    const both = { status: 'completed', output: [{ region: 'EU' }, { region: 'EU' }] }

    it('is recorded with it by whoever runs the thread', async () => {
      await using hf = await openHoldfast('memory:')
      const thread = hf.thread(asks, 't')
      await thread.enqueue('x', { key: 'k' })
      await thread.run({ context: { region: 'EU' } })
      await answered(hf)
      expect(await thread.run()).toMatchObject(both)
    })

    it('is recorded with it by whoever gives the same input again', async () => {
      await using hf = await openHoldfast('memory:')
      const thread = hf.thread(asks, 't')
      await thread.enqueue('x', { key: 'k' })
      await thread.run({ input: 'x', key: 'k', context: { region: 'EU' } })
      await answered(hf)
      expect(await thread.run()).toMatchObject(both)
    })

    it('is recorded with it also while the run before it waits, and replaces nothing that was brought', async () => {
      await using hf = await openHoldfast('memory:')
      const thread = hf.thread(asks, 't')
      await thread.run({ input: 'first', context: { region: 'US' } })
      await thread.enqueue('x', { key: 'k' })
      for (const given of ['EU', 'late']) {
        await thread.run({ input: 'x', key: 'k', context: { region: given }, onPaused: 'queue' })
      }
      await thread.enqueue('x', { key: 'k', context: { region: 'later' } })
      await answered(hf)
      expect(await thread.run()).toMatchObject({ status: 'paused' })
      await answered(hf)
      expect(await thread.run()).toMatchObject(both)
    })

    it('is kept to oneself by whoever gives other input, which comes after it', async () => {
      await using hf = await openHoldfast('memory:')
      const who = flow({ name: 'who', version: '1.0.0' }, (ctx) => ctx.step('who', () => ctx.context ?? 'nobody'))
      const thread = hf.thread(who, 't')
      await thread.enqueue('first', { key: 'a' })
      expect(await thread.run({ input: 'second', context: { user: 'eve' } })).toMatchObject({ output: { user: 'eve' } })
      expect(await thread.run({ input: 'first', key: 'a' })).toMatchObject({ output: 'nobody' })
    })
  })

  it('is laid over what the run began with when somebody resumes it', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(order, 't')
    await thread.run({ input: 1, context: { region: 'EU', token: 'one' } })
    await answered(hf)
    expect(await thread.run({ context: { region: 'US', token: 'two' } })).toMatchObject({
      output: ['EU one', 'US two'],
    })
  })
})

describe('a context that is transient', () => {
  it('is in no record', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(order, 't')
    await thread.run({ input: 1, context: { region: 'EU', token: 'very-secret' } })
    const folds = await Promise.all(
      (await thread.history({ all: true })).map(({ id }) => hf.inspect('t').look(id).fold()),
    )
    // What the step returned is the program's own business.
    const text = JSON.stringify(folds.map(({ state }) => ({ ...state, steps: undefined })))
    expect(text).toContain('"transient":["token"]')
    expect(text).not.toContain('very-secret')
  })

  it('is missed with a typed error by whoever resumes the run without it, and nothing is lost', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(order, 't')
    await thread.run({ input: 1, context: { region: 'EU', token: 'one' } })
    await answered(hf)
    await expect(thread.run()).rejects.toMatchObject({
      name: 'MissingContextError',
      code: 'missing-context',
      data: { missing: ['token'] },
    })
    expect(await thread.run({ context: { region: 'EU', token: 'two' } })).toMatchObject({
      output: ['EU one', 'EU two'],
    })
  })

  it('is missed by a worker without it, which leaves the thread to one that has it', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(order, 't')
    await thread.run({ input: 1, context: { region: 'EU', token: 'one' } })
    let tell: (error: unknown) => void = () => {}
    const told = new Promise<unknown>((resolve) => {
      tell = resolve
    })
    const lacking = hf.worker({
      programs: [order],
      pollMs: 5,
      handleSignals: false,
      onEvent: (event) => event.type === 'error' && tell(event.error),
    })
    await answered(hf)
    expect(await told).toMatchObject({ code: 'missing-context', data: { missing: ['token'] } })
    await lacking.stop()
    await using _ = hf.worker({
      programs: [order],
      pollMs: 5,
      handleSignals: false,
      context: () => ({ token: 'of the worker', region: 'nowhere' }),
    })
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: ['EU one', 'EU of the worker'] })
  })

  it('can’t be left for a worker, and a run that lacks it can be cancelled', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(order, 't')
    const context = { region: 'EU', token: 'one' }
    await expect(thread.enqueue(1, { context })).rejects.toMatchObject({ data: { path: 'context.token' } })
    await thread.run({ input: 1, context })
    expect(await thread.cancel()).toBe(true)
    expect(await thread.waitFor()).toMatchObject({ status: 'failed', canResume: false })
  })

  it('is never lent to another’s run: whoever has to drive that one first lacks what it needs', async () => {
    await using hf = await openHoldfast('memory:')
    const seen: unknown[] = []
    let isDown = true
    const act = flow({ name: 'act', version: '1.0.0', transientContext: ['token'] }, (ctx, input: string) =>
      ctx.step('act', { effect: 'read' }, () => {
        if (isDown) throw new Error('down')
        seen.push([input, ctx.context])
      }),
    )
    const thread = hf.thread(act, 't')
    expect((await thread.run({ input: 'A', context: { user: 'alice', token: 'of alice' } })).status).toBe('failed')
    isDown = false
    const bob = { input: 'B', context: { user: 'bob', token: 'of bob' } }
    await expect(thread.run(bob)).rejects.toMatchObject({ code: 'missing-context', data: { missing: ['token'] } })
    expect(seen).toEqual([])
    await thread.run({ input: 'A', context: { user: 'alice', token: 'of alice, again' } })
    await thread.run(bob)
    expect(seen).toEqual([
      ['A', { user: 'alice', token: 'of alice, again' }],
      ['B', { user: 'bob', token: 'of bob' }],
    ])
  })

  it('of whoever resumes a run is not lent to the input that waits behind it', async () => {
    await using hf = await openHoldfast('memory:')
    const seen: unknown[] = []
    const ask = flow({ name: 'ask', version: '1.0.0', transientContext: ['token'] }, async (ctx, input: string) => {
      if (input === 'A') await ctx.pause('?')
      seen.push([input, ctx.context])
    })
    const thread = hf.thread(ask, 't')
    await thread.run({ input: 'A', context: { user: 'alice', token: 'of alice' } })
    const behind = await thread.run({
      input: 'B',
      key: 'b',
      context: { user: 'bob', token: 'of bob' },
      onPaused: 'queue',
    })
    expect(behind).toMatchObject({ status: 'paused', input: 'queued' })
    await answered(hf)
    expect((await thread.run({ context: { token: 'of alice' } })).status).toBe('completed')
    expect(seen).toEqual([['A', { user: 'alice', token: 'of alice' }]])
    await thread.run({ input: 'B', key: 'b', context: { user: 'bob', token: 'of bob' } })
    expect(seen.slice(1)).toEqual([['B', { user: 'bob', token: 'of bob' }]])
  })

  it('is missed, too, by whoever would drop a run that waits, once it has its answer and goes on instead', async () => {
    await using hf = await openHoldfast('memory:')
    const seen: unknown[] = []
    const ask = flow({ name: 'ask', version: '1.0.0', transientContext: ['token'] }, async (ctx, input: string) => {
      if (input === 'A') await ctx.pause('?')
      seen.push([input, ctx.context])
    })
    const thread = hf.thread(ask, 't')
    await thread.run({ input: 'A', context: { token: 'of A' } })
    await answered(hf)
    const missing = { code: 'missing-context', data: { missing: ['token'] } }
    await expect(thread.run({ input: 'B', onPaused: 'cancel' })).rejects.toMatchObject(missing)
    expect(seen).toEqual([])
    expect((await thread.run({ context: { token: 'of A' } })).status).toBe('completed')
    expect(seen).toEqual([['A', { token: 'of A' }]])
  })

  it('is not needed to drop a run that only waits', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(order, 't')
    await thread.run({ input: 1, context: { region: 'EU', token: 'one' } })
    const next = await thread.run({ input: 2, context: { region: 'US', token: 'two' }, onPaused: 'cancel' })
    expect(next).toMatchObject({ status: 'paused', input: 'taken' })
    await answered(hf)
    expect(await thread.run({ context: { region: 'US', token: 'two' } })).toMatchObject({
      output: ['US two', 'US two'],
    })
  })

  it('may be all of it', async () => {
    await using hf = await openHoldfast('memory:')
    const live = flow({ name: 'live', version: '1.0.0', transientContext: true }, async (ctx) => {
      await ctx.pause('?')
      return (ctx.context as { find: () => string }).find()
    })
    const thread = hf.thread(live, 't')
    await thread.run({ input: 1, context: { find: () => 'one' } })
    await answered(hf)
    await expect(thread.run()).rejects.toMatchObject({ data: { missing: ['context'] } })
    expect(await thread.run({ context: { find: () => 'two' } })).toMatchObject({ output: 'two' })
  })
})

describe('a context under way when another version declares what is transient', () => {
  type Transient = true | readonly string[]
  const asks = (version: string, transientContext?: Transient) =>
    flow({ name: 'asks', version, ...(transientContext === undefined ? {} : { transientContext }) }, async (ctx) => {
      await ctx.pause('one?')
      await ctx.pause('two?')
      return ctx.context
    })
  const kept = async (hf: Awaited<ReturnType<typeof openHoldfast>>) => {
    const [newest] = await hf.inspect('t').history({ limit: 1 })
    const { run } = (
      await hf
        .inspect('t')
        .look(newest?.id ?? '')
        .fold()
    ).state as { run?: object }
    return { context: undefined, transient: undefined, ...run }
  }

  it.each<{ from: Transient | undefined; to: Transient | undefined; context?: object; transient?: Transient }>([
    { from: undefined, to: ['token'], context: { user: 'ada' }, transient: ['token'] },
    { from: undefined, to: true, transient: true },
    { from: ['token'], to: true, transient: true },
    { from: true, to: ['token'], context: { user: 'ada' }, transient: ['token'] },
    { from: ['token'], to: undefined, context: { user: 'ada', token: 'new' } },
    { from: true, to: undefined, context: { user: 'ada', token: 'new' } },
  ])('is what was brought last, kept as declared now: $from, then $to', async ({ from, to, context, transient }) => {
    await using hf = await openHoldfast('memory:')
    const [before, now] = [hf.thread(asks('1.0.0', from), 't'), hf.thread(asks('1.1.0', to), 't')]
    await before.run({ input: 1, context: { user: 'ada', token: 'old' } })
    await answered(hf)
    const brought = { user: 'ada', token: 'new' }
    expect((await now.run({ context: brought })).status).toBe('paused')
    const { context: recorded, transient: named } = await kept(hf)
    expect({ recorded, named }).toEqual({ recorded: context, named: transient })
    await answered(hf)
    // What is recorded now need not be brought again.
    const ended = await now.run(transient === undefined ? {} : { context: brought })
    expect(ended).toMatchObject({ status: 'completed', output: { user: 'ada', token: 'new' } })
  })
})

it('refuses a transientContext that names nothing', () => {
  const options = { name: 'p', version: '1.0.0', transientContext: 'token' as never }
  expect(() => flow(options, () => 1)).toThrow(/transientContext of flow "p" must be true or a list/)
  expect(() => graph({ ...options, state: { a: last<number>() } })).toThrow(/transientContext/)
})
