import { append, END, flow, graph, type Holdfast, NotExecutedError, openHoldfast, START, type Context } from 'holdfast'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let clock: VirtualClock
let hf: Holdfast
let broken: Set<string>
let ran: string[]

beforeEach(async () => {
  clock = virtualClock()
  hf = await openHoldfast('memory:', { clock })
  broken = new Set(['a', 'b'])
  ran = []
})

afterEach(() => hf.close())

/** Lets the time pass that a program takes. */
async function drive<Result>(running: Promise<Result>): Promise<Result> {
  let over = false
  const mark = () => {
    over = true
  }
  running.then(mark, mark)
  while (!over) await clock.advance(100)
  return running
}

const once = { retry: { attempts: 1 } }

/** A step that fails while it is broken. */
function step(ctx: Context, name: string, options: object = {}): Promise<string> {
  return ctx.step(name, { ...once, ...options }, () => {
    ran.push(name)
    if (broken.has(name)) throw new NotExecutedError(`${name} is broken`)
    return name
  })
}

type Body = (ctx: Context) => Promise<unknown>

/** Ways in which the failure of a step reaches the end of a program, or is lost on the way. */
const ways: Readonly<Record<string, Body>> = {
  'as it is': (ctx) => step(ctx, 'a'),
  'wrapped with its cause': (ctx) =>
    step(ctx, 'a').catch((cause) => {
      throw new Error('wrapped', { cause })
    }),
  'wrapped without its cause': (ctx) =>
    step(ctx, 'a').catch(() => {
      throw new Error('wrapped')
    }),
  'as a field of another error': (ctx) =>
    step(ctx, 'a').catch((original) => {
      throw Object.assign(new Error('wrapped'), { original })
    }),
  'as a string': (ctx) => step(ctx, 'a').catch((error) => Promise.reject(`failed: ${error.message}`)),
  'as nothing': (ctx) => step(ctx, 'a').catch(() => Promise.reject(undefined)),
  'as one of an AggregateError': (ctx) => Promise.any([step(ctx, 'a'), step(ctx, 'b')]),
  'from Promise.all': (ctx) => Promise.all([step(ctx, 'a'), step(ctx, 'b'), step(ctx, 'c')]),
  'from Promise.allSettled': async (ctx) => {
    const settled = await Promise.allSettled([step(ctx, 'a'), step(ctx, 'b'), step(ctx, 'c')])
    if (settled.some(({ status }) => status === 'rejected')) throw new Error('some failed')
  },
  'from Promise.allSettled, beside a branch that went on': async (ctx) => {
    const long = async () => {
      for (const name of ['c', 'd', 'e']) await step(ctx, name, { effect: name === 'e' ? 'once' : 'read' })
    }
    const settled = await Promise.allSettled([step(ctx, 'a'), long(), step(ctx, 'b')])
    if (settled.some(({ status }) => status === 'rejected')) throw new Error('some failed')
  },
}

const bodies = Object.entries(ways).flatMap(([way, body]) =>
  (['read', 'once'] as const).map((effect) => [way, effect, body] as const),
)

describe.each([['a flow'], ['a node of a graph']])('a failed run of %s is resumed when its cause is mended', (kind) => {
  const program = (body: Body) =>
    kind === 'a flow'
      ? flow({ name: 'p', version: '1.0.0' }, async (ctx) => void (await body(ctx)))
      : graph({ name: 'p', version: '1.0.0', retry: { attempts: 1 }, state: { log: append<string>() } })
          .node('n', async (_, ctx) => void (await body(ctx)))
          .edge(START, 'n')
          .edge('n', END)

  it.each(bodies)('whose error came %s (%s)', async (_, effect, body) => {
    const declared = (ctx: Context): Context =>
      new Proxy(ctx, {
        get: (target, name) =>
          name === 'step'
            ? (key: string, options: object, work: never) => target.step(key, { effect, ...options }, work)
            : Reflect.get(target, name),
      })
    const thread = hf.thread(program((ctx) => body(declared(ctx))) as never, 't')
    expect(await drive(thread.run({ input: {} as never }))).toMatchObject({ status: 'failed', canResume: true })
    // Still broken: it fails as before, and nothing else runs again.
    expect(await drive(thread.run())).toMatchObject({ status: 'failed', canResume: true })
    broken.clear()
    for (let i = 0; i < 2 && (await drive(thread.run())).status !== 'completed'; i++);
    expect(await drive(thread.run())).toMatchObject({ status: 'completed' })
    const times = (name: string) => ran.filter((one) => one === name).length
    expect(times('a')).toBeGreaterThan(1)
    for (const name of ['c', 'd', 'e']) expect(times(name)).toBeLessThan(2)
  })
})

