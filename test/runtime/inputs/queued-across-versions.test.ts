import { append, END, graph, type Holdfast, last, openHoldfast, START } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let hf: Holdfast

beforeEach(async () => {
  hf = await openHoldfast('memory:', { clock: virtualClock() })
})

afterEach(() => hf.close())

/** Version 1 counts in cents, version 2 in euros; the text has kept its meaning. */
const price = (stateVersion: number, migration?: unknown, version = '1.0.0') =>
  graph({
    name: 'price',
    version,
    stateVersion,
    migrations: stateVersion === 1 ? {} : { 2: migration as never },
    state: { amount: last<number>(), text: append<string>() },
  })
    .node('note', ({ amount }) => ({ text: `v${stateVersion}: ${amount}` }))
    .edge(START, 'note')
    .edge('note', END)

const euros = (state: Record<string, unknown>) =>
  'amount' in state ? { ...state, amount: Number(state['amount']) / 100 } : state
const both = { state: euros, update: euros }
const old = price(1)

describe('input that was queued under an older version of the state', () => {
  it.each(['of a thread that never ran', 'of a thread at rest'])('is led to the new one, %s', async (which) => {
    if (which.includes('rest')) await hf.thread(old, 't').run({ input: { amount: 100 } })
    await hf.thread(old, 't').enqueue({ amount: 500, text: ['hi'] })
    expect(await hf.thread(price(2, both), 't').run()).toMatchObject({ status: 'completed', state: { amount: 5 } })
  })

  it('is taken as it is where the migration leaves what it changes alone', async () => {
    await hf.thread(old, 't').enqueue({ text: ['hi'] })
    expect(await hf.thread(price(2, euros), 't').run()).toMatchObject({
      status: 'completed',
      state: { text: ['hi', 'v2: undefined'] },
    })
  })

  it.each([
    ['says nothing of what changes', euros, '"amount"'],
    ['can not be tried on it', ({ amount, text }: any) => ({ amount, text: text.map(String) }), '"amount"'],
    [
      'throws',
      {
        state: euros,
        update: () => {
          throw new Error('no rate')
        },
      },
      'no rate',
    ],
  ])('is refused when the migration %s, by name and with nothing written', async (_, migration, says) => {
    await hf.thread(old, 't').enqueue({ amount: 500 }, { key: 'order-7' })
    const before = await hf.inspect('t').history({ all: true })
    const newer = hf.thread(price(2, migration), 't')
    const refused = await newer.run()
    if (refused.status !== 'incompatible') throw new Error(refused.status)
    expect(refused).toMatchObject({ canResume: false, reason: expect.stringContaining('order-7') })
    expect(refused.reason).toContain(says)
    expect(refused.remedy).not.toBe('')
    expect(await newer.run({ input: { amount: 3 } })).toMatchObject({ status: 'incompatible' })
    await expect(newer.enqueue({ amount: 3 })).rejects.toMatchObject({ code: 'incompatible' })
    const { migrated, failed } = await hf.migrate(price(2, migration), { dryRun: true })
    expect(migrated).toEqual([])
    expect(failed).toMatchObject([{ thread: 't', error: { code: 'incompatible', data: { inputKey: 'order-7' } } }])
    expect(await hf.inspect('t').history({ all: true })).toEqual(before)
    expect(await hf.thread(old, 't').run()).toMatchObject({ status: 'completed', state: { amount: 500 } })
  })

  it('can be cancelled where it can not be taken', async () => {
    await hf.thread(old, 't').enqueue({ amount: 500 })
    const newer = hf.thread(price(2, euros), 't')
    expect(await newer.run()).toMatchObject({ status: 'incompatible' })
    await newer.cancel({ reason: 'not needed' })
    expect(await newer.run()).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('not needed') },
    })
    expect(await newer.run({ input: { amount: 3 } })).toMatchObject({ status: 'completed', state: { amount: 3 } })
  })

  it('waits for a run that is not over, which goes on', async () => {
    const asks = (stateVersion: number, migration?: unknown) =>
      graph({
        name: 'asks',
        version: '1.0.0',
        stateVersion,
        migrations: stateVersion === 1 ? {} : { 2: migration as never },
        state: { amount: last<number>() },
      })
        .node('ask', async (_, ctx) => ({ amount: await ctx.pause<number>('How much?') }))
        .edge(START, 'ask')
        .edge('ask', END)
    await hf.thread(asks(1), 't').run({ input: {} })
    await hf.thread(asks(1), 't').enqueue({ amount: 500 })
    const [{ id }] = await hf.inspect('t').pauses()
    await hf.inspect('t').answer(id, 7)
    const newer = hf.thread(asks(2, euros), 't')
    expect(await newer.run()).toMatchObject({ status: 'completed', state: { amount: 7 } })
    expect(await newer.run()).toMatchObject({ status: 'incompatible' })
    expect(await hf.thread(asks(2, both), 't').run()).toMatchObject({ status: 'paused', state: { amount: 5 } })
  })
})

describe('input of a newer version of the state', () => {
  it('is left to the newer program, and the older one does not park the thread', async () => {
    await hf.thread(price(2, both, '1.1.0'), 't').enqueue({ amount: 5 })
    expect(await hf.thread(old, 't').run()).toMatchObject({
      status: 'incompatible',
      reason: expect.stringContaining('version 2'),
    })
    expect(await hf.thread(price(2, both, '1.1.0'), 't').run()).toMatchObject({ state: { amount: 5 } })
  })

  it('that comes while the older program runs is not taken by it', async () => {
    let queue: () => Promise<unknown> = async () => {}
    const running = graph({
      name: 'price',
      version: '1.0.0',
      state: { amount: last<number>(), text: append<string>() },
    })
      .node('note', async () => {
        await queue()
        return { text: 'v1' }
      })
      .edge(START, 'note')
      .edge('note', END)
    const newer = hf.thread(price(2, both, '1.1.0'), 't')
    queue = () => newer.enqueue({ amount: 5 }, { key: 'later' })
    const thread = hf.thread(running, 't')
    expect(await thread.run({ input: { amount: 100 } })).toMatchObject({ status: 'completed', state: { amount: 100 } })
    expect(await thread.run()).toMatchObject({ status: 'incompatible', reason: expect.stringContaining('later') })
    expect(await newer.run()).toMatchObject({ status: 'completed', state: { amount: 5, text: ['v1', 'v2: 5'] } })
  })
})

describe('input that was queued for another program', () => {
  it('is not taken for one of this', async () => {
    const other = graph({ name: 'other', version: '1.0.0', state: { amount: last<number>() } })
      .node('end', () => {})
      .edge(START, 'end')
      .edge('end', END)
    await hf.thread(old, 't').enqueue({ amount: 500 })
    expect(await hf.thread(other, 't').run()).toMatchObject({
      status: 'incompatible',
      reason: expect.stringContaining('"price"'),
    })
  })
})
