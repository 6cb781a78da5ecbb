import { append, END, flow, graph, type Holdfast, last, openHoldfast, START } from 'holdfast'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let clock: VirtualClock
let hf: Holdfast

beforeEach(async () => {
  clock = virtualClock()
  hf = await openHoldfast('memory:', { clock })
})

afterEach(() => hf.close())

const counter = graph({ name: 'counter', version: '1.0.0', state: { count: last(undefined, { initial: 0 }) } })
  .node('add', ({ count }) => ({ count: count + 1 }))
  .node('double', ({ count }) => ({ count: count * 2 }))
  .edge(START, 'add')
  .edge('add', 'double')
  .edge('double', END)

describe('a tag', () => {
  it('names the newest checkpoint, or the one that is given, and moves', async () => {
    const thread = hf.thread(counter, 't')
    const { checkpoint } = await thread.run({ input: {} })
    expect(await thread.tag('good')).toEqual({ checkpoint })
    expect((await hf.threads({ tags: ['good'] })).threads).toMatchObject([{ thread: 't', tags: ['good'] }])
    const [, older] = await thread.history()
    expect(await hf.inspect('t').tag('good', { at: older?.id as string })).toEqual({ checkpoint: older?.id })
    expect((await hf.log('t')).fold.index.tags).toEqual({ good: older?.seq })
    expect(await thread.untag('good')).toBe(true)
    expect(await thread.untag('good')).toBe(false)
  })

  it('is set on the branch of the checkpoint that it names', async () => {
    const thread = hf.thread(counter, 't')
    await thread.run({ input: {} })
    const fork = await thread.at((await thread.history())[0]?.id as string).fork({ name: 'side' })
    const [there] = await fork.history()
    await thread.tag('here', { at: there?.id as string })
    expect((await hf.threads({ tags: ['here'] })).threads).toMatchObject([{ branch: 'side' }])
  })

  it('is refused for a checkpoint or a thread that is not there', async () => {
    const thread = hf.thread(counter, 't')
    await expect(thread.tag('x')).rejects.toMatchObject({ code: 'not-found' })
    await thread.run({ input: {} })
    const [newest] = await thread.history()
    const wrong = String(newest?.id).replace(/~\w+$/, '~000000000000')
    await expect(thread.tag('x', { at: wrong })).rejects.toMatchObject({ code: 'not-found' })
    expect((await hf.threads({ tags: ['x'] })).threads).toEqual([])
  })
})

describe('metadata', () => {
  it('is set, changed and taken away by name, and finds the thread', async () => {
    const thread = hf.thread(counter, 't')
    await thread.run({ input: {} })
    await thread.setMetadata({ region: 'eu', level: 2, vip: true })
    await thread.setMetadata({ region: 'us', level: null })
    const [found] = (await hf.threads({ metadata: { region: 'us', vip: true } })).threads
    expect(found?.metadata).toMatchObject({ region: 'us', vip: true, 'holdfast.program': 'counter' })
    expect(found?.metadata).not.toHaveProperty('level')
    const before = (await hf.log('t')).fold.seq
    await thread.setMetadata({ region: 'us', none: null })
    expect((await hf.log('t')).fold.seq).toBe(before)
    expect(await thread.run({ input: {} })).toMatchObject({ status: 'completed' })
    expect((await hf.threads({ metadata: { region: 'us' } })).threads).toHaveLength(1)
  })

  it('is refused under our own names and with values that no index holds', async () => {
    const thread = hf.thread(counter, 't')
    await thread.run({ input: {} })
    await expect(thread.setMetadata({ 'holdfast.program': 'other' })).rejects.toMatchObject({ code: 'invalid-option' })
    await expect(thread.setMetadata({ list: [1] } as never)).rejects.toMatchObject({ code: 'invalid-value' })
    await expect(hf.inspect('none').setMetadata({ a: 1 })).rejects.toMatchObject({ code: 'not-found' })
  })
})

describe('a thread that is looked at without its program', () => {
  it('shows its state, as a copy', async () => {
    expect(await hf.inspect('t').state()).toBeUndefined()
    await hf.thread(counter, 't').run({ input: {} })
    const state = (await hf.inspect('t').state()) as { count: number }
    expect(state).toEqual({ count: 2 })
    state.count = 7
    expect(await hf.inspect('t').state()).toEqual({ count: 2 })
  })
})

