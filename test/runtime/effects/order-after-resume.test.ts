import { readFile } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { type Context, flow, type Holdfast, openHoldfast } from 'holdfast'
import { type VirtualClock, virtualClock } from 'holdfast/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { twoLives } from '../../support/two-lives.js'

const open: Holdfast[] = []
afterEach(async () => {
  for (const hf of open.splice(0)) await hf.close()
})

async function setUp(clock?: VirtualClock) {
  const hf = await openHoldfast('memory:', { telemetry: false, ...(clock ? { clock } : {}) })
  open.push(hf)
  return hf
}

const MINUTE = 60_000

class Gate {
  open = () => {}
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve
  })
}

function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Time enough for whatever needs no time to happen. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn()
}

/** An effect that is done: to do it again under another name would be wrong. */
const MAIL = { effect: 'idempotent' } as const

/** A flow with a charge beside other steps. Its first run does not come to the charge, but the rest is recorded. */
function chargesBeside(
  beside: (ctx: Context, calls: number) => Promise<unknown>,
  effect: 'idempotent' | 'once' = 'idempotent',
) {
  let calls = 0
  const world = { recorded: false, charged: 0 }
  const program = flow({ name: 'charging', version: '1.0.0' }, async (ctx) => {
    calls++
    const charge = async () => {
      if (calls === 1) await new Promise(() => {})
      return ctx.step('charge', { effect }, () => ++world.charged)
    }
    const others = async () => {
      await beside(ctx, calls)
      world.recorded = true
    }
    const [charged] = await Promise.all([charge(), others()])
    return charged
  })
  return { program, world }
}

/** Runs until the rest is recorded, and stops then. */
async function leave(
  thread: Runs,
  world: { readonly recorded: boolean },
  clock?: VirtualClock,
  ms = 500,
): Promise<void> {
  const stop = new AbortController()
  const left = thread.run({ input: 1, signal: stop.signal }).catch((error: unknown) => error)
  while (!world.recorded) {
    await turns()
    await clock?.advance(ms)
  }
  stop.abort()
  expect(await left).toMatchObject({ name: 'AbortError' })
}

interface Runs {
  run(options: { readonly input: unknown; readonly signal: AbortSignal }): Promise<unknown>
}

