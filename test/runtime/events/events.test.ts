import { append, END, flow, graph, Holdfast, openHoldfast, type RunEvent, START } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { entryEvents } from '#src/runtime/events/events.js'

let hf: Holdfast

beforeEach(async () => {
  hf = await openHoldfast('memory:')
})

afterEach(() => hf.close())

async function all(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const found = []
  for await (const event of events) found.push(event)
  return found
}

const LIVE = new Set(['retry', 'custom', 'token', 'superseded'])
const isRecorded = ({ type }: RunEvent) => !LIVE.has(type)

/** Siblings, retries, things said on the way, a question, and what comes after it. */
function busy() {
  let failures = 1
  return graph({ name: 'busy', version: '1.0.0', retry: { initialMs: 1 }, state: { log: append<string>() } })
    .node('a', (_, ctx) => {
      ctx.emit({ at: 'a' })
      return { log: 'a' }
    })
    .node('b', async (_, ctx) => {
      if (failures-- > 0) throw new Error('once')
      return { log: await ctx.step('inner', () => 'b') }
    })
    .node('ask', async (_, ctx) => ({ log: [await ctx.pause<string>({ really: true })] }))
    .node('c', () => ({ log: 'c' }))
    .edge(START, 'a')
    .edge(START, 'b')
    .edge(['a', 'b'], 'ask')
    .edge('ask', 'c')
    .edge('c', END)
}

