import { append, END, graph, type Holdfast, last, openHoldfast, send, START } from 'holdfast'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let clock: VirtualClock
let hf: Holdfast

beforeEach(async () => {
  clock = virtualClock()
  hf = await openHoldfast('memory:', { clock })
})

afterEach(() => hf.close())

async function answerAll(id: string, value: unknown): Promise<void> {
  for (const { id: pause } of await hf.inspect(id).pauses()) await hf.inspect(id).answer(pause, value)
}

describe('a thread in the middle of a super-step', () => {
  const old = graph({ name: 'p', version: '1.0.0', state: { total: last<number>(), log: append<string>() } })
    .node('add', () => ({ total: 5, log: 'added' }))
    .node('wait', async (_, ctx) => ({ log: await ctx.pause<string>('well?') }))
    .node('end', ({ total }) => ({ log: `total ${total}` }))
    .edge(START, 'add')
    .edge(START, 'wait')
    .edge(['add', 'wait'], 'end')
    .edge('end', END)

  const newer = (migration: object) =>
    graph({
      name: 'p',
      version: '1.1.0',
      stateVersion: 2,
      migrations: { 2: migration as never },
      aliases: { add: 'sum', wait: 'ask' },
      state: { totals: append<number>(), log: append<string>() },
    })
      .node('sum', () => {
        throw new Error('was done')
      })
      .node('ask', async (_, ctx) => ({ log: await ctx.pause<string>('well?') }))
      .node('end', ({ totals }) => ({ log: `totals ${totals.join()}` }))
      .edge(START, 'sum')
      .edge(START, 'ask')
      .edge(['sum', 'ask'], 'end')
      .edge('end', END)

  const state = ({ total, ...rest }: Record<string, unknown>) => ({
    ...rest,
    totals: total === undefined ? [] : [total],
  })
  const update = ({ total, ...rest }: Record<string, unknown>) =>
    total === undefined ? rest : { ...rest, totals: [total] }

  it('has its recorded results led to the new version too', async () => {
    expect(await hf.thread(old, 't').run({ input: {} })).toMatchObject({ status: 'paused' })
    await answerAll('t', 'fine')
    expect(await hf.thread(newer({ state, update }), 't').run()).toMatchObject({
      status: 'completed',
      state: { totals: [5], log: ['added', 'fine', 'totals 5'] },
    })
  })

  it('is refused where a recorded result would be lost, by a run and in bulk', async () => {
    await hf.thread(old, 't').run({ input: {} })
    await answerAll('t', 'fine')
    const before = await hf.inspect('t').history()
    expect(await hf.thread(newer(state), 't').run()).toMatchObject({
      status: 'incompatible',
      reason: expect.stringContaining('"total"'),
    })
    const { migrated, failed } = await hf.migrate(newer(state))
    expect(migrated).toEqual([])
    expect(failed).toMatchObject([{ thread: 't', error: { code: 'incompatible', data: { key: 'total' } } }])
    expect(await hf.inspect('t').history()).toEqual(before)
    expect(await hf.thread(old, 't').run()).toMatchObject({ status: 'completed' })
  })
})

describe('a subgraph with state versions of its own', () => {
  const inner = (stateVersion: number) =>
    graph({
      name: 'inner',
      version: '1.0.0',
      stateVersion,
      migrations: Object.fromEntries(
        [2, 3]
          .filter((v) => v <= stateVersion)
          .map((v) => [v, ({ said, ...rest }) => ({ ...rest, said: `${said}-v${v}` })]),
      ),
      state: { said: last<string>() },
    })
      .node('ask', async ({ said }, ctx) => ({ said: `${said} ${await ctx.pause<string>('?')}` }))
      .edge(START, 'ask')
      .edge('ask', END)
  const middle = (stateVersion: number) =>
    graph({ name: 'middle', version: '1.0.0', state: { said: last<string>() } })
      .node('inner', inner(stateVersion))
      .edge(START, 'inner')
      .edge('inner', END)
  const outer = (stateVersion: number) =>
    graph({ name: 'outer', version: '1.0.0', state: { items: append<string>(), all: append<string>() } })
      .node('middle', middle(stateVersion), {
        input: (_, item) => ({ said: item as string }),
        output: ({ said }) => ({ all: said ?? '' }),
      })
      .branch(START, ({ items }) => items.map((item) => send('middle', item)), ['middle', END])
      .edge('middle', END)

  it('is brought up to date where it is, two levels down and once per item, from the version it was begun with', async () => {
    await hf.thread(outer(2), 't').run({ input: { items: ['a', 'b'] } })
    expect(await hf.thread(outer(1), 't').run()).toMatchObject({
      status: 'incompatible',
      reason: expect.stringContaining('version 2'),
    })
    await answerAll('t', 'ok')
    expect(await hf.thread(outer(3), 't').run()).toMatchObject({
      status: 'completed',
      state: { all: ['a-v3 ok', 'b-v3 ok'] },
    })
  })

  it('is reported by the bulk migration', async () => {
    await hf.thread(outer(1), 't').run({ input: { items: ['a'] } })
    const { migrated } = await hf.migrate(outer(3))
    expect(migrated).toEqual([
      { thread: 't', branch: 'main', from: 1, to: 1, subgraphs: [{ path: '0:middle/0:inner', from: 1, to: 3 }] },
    ])
  })
})