describe('an effect that waits for recorded effects', () => {
  it('waits on while something else of the program is under way', async () => {
    const clock = virtualClock()
    const hf = await setUp(clock)
    const gate = new Gate()
    const { program, world } = chargesBeside(async (ctx, calls) => {
      if (calls > 1) await gate.opened
      for (let i = 0; i < 3; i++) await ctx.sleep(500)
      await ctx.step('mail', MAIL, () => 1)
    })
    const thread = hf.thread(program, 't')
    await leave(thread, world, clock)
    const second = thread.run()
    await turns()
    gate.open()
    for (let i = 0; i < 4; i++) {
      await turns()
      await clock.advance(500)
    }
    expect(await second).toMatchObject({ status: 'completed', output: 1 })
  })

  it('waits on while code between steps goes on from one to the next', async () => {
    const clock = virtualClock()
    const hf = await setUp(clock)
    const { program, world } = chargesBeside(async (ctx) => {
      for (let i = 0; i < 6; i++) {
        await clock.sleep(300)
        await ctx.sleep(1)
      }
      await ctx.step('mail', MAIL, () => 1)
    })
    const thread = hf.thread(program, 't')
    await leave(thread, world, clock)
    const second = thread.run()
    for (let i = 0; i < 8; i++) {
      await turns()
      await clock.advance(300)
    }
    expect(await second).toMatchObject({ status: 'completed', output: 1 })
  })

  it('waits on while the process is too busy to read a file', async () => {
    const hf = await setUp()
    const { program, world } = chargesBeside(async (ctx, calls) => {
      await turns()
      const reading = readFile(import.meta.filename)
      if (calls > 1) block(1100)
      await reading
      await ctx.step('mail', MAIL, () => 1)
    })
    const thread = hf.thread(program, 't')
    await leave(thread, world)
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 1 })
  })

  it('does not wait when it was begun itself, so that others can take turns with it', async () => {
    const hf = await setUp()
    let runs = 0
    const charged: number[] = []
    const begun = new Gate()
    const program = flow({ name: 'taking turns', version: '1.0.0' }, async (ctx) => {
      const run = ++runs
      let turnOf: Promise<unknown> = Promise.resolve()
      const second = new Gate()
      const charge = async (key: number) => {
        // In the first run the second is the first to have looked.
        await ctx.step('look', { key }, () => (key === 1 ? second.opened : undefined))
        turnOf = turnOf.then(() =>
          ctx.step('charge', { key, effect: 'idempotent' }, ({ abortSignal: abort }) => {
            charged.push(key)
            if (key === 2) second.open()
            if (run > 1 || key === 2) return key
            begun.open()
            return new Promise((_, reject) => abort.addEventListener('abort', () => reject(abort.reason)))
          }),
        )
        await turnOf
      }
      await Promise.all([charge(1), charge(2)])
      return 'all'
    })
    const thread = hf.thread(program, 't')
    const stop = new AbortController()
    const first = thread.run({ input: 1, signal: stop.signal }).catch(() => {})
    await begun.opened
    stop.abort()
    await first
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'all' })
    expect(charged).toStrictEqual([2, 1, 1])
  })

  it.each(['before', 'after'])(
    'is parked with its run when a worker stops %s the program asks for more',
    async (when) => {
      const hf = await setUp()
      const gate = new Gate()
      const { program, world } = chargesBeside(async (ctx, calls) => {
        await turns()
        if (calls === 2) await gate.opened
        await ctx.step('mail', MAIL, () => 1)
      })
      const thread = hf.thread(program, 't')
      await leave(thread, world)
      const taken = new Gate()
      const worker = hf.worker({
        programs: [program],
        pollMs: 20,
        handleSignals: false,
        onEvent: ({ type }) => type === 'taken' && taken.open(),
      })
      await taken.opened
      await turns()
      const stopped = worker.stop()
      if (when === 'before') gate.open()
      await stopped
      expect((await hf.threads()).threads).toMatchObject([{ status: 'active', claimedBy: null }])
      gate.open()
      expect(await thread.run()).toMatchObject({ status: 'completed', output: 1 })
    },
  )

  it.each(['idempotent', 'once'] as const)('waits for as long as code between steps takes (%s)', async (effect) => {
    const clock = virtualClock()
    const hf = await setUp(clock)
    const { program, world } = chargesBeside(async (ctx) => {
      for (let i = 0; i < 3; i++) {
        await clock.sleep(9 * MINUTE)
        await ctx.step('mail', { ...MAIL, key: i }, () => 1)
      }
    }, effect)
    const thread = hf.thread(program, 't')
    await leave(thread, world, clock, MINUTE)
    const second = thread.run()
    await turns()
    for (let i = 0; i < 27; i++) {
      expect(world.charged).toBe(0)
      await clock.advance(MINUTE)
      await turns()
    }
    expect(await second).toMatchObject({ status: 'completed', output: 1 })
  })

  it('does not wait when it was under way beside what is recorded: its intent travels with the next record', async () => {
    const { clock, first, second, die } = await twoLives()
    const charged: string[] = []
    const mailed = new Gate()
    const program = flow({ name: 'beside', version: '1.0.0' }, async (ctx) => {
      const charge = ctx.step('charge', { effect: 'idempotent' }, ({ idempotencyKey }) =>
        charged.push(idempotencyKey) > 1 ? 'charged' : new Promise(() => {}),
      )
      await clock.sleep(2 * MINUTE)
      await ctx.step('mail', MAIL, () => 1)
      mailed.open()
      return charge
    })
    const dying = first.thread(program, 't').run({ input: 1 })
    dying.catch(() => {})
    await turns()
    await clock.advance(2 * MINUTE)
    await mailed.opened
    die()
    const resumed = (await second()).thread(program, 't').run()
    await turns()
    expect(charged).toStrictEqual([charged[0], charged[0]])
    await clock.advance(2 * MINUTE)
    expect(await resumed).toMatchObject({ status: 'completed', output: 'charged' })
  })

  it('does not wait for reads, which are not done again in another name', async () => {
    const clock = virtualClock()
    const hf = await setUp(clock)
    const { program, world } = chargesBeside(async (ctx) => {
      await clock.sleep(2 * MINUTE)
      await ctx.step('look', () => 1)
    })
    const thread = hf.thread(program, 't')
    await leave(thread, world, clock, MINUTE)
    const second = thread.run()
    await turns()
    expect(world.charged).toBe(1)
    await clock.advance(2 * MINUTE)
    expect(await second).toMatchObject({ status: 'completed', output: 1 })
  })

  it('ends the run as failed, not as incompatible, when nothing is heard of the program for very long', async () => {
    const clock = virtualClock()
    const hf = await setUp(clock)
    const program = (name: string, beats: boolean) =>
      flow({ name: 'renamed', version: '1.0.0' }, async (ctx) => {
        await clock.sleep(1)
        const charge = ctx.step(name, MAIL, () => name)
        if (beats) {
          await clock.sleep(9 * MINUTE)
          await ctx.heartbeat()
        }
        await charge
        if (name === 'charge') throw new Error('later')
        return name
      })
    const thread = (name: string, beats = false) => hf.thread(program(name, beats), 't')
    const begun = thread('charge').run({ input: 1 })
    await clock.advance(1)
    expect(await begun).toMatchObject({ status: 'failed' })
    for (const beats of [false, true]) {
      let over = false
      const renamed = thread('charge card', beats).run()
      void renamed.finally(() => {
        over = true
      })
      await clock.advance(9 * MINUTE)
      expect(over).toBe(false)
      await clock.advance(2 * MINUTE)
      expect(over).toBe(!beats)
      await clock.advance(9 * MINUTE)
      expect(await renamed).toMatchObject({ status: 'failed', error: { code: 'timeout' }, canResume: true })
    }
  })
})