describe('the events of a run', () => {
  it('are told without reading back what the run itself wrote', async () => {
    const driver = await openDriver('memory:')
    const reads: string[] = []
    const noted = <Name extends 'head' | 'read' | 'tail'>(name: Name): Pick<Driver, Name> =>
      ({
        [name]: (...args: unknown[]) => {
          reads.push(name)
          return (driver[name] as (...given: unknown[]) => unknown)(...args)
        },
      }) as never
    const watched = new Holdfast(new LogStore({ ...driver, ...noted('head'), ...noted('read'), ...noted('tail') }))
    const echo = flow({ name: 'echo', version: '1.0.0' }, (ctx, said: string) => ctx.step('say', () => said))
    const events = []
    for (const said of ['one', 'two', 'three']) {
      reads.length = 0
      events.push(...(await all(watched.thread(echo, 't').stream({ input: said }))))
    }
    expect(reads).toEqual(['read'])
    expect(events.filter(isRecorded)).toEqual(await all(watched.thread(echo, 't').events()))
    await watched.close()
  })

  it('have their types, and lead up to the state', async () => {
    const thread = hf.thread(busy(), 't')
    const first = thread.stream({ input: {} })
    const events = await all(first)
    const [{ id }] = await thread.pauses()
    await thread.answer(id, 'yes', { by: 'ann' })
    events.push(...(await all(thread.stream())))
    const of = (type: string) => events.filter((event) => event.type === type)
    expect(of('run')).toMatchObject([
      { status: 'started' },
      { status: 'paused' },
      { status: 'resumed' },
      { status: 'completed' },
    ])
    const ended = of('step').filter((event) => event.type === 'step' && event.status === 'completed')
    expect(ended.map((event) => (event as { step: string }).step).sort()).toEqual([
      '0:a',
      '0:b',
      '0:b/inner',
      '1:ask',
      '2:c',
    ])
    expect(of('custom')).toMatchObject([{ step: '0:a', value: { at: 'a' } }])
    expect(of('retry')).toMatchObject([{ step: '0:b', attempt: 1, error: { message: 'once' } }])
    expect(of('pause')).toMatchObject([{ pause: id, kind: 'question', question: { really: true } }])
    const checkpoints = of('checkpoint')
    expect(checkpoints.map((event) => event.id)).toEqual(
      checkpoints.map((event) => (event as { checkpoint: string }).checkpoint),
    )
    // The changes of the state, one after the other, are the state.
    const log: unknown[] = []
    for (const event of of('state')) {
      if (event.type !== 'state') continue
      for (const [op, path, ...values] of event.ops as unknown as [string, string[], unknown][]) {
        expect(path).toEqual(['log'])
        if (op === 'push') log.push(...(values[0] as unknown[]))
        else log.splice(0, log.length, ...(values[0] as unknown[]))
      }
    }
    expect(log).toEqual((await thread.state())?.log)
  })

  it('are the same as they happen and when they are read later, also those that others caused', async () => {
    let passed = (): void => {}
    const gate = new Promise<void>((resolve) => {
      passed = resolve
    })
    const program = flow({ name: 'two', version: '1.0.0' }, async (ctx) => {
      const answers = Promise.all([ctx.pause('one'), ctx.pause('two')])
      await ctx.step('slow', () => gate)
      await ctx.step('after', () => 1)
      return answers
    })
    const thread = hf.thread(program, 't')
    const stream = thread.stream({ input: {} })
    const live: RunEvent[] = []
    const reading = (async () => {
      for await (const event of stream) live.push(event)
    })()
    // Both questions are recorded with the first step that is; a signal in between is another entry of a guest.
    await until(
      async () =>
        (
          await hf
            .inspect('t')
            .history()
            .catch(() => [])
        ).length > 0,
    )
    await thread.signal('noise')
    await thread.signal('noise')
    passed()
    await reading
    const [one, two] = await thread.pauses()
    await thread.answer(one.id, 1, { by: 'ann' })
    await thread.answer(two.id, 2)
    // Two answers lie between what the stream before told and what this run begins with: they belong to no run's stream.
    const between = live.length
    for await (const event of thread.stream()) live.push(event)
    const recorded = await all(thread.events())
    const told = live.filter(isRecorded)
    const answers = recorded.filter(({ type }) => type === 'answer')
    expect(answers).toMatchObject([{ pause: one.id, by: 'ann' }, { pause: two.id }])
    const gapIds = new Set(recorded.map(({ id }) => id).filter((id) => !told.some((event) => event.id === id)))
    // Nothing is missing within a stream: all that is not told are the two answers' entries, between the streams.
    expect(gapIds.size).toBe(4)
    expect(recorded.filter(({ id }) => !gapIds.has(id))).toEqual(told)
    expect(between).toBeGreaterThan(5)
  })

  it('can be taken up after any of them, and nothing is missing or told twice', async () => {
    const thread = hf.thread(busy(), 't')
    await thread.run({ input: {} })
    const [{ id }] = await thread.pauses()
    await thread.answer(id, 'yes')
    await thread.run()
    const events = await all(thread.events())
    expect(new Set(events.map((event) => event.id)).size).toBe(events.length)
    for (const [i, event] of events.entries()) {
      expect(await all(hf.inspect('t').events({ after: event.id }))).toEqual(events.slice(i + 1))
    }
    // Live events carry a place too.
    const live = await all(thread.stream({ input: { log: 'more' } }))
    expect(live.every((event) => event.id !== '')).toBe(true)
  })

  it('of another past are refused', async () => {
    const thread = hf.thread(busy(), 't')
    await thread.run({ input: {} })
    const [first] = await all(thread.events())
    await hf.erase('t')
    await thread.run({ input: { log: 'other' } })
    await expect(all(thread.events({ after: first.id }))).rejects.toMatchObject({ code: 'not-found' })
    await expect(all(thread.events({ after: 'nonsense' }))).rejects.toMatchObject({ code: 'invalid-id' })
  })
})

