import { END, flow, graph, type Holdfast, last, openHoldfast, START } from 'holdfast'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let clock: VirtualClock
let hf: Holdfast

beforeEach(async () => {
  clock = virtualClock()
  hf = await openHoldfast('memory:', { clock })
})

afterEach(() => hf.close())

const ask = flow({ name: 'ask', version: '1.0.0' }, async (ctx, input: { expiresIn?: number }) =>
  ctx.pause<string>('well?', input.expiresIn ? { expiresInMs: input.expiresIn, onExpire: { answer: 'default' } } : {}),
)

async function openAll(limit: number, query: object = {}) {
  const pages = []
  for (let cursor: string | undefined; ; ) {
    const page = await hf.pauses({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) })
    pages.push(page.pauses)
    cursor = page.cursor
    if (cursor === undefined) return pages
  }
}

describe('the list of open questions', () => {
  it('pages over all threads and branches, each once, also of runs that failed while they asked', async () => {
    const torn = graph({ name: 'torn', version: '1.0.0', state: { said: last<string>() }, retry: { attempts: 1 } })
      .node('asks', async (_, ctx) => ({ said: await ctx.pause<string>('and?') }))
      .node('fails', () => {
        throw new Error('broken')
      })
      .edge(START, 'asks')
      .edge(START, 'fails')
      .edge('asks', END)
      .edge('fails', END)
    for (let i = 0; i < 5; i++) await hf.thread(ask, `a${i}`).run({ input: {} })
    const outcome = await hf.thread(torn, 'torn').run({ input: {} })
    expect(outcome).toMatchObject({ status: 'failed', pauses: [{ question: 'and?' }] })
    const fork = await hf
      .inspect('a0')
      .look((await hf.inspect('a0').history())[0].id)
      .fork({ name: 'other' })
    expect(fork.branch).toBe('other')
    const all = ['a0/main', 'a0/other', 'a1/main', 'a2/main', 'a3/main', 'a4/main', 'torn/main']
    for (const limit of [1, 2, 3, 6, 7, 100]) {
      const pages = await openAll(limit)
      expect(
        pages
          .flat()
          .map(({ thread, branch }) => `${thread}/${branch}`)
          .sort(),
      ).toEqual(all)
      expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(limit)
    }
    expect((await openAll(2, { thread: 'a1' })).flat()).toMatchObject([{ thread: 'a1', question: 'well?' }])
    await expect(hf.pauses({ cursor: 'x' })).rejects.toMatchObject({
      code: 'invalid-option',
      data: { field: 'cursor' },
    })
  })

  it('leaves out what was answered, and holds tenants apart', async () => {
    await hf.thread(ask, 't').run({ input: {} })
    await hf.tenant('other').thread(ask, 'u').run({ input: {} })
    const { pauses } = await hf.pauses()
    expect(pauses).toMatchObject([{ thread: 't' }])
    await hf.inspect('t').answer(pauses[0].id, 'yes')
    expect(await hf.pauses()).toEqual({ pauses: [], unreadable: [] })
    expect((await hf.tenant('other').pauses()).pauses).toMatchObject([{ thread: 'u' }])
  })
})

describe('many at once', () => {
  it('are answered each by itself, and resumed', async () => {
    for (let i = 0; i < 40; i++) await hf.thread(ask, `t${i}`).run({ input: {} })
    const { pauses } = await hf.pauses({ limit: 100 })
    await hf.inspect('t3').answer(pauses.find(({ thread }) => thread === 't3')?.id ?? '', 'before', { by: 'ann' })
    const answers = pauses.map(({ thread, branch, id }) => ({ thread, branch, pause: id, value: `for ${thread}` }))
    const told = await hf.answer([...answers, { thread: 'none', pause: 'p', value: 1 }], { by: 'bob' })
    expect(told.map(({ pause }) => pause)).toEqual([...answers.map(({ pause }) => pause), 'p'])
    const refused = told.flatMap(({ error }) => (error === undefined ? [] : [error as { code: string; data: object }]))
    expect(refused.map(({ code }) => code)).toEqual(['pause-closed', 'not-found'])
    expect(refused[0].data).toMatchObject({ by: 'ann' })
    const ended = await hf.resume(ask, { status: 'active' }, { concurrency: 8 })
    expect(ended).toHaveLength(40)
    for (const { thread, outcome, error } of ended) {
      expect(error).toBeUndefined()
      expect(outcome).toMatchObject({ status: 'completed', output: thread === 't3' ? 'before' : `for ${thread}` })
    }
  })
})