describe('the bulk migration', () => {
  const program = (stateVersion: number) =>
    graph({
      name: 'many',
      version: '1.0.0',
      stateVersion,
      migrations: stateVersion === 1 ? {} : { 2: ({ n, ...rest }) => ({ ...rest, m: `${n}` }) },
      state: { n: last<number>(), m: last<string>() },
    })
      .node('end', () => {})
      .edge(START, 'end')
      .edge('end', END)

  it('goes over all threads that a query finds, and tells which it could not have', async () => {
    for (let i = 0; i < 30; i++) await hf.thread(program(1), `t${i}`).run({ input: { n: i } })
    const held = await (await hf.log('t7')).claim({ owner: 'another', ms: 60_000 })
    const { checked, migrated, failed } = await hf.migrate(program(2))
    expect([checked, migrated.length]).toEqual([30, 29])
    expect(failed).toMatchObject([{ thread: 't7', error: { code: 'held', data: { owner: 'another' } } }])
    await held.release()
    expect(await hf.migrate(program(2), { query: { thread: 't7' } })).toMatchObject({
      checked: 1,
      migrated: [{ from: 1, to: 2 }],
    })
    for (let i = 0; i < 30; i++) expect(await hf.thread(program(2), `t${i}`).state()).toEqual({ m: `${i}` })
    // Who took the threads up let them go again.
    expect((await hf.threads()).threads.filter(({ claimedBy }) => claimedBy !== null)).toEqual([])
  })
})

describe('a thread of an older version that is only looked at', () => {
  const program = (stateVersion: number, migrations: object = { 2: ({ n }: any) => ({ m: `${n}` }) }) =>
    graph({
      name: 'looked at',
      version: '1.0.0',
      stateVersion,
      migrations: stateVersion === 1 ? {} : (migrations as never),
      state: { n: last<number>(), m: last<string>() },
    })
      .node('ask', async (_, ctx) => {
        await ctx.pause('well?')
        return {}
      })
      .edge(START, 'ask')
      .edge('ask', END)

  it('is shown as the program at hand knows it, and nothing is written', async () => {
    const old = hf.thread(program(1), 't')
    await old.run({ input: { n: 1 }, key: 'one' })
    const newer = hf.thread(program(2), 't')
    const before = await newer.history({ all: true })
    expect(await newer.state()).toEqual({ m: '1' })
    expect(await newer.run()).toMatchObject({ status: 'paused', state: { m: '1' } })
    expect((await newer.run({ input: { m: 'x' } })).state).toEqual({ m: '1' })
    const held = await (await hf.log('t')).claim({ owner: 'another', ms: 60_000, force: true })
    await answerAll('t', 'fine')
    expect(await newer.run()).toMatchObject({ status: 'busy', state: { m: '1' } })
    await held.release()
    await old.run()
    expect(await newer.run({ input: { m: 'y' }, key: 'one' })).toMatchObject({ status: 'completed', state: { m: '1' } })
    // As it was, for who asks for that.
    expect(await newer.at(before[0].id).state()).toEqual({ n: 1 })
    expect(await old.state()).toEqual({ n: 1 })
  })

  it('is not shown where nothing leads there', async () => {
    await hf.thread(program(1), 't').run({ input: { n: 1 } })
    const data = { from: 1, to: 2 }
    await expect(hf.thread(program(2, {}), 't').state()).rejects.toMatchObject({ code: 'incompatible', data })
    await hf.thread(program(2), 'u').run({ input: { m: '1' } })
    await expect(hf.thread(program(1), 'u').state()).rejects.toMatchObject({ data: { reason: 'state-too-new' } })
  })
})