describe('who stops to read', () => {
  it('does not stop the run, and who aborts does', async () => {
    let steps = 0
    let goOn = () => {}
    let gate = Promise.resolve()
    const shut = () => {
      gate = new Promise((resolve) => (goOn = resolve))
    }
    // After its first step it waits for the reader to have left.
    const program = flow({ name: 'long', version: '1.0.0' }, async (ctx) => {
      for (let i = 0; i < 20; i++) {
        await ctx.step('s', { key: i }, () => ++steps)
        await gate
      }
      return steps
    })
    shut()
    const stream = hf.thread(program, 't').stream({ input: {} })
    for await (const event of stream) if (event.type === 'step') break
    expect(steps).toBe(1)
    goOn()
    expect(await stream.outcome).toMatchObject({ status: 'completed', output: 20 })

    shut()
    const other = hf.thread(program, 'u').stream({ input: {} })
    for await (const event of other) {
      if (event.type !== 'step') continue
      other.abort()
      break
    }
    await expect(other.outcome).rejects.toMatchObject({ name: 'AbortError' })
    goOn()
    expect(await hf.thread(program, 'u').run()).toMatchObject({ status: 'completed' })
  })

  it('can stop to follow a thread that rests nowhere', async () => {
    const stop = new AbortController()
    const program = flow({ name: 'short', version: '1.0.0' }, (ctx) => ctx.step('s', () => 1))
    await hf.thread(program, 't').run({ input: {} })
    const types: string[] = []
    const following = (async () => {
      for await (const event of hf.inspect('t').events({ untilRest: false, signal: stop.signal }))
        types.push(event.type)
    })()
    await until(async () => types.includes('step'))
    await hf.thread(program, 't').run({ input: { again: true } })
    await until(async () => types.filter((type) => type === 'step').length === 2)
    stop.abort()
    await expect(following).rejects.toMatchObject({ name: 'AbortError' })
  })
})

async function until(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe('a reader whose next events are pruned before it reads them', () => {
  const chat = graph({ name: 'chat', version: '1.0.0', state: { said: append<string>() } })
    .node('reply', ({ said }) => ({ said: `reply ${said.length}` }))
    .edge(START, 'reply')
    .edge('reply', END)

  /** Runs the thread on, and takes away everything before a new keyframe. */
  async function goOnAndPrune(): Promise<number> {
    for (const said of ['two', 'three']) await hf.thread(chat, 't').run({ input: { said } })
    const log = await hf.log('t')
    const claim = await log.claim({ owner: 'test', ms: 1000 })
    await claim.release(() => [{ kind: 'step', keyframe: true }])
    await hf.prune('t', log.fold.seq)
    await hf.thread(chat, 't').run({ input: { said: 'four' } })
    return log.firstKept()
  }

  it.each([
    ['has read half of what there was', 1],
    ['has read all there was', 6],
  ])('hears that they are gone when it %s', async (_, count) => {
    await hf.thread(chat, 't').run({ input: { said: 'one' } })
    const reader = hf.thread(chat, 't').events({ untilRest: false })
    for (let i = 0; i < count; i++) await reader.next()
    const oldest = await goOnAndPrune()
    const rest = all(reader)
    await expect(rest).rejects.toMatchObject({
      code: 'not-found',
      data: { oldest },
      message: expect.stringContaining('pruned'),
    })
  })

  it('goes on where what it has not read is kept', async () => {
    await hf.thread(chat, 't').run({ input: { said: 'one' } })
    await goOnAndPrune()
    const events = await all(hf.thread(chat, 't').events())
    const middle = events[Math.floor(events.length / 2)]
    await goOnAndPrune().catch(() => {})
    await expect(all(hf.thread(chat, 't').events({ after: middle.id }))).rejects.toMatchObject({ code: 'not-found' })
    const [first, ...rest] = await all(hf.thread(chat, 't').events())
    expect(await all(hf.thread(chat, 't').events({ after: first.id }))).toEqual(rest)
  })
})

describe('an entry that refers to what it wrote itself', () => {
  it('is shown with what each reference stood for at its place', () => {
    const before = { state: { items: ['a'] }, steps: { one: { items: ['b'] } } }
    const ops = [
      ['concat', ['state', 'items'], ['steps', 'one', 'items']],
      ['set', ['steps', 'one', 'items'], ['c']],
      ['concat', ['state', 'items'], ['steps', 'one', 'items']],
      ['copy', ['state', 'all'], ['state', 'items']],
      ['push', ['state', 'items'], ['d']],
    ] as const
    const [state] = entryEvents({ id: 'main:1:0', seq: 1 }, { ops }, before)
    expect(state).toMatchObject({
      type: 'state',
      ops: [
        ['push', ['items'], ['b']],
        ['push', ['items'], ['c']],
        ['set', ['all'], ['a', 'b', 'c']],
        ['push', ['items'], ['d']],
      ],
    })
  })
})