describe('the listener of a bulk resume', () => {
  beforeEach(async () => {
    for (let i = 0; i < 5; i++) await hf.thread(ask, `t${i}`).run({ input: {} })
    const { pauses } = await hf.pauses()
    await hf.answer(pauses.map(({ thread, branch, id }) => ({ thread, branch, pause: id, value: 'yes' })))
  })

  it.each([
    ['throws', (thread: unknown) => thread === 't2' && fail()],
    ['rejects', async (thread: unknown) => thread === 't2' && fail()],
  ])('that %s loses no run, and what it threw is told beside the run that it was told of', async (_, listen) => {
    const told: unknown[] = []
    const onRun = ({ thread }: { thread: unknown }, total: number) => {
      told.push(thread)
      expect(total).toBe(5)
      return listen(thread) as unknown as void
    }
    const ended = await hf.resume(ask, { status: 'active' }, { concurrency: 2, onRun })
    expect(told.toSorted()).toEqual(['t0', 't1', 't2', 't3', 't4'])
    expect(ended.map(({ outcome }) => outcome?.status)).toEqual(Array(5).fill('completed'))
    expect(ended.filter((run) => 'listenerError' in run)).toMatchObject([
      { thread: 't2', listenerError: { message: 'the listener broke' } },
    ])
  })

  it.each([0, -1, 1.5, Number.NaN])(
    'is never called with %s threads at once, which is refused',
    async (concurrency) => {
      await expect(hf.resume(ask, {}, { concurrency })).rejects.toMatchObject({
        code: 'invalid-option',
        data: { field: 'concurrency' },
      })
      expect((await hf.threads({ status: 'active' })).threads).toHaveLength(5)
    },
  )
})

function fail(): never {
  throw new Error('the listener broke')
}

describe('a question that is put off', () => {
  it('stays open beyond its expiry, says who did it, and can be left out of lists', async () => {
    const thread = hf.thread(ask, 't')
    await thread.run({ input: { expiresIn: 1000 } })
    const [{ id }] = await thread.pauses()
    const until = new Date(clock.now() + 10_000)
    const at = new Date(clock.now())
    await hf.inspect('t').defer(id, { until, by: 'ann' })
    expect(await thread.pauses()).toMatchObject([{ id, expiresAt: until, deferred: { until, at, by: 'ann' } }])
    expect((await hf.threads()).threads).toMatchObject([{ status: 'waiting_human', wakeAt: until }])
    expect((await hf.pauses({ deferred: false })).pauses).toEqual([])
    expect((await hf.pauses()).pauses).toHaveLength(1)
    const worker = hf.worker({ programs: [ask], handleSignals: false, pollMs: 100 })
    await clock.advance(9000)
    expect(await thread.run()).toMatchObject({ status: 'paused', pauses: [{ id }] })
    await clock.advance(1500)
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'default' })
    await worker.stop()
  })

  it('takes an answer at any time, and comes back into lists when its time has come', async () => {
    const thread = hf.thread(ask, 't')
    await thread.run({ input: {} })
    const [{ id }] = await thread.pauses()
    await thread.defer(id, { until: new Date(clock.now() + 500) })
    expect((await thread.pauses())[0]).not.toHaveProperty('expiresAt')
    await clock.advance(500)
    expect((await hf.pauses({ deferred: false })).pauses).toMatchObject([{ id }])
    await thread.defer(id, { until: new Date(clock.now() + 500) })
    await thread.answer(id, 'yes')
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'yes' })
    const events = []
    for await (const event of thread.events())
      if (event.type === 'defer' || event.type === 'answer') events.push(event.type)
    expect(events).toEqual(['defer', 'defer', 'answer'])
  })

  it('must be open, and the time must be to come; otherwise nothing is written', async () => {
    const thread = hf.thread(ask, 't')
    await thread.run({ input: { expiresIn: 1000 } })
    const [{ id }] = await thread.pauses()
    const size = async () => (await (await hf.log('t')).history({ limit: 100 })).length
    const before = await size()
    const later = new Date(clock.now() + 5000)
    for (const until of [new Date(clock.now()), new Date(Number.NaN), 5 as never]) {
      await expect(thread.defer(id, { until })).rejects.toMatchObject({
        code: 'invalid-option',
        data: { field: 'until' },
      })
    }
    await expect(thread.defer('p-none', { until: later })).rejects.toMatchObject({ code: 'not-found' })
    expect(await size()).toBe(before)
    await clock.advance(1000)
    await expect(thread.defer(id, { until: later })).rejects.toMatchObject({ data: { reason: 'expired' } })
    expect(await size()).toBe(before)
    const other = hf.thread(ask, 'u')
    await other.run({ input: {} })
    const [open] = await other.pauses()
    await other.answer(open.id, 'yes', { by: 'bob' })
    await expect(other.defer(open.id, { until: later })).rejects.toMatchObject({
      data: { reason: 'answered', by: 'bob' },
    })
  })

  it('does not hold up an answer to another question of the thread', async () => {
    const two = flow({ name: 'two', version: '1.0.0' }, (ctx) =>
      Promise.all([ctx.pause('a', { expiresInMs: 1000 }), ctx.pause('b')]),
    )
    const thread = hf.thread(two, 't')
    await thread.run({ input: {} })
    const [a, b] = await thread.pauses()
    await thread.answer(b.id, 'b')
    await thread.defer(a.id, { until: new Date(clock.now() + 5000) })
    expect((await hf.threads()).threads[0].wakeAt).toEqual(new Date(clock.now()))
  })
})

describe('a run', () => {
  it.each(['busy', 'onPaused', 'onCorrupt', 'expect'])('refuses a value of %s that it does not know', async (field) => {
    const thread = hf.thread(ask, 't')
    await expect(thread.run({ input: {}, [field]: 'maybe' as never })).rejects.toMatchObject({
      code: 'invalid-option',
      data: { field },
    })
    expect((await hf.threads()).threads).toEqual([])
  })
})