describe('the list of threads', () => {
  it('finds threads by parts of their ids', async () => {
    for (const user of ['ann', 'bob'])
      for (const session of ['1', '2']) await hf.thread(counter, { user, session }).run({ input: {} })
    await hf.thread(counter, 'ann').run({ input: {} })
    await hf.thread(counter, { user: 'a,b={c}' }).run({ input: {} })
    const found = async (parts: Readonly<Record<string, string>>) =>
      (await hf.threads({ parts, direction: 'asc' })).threads.map(({ thread }) => thread)
    expect(await found({ user: 'ann' })).toEqual([
      { user: 'ann', session: '1' },
      { user: 'ann', session: '2' },
    ])
    expect(await found({ session: '2', user: 'bob' })).toEqual([{ user: 'bob', session: '2' }])
    expect(await found({ user: 'a,b={c}' })).toEqual([{ user: 'a,b={c}' }])
    expect(await found({ user: 'an' })).toEqual([])
  })

  it('counts the entries that are kept', async () => {
    const thread = hf.thread(counter, 't')
    for (let i = 0; i < 3; i++) await thread.run({ input: {} })
    const before = (await hf.threads()).threads[0]?.entries as number
    const history = await thread.history({ all: true })
    expect(before).toBe(history.length)
    const { removed } = await hf.prune('t', history[2]?.seq as number)
    expect(removed).toBeGreaterThan(0)
    expect((await hf.threads()).threads[0]?.entries).toBe(before - removed)
    expect((await thread.branches())[0]?.entries).toBe(before - removed)
    expect(await thread.history({ all: true })).toHaveLength(before - removed)
  })

  it('says why threads failed, if asked', async () => {
    const shop = flow({ name: 'shop', version: '1.0.0' }, async (ctx, input: { readonly open: boolean }) => {
      await ctx.step('enter', { retry: { attempts: 1 } }, () => {
        if (!input.open) throw new Error('the shop is closed')
        return null
      })
    })
    await hf.thread(shop, 'good').run({ input: { open: true } })
    await hf.thread(shop, 'bad').run({ input: { open: false } })
    const { threads } = await hf.threads({ errors: true })
    const why = Object.fromEntries(threads.map(({ thread, error }) => [thread, error?.message]))
    expect(why).toEqual({ good: undefined, bad: expect.stringContaining('the shop is closed') })
    expect((await hf.threads({ status: 'failed' })).threads[0]).not.toHaveProperty('error')
  })
})

describe('history', () => {
  it('names the nodes and steps of each checkpoint', async () => {
    const plan = graph({ name: 'plan', version: '1.0.0', state: { log: append<string>() } })
      .node('read', async (_, ctx) => ({ log: await ctx.step('fetch', () => 'x') }))
      .node('one', () => ({ log: '1' }))
      .node('two', () => ({ log: '2' }))
      .edge(START, 'read')
      .edge('read', 'one')
      .edge('read', 'two')
      .edge('one', END)
      .edge('two', END)
    const thread = hf.thread(plan, 't')
    await thread.run({ input: {} })
    const named = (await thread.history()).flatMap(({ steps = [] }) => steps.map(({ kind, name }) => `${kind} ${name}`))
    expect(named.sort()).toEqual(['node one', 'node read', 'node two', 'step fetch'])
    const bare = await thread.history({ events: false })
    for (const info of bare) expect(info).not.toHaveProperty('steps')
  })

  it('says what was answered, and by whom, as events and the list of answers do', async () => {
    const ask = flow({ name: 'ask', version: '1.0.0' }, (ctx) => ctx.pause<{ approved: boolean }>('well?'))
    const thread = hf.thread(ask, 't')
    await thread.run({ input: {} })
    const [pause] = await thread.pauses()
    await thread.answer(pause?.id as string, { approved: true }, { by: 'ann' })
    const said = { type: 'answer', pause: pause?.id, value: { approved: true }, by: 'ann' }
    const [newest] = await thread.history({ limit: 1, events: true })
    expect(newest?.events).toEqual([said])
    await thread.run()
    const events = []
    for await (const event of thread.events()) if (event.type === 'answer') events.push(event)
    expect(events).toMatchObject([said])
    expect(await thread.answers()).toMatchObject([{ value: { approved: true }, by: 'ann' }])
  })
})

describe('a tombstone', () => {
  it('is dated by the clock of the store', async () => {
    await hf.thread(counter, 't').run({ input: {} })
    await clock.advance(5000)
    await hf.erase('t', { reason: 'asked for' })
    expect(await hf.tombstone('t')).toEqual({ at: clock.now(), reason: 'asked for' })
  })

  it('of an expired thread, too', async () => {
    await hf.thread(counter, 't', { retention: { ttlMs: 1000 } }).run({ input: {} })
    await clock.advance(2000)
    await hf.sweep()
    expect(await hf.tombstone('t')).toMatchObject({ at: clock.now() })
  })
})
