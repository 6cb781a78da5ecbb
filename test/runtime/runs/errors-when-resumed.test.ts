import { END, flow, graph, last, NotExecutedError, openHoldfast, START } from 'holdfast'
import { expect, it } from 'vitest'

const state = { said: last<string>(undefined, { initial: '' }) }

it.each([
  { what: 'was never answered', refuses: false },
  { what: 'was refused after an attempt that nobody answered', refuses: true },
])('a step of unknown outcome that $what tells a resumed program just what it told at first', async ({ refuses }) => {
  await using hf = await openHoldfast('memory:', { telemetry: false })
  const program = flow({ name: 'tells', version: '1.0.0' }, async (ctx) => {
    let tried = 0
    const charging = ctx.step(
      'charge',
      { effect: 'idempotent', onUnknown: 'fail', retry: { attempts: 2, initialMs: 1 } },
      () => {
        if (refuses && ++tried === 2) throw new NotExecutedError('refused')
        throw new Error('timed out')
      },
    )
    const told = await charging.catch(({ message, data }) => ({ message, data }))
    await ctx.step('note', { input: told }, () => 1)
    await ctx.pause('go on?')
    return told
  })
  const thread = hf.thread(program, 't')
  const paused = await thread.run({ input: 1 })
  if (paused.status !== 'paused') throw new Error(JSON.stringify(paused))
  await thread.answer(paused.pauses[0].id, true)
  expect(await thread.run()).toMatchObject({ status: 'completed', output: { data: { step: 'charge' } } })
})

it('a failed step of a graph within a graph tells a resumed program just what it told at first', async () => {
  await using hf = await openHoldfast('memory:', { telemetry: false })
  const inner = graph({ name: 'inner', version: '1.0.0', state })
    .node('look', async (_, ctx) => {
      const finding = ctx.step('find', { retry: { attempts: 1 } }, () => {
        throw new Error('not there')
      })
      const said = await finding.catch(({ message }: Error) => message)
      await ctx.step('note', { input: said }, () => 1)
      await ctx.pause('go on?')
      return { said: String(said) }
    })
    .edge(START, 'look')
    .edge('look', END)
  const outer = graph({ name: 'outer', version: '1.0.0', state })
    .node('within', inner)
    .edge(START, 'within')
    .edge('within', END)
  const thread = hf.thread(outer, 't')
  const paused = await thread.run({ input: {} })
  if (paused.status !== 'paused') throw new Error(JSON.stringify(paused))
  await thread.answer(paused.pauses[0].id, true)
  expect(await thread.run()).toMatchObject({ status: 'completed' })
})

it.each(['read', 'idempotent'] as const)(
  'a node (%s) with a changed step is incompatible, not failed',
  async (effect) => {
    await using hf = await openHoldfast('memory:', { telemetry: false })
    const program = (input: number) =>
      graph({ name: 'changed', version: '1.0.0', state })
        .node('look', {
          effect,
          run: async (_, ctx) => {
            const said = await ctx.step('find', { input }, () => 'found')
            await ctx.pause('go on?')
            return { said }
          },
        })
        .edge(START, 'look')
        .edge('look', END)
    const paused = await hf.thread(program(1), 't').run({ input: {} })
    if (paused.status !== 'paused') throw new Error(paused.status)
    await hf.thread(program(1), 't').answer(paused.pauses[0].id, true)
    const refused = await hf.thread(program(2), 't').run()
    expect(refused).toMatchObject({ status: 'incompatible', reason: expect.stringContaining('"0:look/find"') })
    expect(await hf.thread(program(1), 't').run()).toMatchObject({ status: 'completed', state: { said: 'found' } })
  },
)