describe('a failure that the program went on from stays decided when a later one is resumed', () => {
  let bug = true
  beforeEach(() => {
    bug = true
  })

  const cases: Readonly<Record<string, Body>> = {
    'with a fallback after it': async (ctx) => {
      const got = await step(ctx, 'a', { effect: 'once' }).catch(() => step(ctx, 'fallback', { effect: 'once' }))
      if (bug) throw new Error('a bug')
      return got
    },
    'with a report of all that failed': async (ctx) => {
      const settled = await Promise.allSettled([step(ctx, 'a', { effect: 'once' }), step(ctx, 'c')])
      await step(ctx, 'fallback', { effect: 'once', input: settled.map(({ status }) => status) })
      if (bug) throw new Error('a bug')
      return settled.map(({ status }) => status)
    },
    'with a fallback in its branch, beside another': async (ctx) => {
      const settled = await Promise.all([
        step(ctx, 'a').catch(() => step(ctx, 'fallback', { effect: 'once' })),
        step(ctx, 'c').then(() => step(ctx, 'd')),
      ])
      if (bug) throw new Error('a bug')
      return settled
    },
  }

  it.each(Object.entries(cases))('%s', async (_, body) => {
    const thread = hf.thread(
      flow({ name: 'p', version: '1.0.0' }, (ctx) => body(ctx)),
      't',
    )
    expect(await drive(thread.run({ input: 1 }))).toMatchObject({ status: 'failed', error: { message: 'a bug' } })
    // What failed would succeed now. The program has decided without it.
    broken.clear()
    expect(await drive(thread.run())).toMatchObject({ status: 'failed', error: { message: 'a bug' } })
    bug = false
    expect(await drive(thread.run())).toMatchObject({ status: 'completed' })
    expect(ran.filter((name) => name === 'a')).toHaveLength(1)
    expect(ran.filter((name) => name === 'fallback')).toHaveLength(1)
  })

  it.each(['read', 'once'] as const)(
    'with a fallback in one branch, while another failed for good (%s)',
    async (effect) => {
      let linked = false
      const thread = hf.thread(
        flow({ name: 'p', version: '1.0.0' }, async (ctx) => {
          const settled = await Promise.allSettled([
            step(ctx, 'a', { effect }),
            step(ctx, 'b', { effect }).catch(() => step(ctx, 'fallback', { effect: 'once' })),
          ])
          const errors = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
          if (errors.length > 0) throw linked ? new AggregateError(errors) : new Error('some failed')
          return 'done'
        }),
        't',
      )
      expect(await drive(thread.run({ input: 1 }))).toMatchObject({ status: 'failed' })
      broken.clear()
      const resume = async () => {
        for (let i = 0; i < 2 && (await drive(thread.run())).status !== 'completed'; i++);
        return drive(thread.run())
      }
      // Which of the two the fallback came from is found out by trying, one way each time. Effects are not tried so.
      if (effect === 'once') expect(await resume()).toMatchObject({ status: 'failed' })
      linked = true
      expect(await resume()).toMatchObject({ status: 'completed', output: 'done' })
      expect(ran.filter((name) => name === 'b')).toHaveLength(1)
      expect(ran.filter((name) => name === 'fallback')).toHaveLength(1)
      expect(ran.filter((name) => name === 'a')).toHaveLength(2)
    },
  )

  it('with a fallback for several, one of which would succeed now: it is an effect that nobody wants any more', async () => {
    const thread = hf.thread(
      flow({ name: 'p', version: '1.0.0' }, async (ctx) => {
        const pay = Promise.all([step(ctx, 'a', { effect: 'once' }), step(ctx, 'b', { effect: 'once' })])
        await pay.catch(() => step(ctx, 'fallback', { effect: 'once' }))
        const settled = await Promise.allSettled([step(ctx, 'c', { effect: 'once' }), step(ctx, 'd')])
        if (settled.some(({ status }) => status === 'rejected')) throw new Error('some failed')
        return 'done'
      }),
      't',
    )
    broken.add('c')
    expect(await drive(thread.run({ input: 1 }))).toMatchObject({ status: 'failed' })
    broken.clear()
    expect(await drive(thread.run())).toMatchObject({ status: 'completed', output: 'done' })
    expect(ran.toSorted()).toEqual(['a', 'b', 'c', 'c', 'd', 'fallback'])
  })
})

