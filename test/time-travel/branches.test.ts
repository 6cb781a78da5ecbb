import { append, END, flow, graph, last, reduced, START } from 'holdfast'
import { beforeAll, expect, it } from 'vitest'
import type { Holdfast } from 'holdfast'
import { onEveryBackend } from '../support/every-backend.js'

/** Counts to `goal`, a step for each number, and writes down what it saw. */
const counter = graph({
  name: 'counter',
  version: '1.0.0',
  state: {
    messages: append<string>(),
    goal: last<number>(undefined, { initial: 0 }),
    total: reduced(undefined, (old: number, more: number) => old + more, { initial: 0 }),
  },
})
  .node('count', ({ messages }) => ({ messages: `step ${messages.length}`, total: 1 }))
  .edge(START, 'count')
  .branch('count', ({ total, goal }) => (total < goal ? 'count' : END), ['count', END])

let threads = 0
const fresh = (): string => `thread-${threads++}`

await onEveryBackend('time travel', (open) => {
  let hf: Holdfast
  beforeAll(async () => {
    hf = await open()
  })

  const ran = async (goal = 3) => {
    const thread = hf.thread(counter, fresh())
    await thread.run({ input: { goal, messages: 'begin' } })
    return thread
  }

  it('lists checkpoints newest first, in pages', async () => {
    const thread = await ran(5)
    const all = await thread.history()
    expect(all.map(({ kind }) => kind)).toStrictEqual(['step', 'step', 'step', 'step', 'step', 'input'])
    expect(all.map(({ seq }) => seq)).toStrictEqual([5, 4, 3, 2, 1, 0])
    const pages = []
    for (let before: string | undefined; ; ) {
      const page = await thread.history({ limit: 2, ...(before === undefined ? {} : { before }) })
      if (page.length === 0) break
      pages.push(page)
      before = page.at(-1)?.id
    }
    expect(pages.flat()).toStrictEqual(all)
    expect(pages).toHaveLength(3)
    expect(await hf.inspect(fresh()).history()).toStrictEqual([])
  })

  it('shows the state, the facts and the differences of any checkpoint', async () => {
    const thread = await ran(3)
    const past = (await thread.history()).toReversed()
    const totals = await Promise.all(past.map(async ({ id }) => (await thread.at(id).state()).total))
    expect(totals).toStrictEqual([0, 1, 2, 3])
    const [, first, second, third] = past.map(({ id }) => id) as [string, string, string, string]
    const difference = await thread.at(first).diff(third)
    expect(difference).toHaveLength(3)
    expect(new Set(difference)).toStrictEqual(
      new Set([
        { path: '$.total', keys: ['total'], before: 1, after: 3 },
        { path: '$.messages[2]', keys: ['messages', 2], after: 'step 2' },
        { path: '$.messages[3]', keys: ['messages', 3], after: 'step 3' },
      ]),
    )
    expect(await thread.at(second).diff(thread.at(second))).toStrictEqual([])
    expect(await thread.at(second).facts()).toMatchObject({
      id: second,
      status: 'active',
      program: 'counter',
      version: '1.0.0',
      stateVersion: 1,
      run: { status: 'running', count: 2 },
      pauses: [],
      state: { goal: 3, total: 2 },
    })
    const view = hf.inspect(thread.id).look(second)
    expect(await view.state()).toStrictEqual(await thread.at(second).state())
    expect((await view.facts()).run?.id).toBe((await thread.at(third).facts()).run?.id)
  })

  it('shows an edit on the fork and not on its parent', async () => {
    const thread = await ran(3)
    const before = { state: await thread.state(), history: await thread.history() }
    const at = before.history[1]?.id as string
    const set = await thread.at(at).fork({ set: { messages: ['edited'], goal: 4 }, name: 'set' })
    const update = await thread.at(at).fork({ update: { messages: 'added', total: 10 }, name: 'update' })
    expect(await set.state()).toStrictEqual({ goal: 4, messages: ['edited'], total: 2 })
    expect(await update.state()).toStrictEqual({ goal: 3, messages: ['begin', 'step 1', 'step 2', 'added'], total: 12 })
    expect(await set.run()).toMatchObject({
      status: 'completed',
      branch: 'set',
      state: { messages: ['edited', 'step 1', 'step 2'], total: 4 },
    })
    expect(await update.run()).toMatchObject({
      status: 'completed',
      state: { messages: ['begin', 'step 1', 'step 2', 'added', 'step 4'], total: 13 },
    })
    expect(await thread.state()).toStrictEqual(before.state)
    expect(await thread.history()).toStrictEqual(before.history)
  })

  it('runs from a checkpoint on a branch of its own, and takes new input there', async () => {
    const thread = await ran(2)
    const at = (await thread.history()).at(-2)?.id as string
    const outcome = await thread.at(at).run({ set: { goal: 3 }, name: 'more' })
    expect(outcome).toMatchObject({ status: 'completed', branch: 'more', state: { total: 3 } })
    const unnamed = await thread.at(at).run()
    expect(unnamed).toMatchObject({ status: 'completed', state: { total: 2 } })
    expect(unnamed.branch).toMatch(/^fork-/)
    const again = await hf.thread(counter, thread.id, { branch: 'more' }).run({ input: { goal: 5 } })
    expect(again).toMatchObject({ status: 'completed', state: { total: 5 } })
    expect((await thread.state())?.total).toBe(2)
  })

  it('keeps the messages of branches that run at the same time apart', async () => {
    const thread = hf.thread(counter, fresh())
    await thread.run({ input: { goal: 2, messages: 'begin' } })
    const at = (await thread.history())[1]?.id as string
    const forks = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => thread.at(at).fork({ name, update: { messages: name }, set: { goal: 8 } })),
    )
    const outcomes = await Promise.all([...forks.map((fork) => fork.run()), thread.run({ input: { goal: 6 } })])
    const own = (name: string, from: number, to: number) => [
      'begin',
      'step 1',
      name,
      ...Array.from({ length: to - from }, (_, i) => `step ${from + i}`),
    ]
    for (const [i, name] of ['a', 'b', 'c', 'd'].entries()) {
      expect(outcomes[i]).toMatchObject({ status: 'completed', branch: name, state: { messages: own(name, 3, 10) } })
    }
    expect(outcomes[4]?.state.messages).toStrictEqual(['begin', ...[1, 2, 3, 4, 5, 6].map((n) => `step ${n}`)])
  })

  it('forks a fork of a fork, five deep, and shows the tree', async () => {
    const thread = await ran(2)
    let current = thread
    for (let depth = 1; depth <= 5; depth++) {
      const at = (await current.history())[0]?.id as string
      current = await current.at(at).fork({ name: `depth-${depth}`, update: { messages: `edit ${depth}` } })
      await current.run({ input: { goal: 2 + depth } })
    }
    const expected = ['begin', 'step 1', 'step 2']
    for (let depth = 1; depth <= 5; depth++) {
      expected.push(`edit ${depth}`, `step ${expected.length + 1}`)
      const fork = hf.thread(counter, thread.id, { branch: `depth-${depth}` })
      expect((await fork.state())?.messages).toStrictEqual(expected)
    }
    expect((await thread.state())?.messages).toStrictEqual(['begin', 'step 1', 'step 2'])

    const roots = await thread.branches()
    expect(roots).toHaveLength(1)
    let node = roots[0]
    expect(node).toMatchObject({ name: 'main', status: 'completed' })
    expect(node).not.toHaveProperty('from')
    for (let depth = 1; depth <= 5; depth++) {
      const parent = node
      expect(parent?.forks).toHaveLength(1)
      node = parent?.forks[0]
      expect(node).toMatchObject({ name: `depth-${depth}`, from: { branch: parent?.name, checkpoint: parent?.head } })
      expect(node?.createdAt.getTime()).toBeGreaterThanOrEqual(parent?.createdAt.getTime() as number)
    }
    expect(node?.forks).toStrictEqual([])
    expect(node?.head).toBe((await current.history())[0]?.id)
  })

  it('compares branches: how they differ and where they parted', async () => {
    const thread = await ran(3)
    const past = await thread.history()
    const one = await thread.at(past[1]?.id as string).fork({ name: 'one', set: { goal: 7 } })
    const two = await thread.at(past[2]?.id as string).fork({ name: 'two', set: { goal: 9 } })
    const deep = await one.at((await one.history())[0]?.id as string).fork({ name: 'deep' })
    expect(await thread.compare('main', 'one')).toMatchObject({
      common: past[1]?.id,
      branches: [
        { name: 'main', head: past[0]?.id, status: 'completed', since: 1 },
        { name: 'one', status: 'forked', since: 1 },
      ],
    })
    const sides = await thread.compare('one', 'two')
    expect(sides.common).toBe(past[2]?.id)
    expect(sides.state.find(({ path }) => path === '$.goal')).toMatchObject({ before: 7, after: 9 })
    expect(sides.branches.map(({ since }) => since)).toStrictEqual([2, 1])
    const through = await two.compare('deep', 'main')
    expect(through.common).toBe(past[1]?.id)
    expect(through.branches.map(({ since }) => since)).toStrictEqual([2, 1])
    expect(await thread.compare('one', 'one')).toMatchObject({ state: [], branches: [{ since: 0 }, { since: 0 }] })
    expect((await deep.compare('deep', 'one')).common).toBe((await one.history())[0]?.id)
    await expect(thread.compare('main', 'nowhere')).rejects.toMatchObject({
      code: 'not-found',
      data: { branch: 'nowhere' },
    })
  })

  it('forks a thread while it runs, and both go on', async () => {
    let release: () => void = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    let waits = true
    const program = flow({ name: 'slow', version: '1.0.0' }, async (ctx) => {
      const a = await ctx.step('a', () => ctx.branch)
      const b = await ctx.step('b', async () => {
        if (ctx.branch === 'main' && waits) await gate
        return ctx.branch
      })
      return [a, b]
    })
    const thread = hf.thread(program, fresh())
    const running = thread.run({ input: 1 })
    let past = await thread.history()
    while (past[0]?.kind !== 'step') past = await thread.history()
    expect(await thread.at(past[0].id).run({ name: 'beside' })).toMatchObject({ output: ['main', 'beside'] })
    waits = false
    release()
    expect(await running).toMatchObject({ status: 'completed', output: ['main', 'main'] })
  })

  it('refuses to fork what was pruned, and keeps forks of it', async () => {
    const thread = await ran(2)
    const past = await thread.history()
    const old = past.at(-1)?.id as string
    const fork = await thread.at(past[1]?.id as string).fork({ name: 'kept' })
    const log = await hf.log(thread.id)
    const claim = await log.claim({ owner: 'test', ms: 1000 })
    await claim.release(() => [{ kind: 'step', keyframe: true }])
    expect((await hf.prune(thread.id, log.fold.seq)).removed).toBeGreaterThan(0)
    const refused = { code: 'not-found', message: expect.stringMatching(/was pruned; the oldest kept is \d+/) }
    await expect(thread.at(old).fork({ name: 'gone' })).rejects.toMatchObject(refused)
    await expect(thread.at(old).run({ name: 'gone' })).rejects.toMatchObject(refused)
    await expect(thread.at(old).state()).rejects.toMatchObject(refused)
    expect((await thread.branches()).flatMap(({ forks }) => forks.map(({ name }) => name))).toStrictEqual(['kept'])
    expect(await fork.run()).toMatchObject({ status: 'completed', state: { total: 2 } })
  })

  it('refuses bad input and writes nothing', async () => {
    const thread = await ran(2)
    const other = await ran(3)
    const past = await thread.history()
    const at = past[0]?.id as string
    const before = { branches: await thread.branches(), history: past }
    const refuses = (fork: Promise<unknown>, code: string) => expect(fork).rejects.toMatchObject({ code })
    const elsewhere = (await other.history())[0]?.id as string
    expect(() => thread.at('nonsense')).toThrow(expect.objectContaining({ code: 'invalid-id' }))
    await refuses(thread.at(elsewhere).fork(), 'not-found')
    await refuses(thread.at(at.replace(/.$/, (c) => (c === '0' ? '1' : '0'))).fork(), 'not-found')
    await refuses(hf.thread(counter, fresh()).at(at).fork(), 'not-found')
    await refuses(hf.tenant('another').thread(counter, thread.id).at(at).state(), 'not-found')
    await refuses(thread.at(at).fork({ name: 'main' }), 'conflict')
    await refuses(thread.at(at).fork({ name: '' }), 'invalid-id')
    await refuses(thread.at(at).fork({ set: { undeclared: 1 } as never }), 'invalid-option')
    await refuses(thread.at(at).fork({ set: { messages: 'no list' as never } }), 'invalid-value')
    await refuses(thread.at(at).fork({ set: { goal: (() => 1) as never } }), 'invalid-value')
    await refuses(thread.at(at).fork({ update: { undeclared: 1 } as never }), 'invalid-value')
    await refuses(thread.at(at).fork({ update: 'no object' as never }), 'invalid-value')
    await refuses(thread.at(at).fork({ effects: 'maybe' as never }), 'invalid-option')
    await refuses(thread.at(at).fork({ reads: 'maybe' as never }), 'invalid-option')
    await refuses(
      hf
        .inspect(thread.id)
        .look(at)
        .fork({ update: {} } as never),
      'invalid-option',
    )
    await refuses(
      hf
        .thread(
          flow({ name: 'counter', version: '1.0.0' }, () => 1),
          thread.id,
        )
        .at(at)
        .fork({ set: { goal: 1 } }),
      'invalid-option',
    )
    await refuses(thread.history({ limit: 0 }), 'invalid-option')
    await refuses(thread.history({ before: 'nonsense' }), 'invalid-id')
    const fork = await thread.at(at).fork({ name: 'fork' })
    await refuses(thread.at(at).fork({ name: 'fork' }), 'conflict')
    await refuses(fork.history({ before: at }), 'not-found')
    expect(await thread.history()).toStrictEqual(before.history)
    expect((await thread.branches())[0]?.forks).toMatchObject([{ name: 'fork', forks: [] }])
  })

  it('makes one of two forks of the same name at the same time', async () => {
    const thread = await ran(2)
    const at = (await thread.history())[1]?.id as string
    const made = await Promise.allSettled(
      [1, 2, 3, 4].map((goal) => thread.at(at).fork({ name: 'same', set: { goal } })),
    )
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const fork of made) if (fork.status === 'rejected') expect(fork.reason).toMatchObject({ code: 'conflict' })
    const winner = made.findIndex(({ status }) => status === 'fulfilled') + 1
    expect((await hf.thread(counter, thread.id, { branch: 'same' }).state())?.goal).toBe(winner)
  })

  it('answers an input that was taken before the fork as it was answered then', async () => {
    const thread = hf.thread(counter, fresh())
    await thread.run({ input: { goal: 1 }, key: 'one' })
    await thread.run({ input: { goal: 4 }, key: 'four' })
    const at = (await thread.history())[0]?.id as string
    const fork = await thread.at(at).fork({ name: 'keys' })
    const deeper = await fork.at((await fork.history())[0]?.id as string).fork({ name: 'deeper' })
    for (const branch of [thread, fork, deeper]) {
      expect(await branch.run({ input: { goal: 1 }, key: 'one' })).toMatchObject({
        status: 'completed',
        state: { total: 1 },
      })
    }
    expect(await fork.run({ input: { goal: 6 }, key: 'six' })).toMatchObject({ state: { total: 6 } })
    expect(await fork.run({ input: { goal: 6 }, key: 'six' })).toMatchObject({ state: { total: 6 } })
    expect(await deeper.run({ input: { goal: 6 }, key: 'six' })).toMatchObject({ state: { total: 6 } })
  })
})