describe('a program that is another one by now', () => {
  type Way = (step: (name: string, effect?: 'idempotent') => Promise<unknown>) => Promise<unknown>
  const effect = 'idempotent'

  const before: Way = async (step) => {
    await step('look')
    await step('charge', effect)
    await Promise.all([step('mail', effect), step('log')])
  }
  const ways: Readonly<Record<string, Way>> = {
    'a renamed effect': async (step) => {
      await step('look')
      await step('charge card', effect)
    },
    'a renamed effect beside others': async (step) => {
      await step('look')
      await step('charge', effect)
      await Promise.all([step('send mail', effect), step('log')])
    },
    'another effect before it': async (step) => {
      await step('look')
      await step('reserve', effect)
      await step('charge', effect)
    },
    'a read before it, and a new name': async (step) => {
      await step('look')
      await step('check')
      await step('charge card', effect)
    },
    'a renamed read before it': async (step) => {
      await step('look around')
      await step('charge', effect)
      await step('refund', effect)
    },
    'a removed read before it': async (step) => {
      await step('charge', effect)
      await step('refund', effect)
    },
  }

  it.each(Object.entries(ways))('is found out at once, and starts no effect: %s', async (name, now) => {
    const clock = virtualClock()
    const hf = await setUp(clock)
    const done: string[] = []
    const program = (way: Way, fails: boolean) =>
      flow({ name: 'changing', version: '1.0.0' }, async (ctx) => {
        await way((name, kind) => ctx.step(name, { effect: kind ?? 'read' }, () => void (kind && done.push(name))))
        if (fails) throw new Error('later')
      })
    expect(await hf.thread(program(before, true), 't').run({ input: 1 })).toMatchObject({ status: 'failed' })
    // No time passes.
    expect(await hf.thread(program(now, false), 't').run()).toMatchObject({ status: 'incompatible' })
    expect(done).toStrictEqual(['charge', 'mail'])
    // A read of another name is recorded, too, and then the original does not fit any more either.
    const status = name.includes('a read before') || name.includes('renamed read') ? 'incompatible' : 'completed'
    expect(await hf.thread(program(before, false), 't').run()).toMatchObject({ status })
    expect(done).toStrictEqual(['charge', 'mail'])
  })
})