describe('a step that failed beside a branch that does other things for long', () => {
  const orders: readonly (readonly string[])[] = [
    ['busy', 'failing'],
    ['failing', 'busy'],
  ]
  const kinds = orders.flatMap((order) =>
    (['read', 'once'] as const).map((effect) => [order.join(', '), effect] as const),
  )

  it.each(kinds)('is tried again however long that takes (%s: %s)', async (order, effect) => {
    let release = () => {}
    const parts: Record<string, Body> = {
      failing: (ctx) => step(ctx, 'a', { effect }),
      busy: async (ctx) => {
        await new Promise<void>((resolve) => {
          release = resolve
        })
        await step(ctx, 'c', { effect: 'once' })
      },
    }
    const thread = hf.thread(
      flow({ name: 'p', version: '1.0.0' }, async (ctx) => {
        const settled = await Promise.allSettled(order.split(', ').map((name) => parts[name]?.(ctx)))
        if (settled.some(({ status }) => status === 'rejected')) throw new Error('some failed')
        return 'done'
      }),
      't',
    )
    const resume = async (options: object) => {
      const running = thread.run({ leaseMs: 600_000, ...options } as never)
      // Whatever it is that gives up by the clock, or after some turns of the event loop, has done so by then.
      await clock.advance(120_000)
      for (let turns = 0; turns < 100; turns++) await new Promise((resolve) => setImmediate(resolve))
      release()
      return drive(running)
    }
    expect(await resume({ input: 1 })).toMatchObject({ status: 'failed', error: { message: 'some failed' } })
    broken.clear()
    // Where the branch began behind the step that failed, it may have gone on from that: both is tried, in turn.
    let outcome = await resume({})
    for (let i = 0; i < 2 && outcome.status !== 'completed'; i++) outcome = await resume({})
    expect(outcome).toMatchObject({ status: 'completed', output: 'done' })
    expect(ran.toSorted()).toEqual(['a', 'a', 'c'])
  })

  it.each(['read', 'once'] as const)(
    'stays failed where that branch is what the program did about it (%s)',
    async (effect) => {
      let bug = true
      const thread = hf.thread(
        flow({ name: 'p', version: '1.0.0' }, async (ctx) => {
          await Promise.all([
            step(ctx, 'a', { effect }).catch(async () => {
              await clock.sleep(5000)
              await step(ctx, 'fallback', { effect: 'once' })
            }),
            step(ctx, 'c').then(() => step(ctx, 'd')),
          ])
          if (bug) throw new Error('a bug')
          return 'done'
        }),
        't',
      )
      expect(await drive(thread.run({ input: 1 }))).toMatchObject({ status: 'failed', error: { message: 'a bug' } })
      broken.clear()
      expect(await drive(thread.run())).toMatchObject({ status: 'failed', error: { message: 'a bug' } })
      bug = false
      expect(await drive(thread.run())).toMatchObject({ status: 'completed', output: 'done' })
      expect(ran.toSorted()).toEqual(['a', 'c', 'd', 'fallback'])
    },
  )
})

describe('a question that nobody answered in time', () => {
  it('is asked anew when the run is resumed, however its failure reached the end', async () => {
    const thread = hf.thread(
      flow({ name: 'p', version: '1.0.0' }, (ctx) =>
        ctx.pause('well?', { expiresInMs: 1000 }).catch(() => {
          throw new Error('nobody answered')
        }),
      ),
      't',
    )
    expect(await thread.run({ input: 1 })).toMatchObject({ status: 'paused' })
    await clock.advance(1001)
    expect(await thread.run()).toMatchObject({ status: 'failed' })
    expect(await thread.run()).toMatchObject({ status: 'paused', pauses: [{ question: 'well?' }] })
  })
})
