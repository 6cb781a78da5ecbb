import { readFile } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { type Context, flow, type Holdfast, openHoldfast } from 'holdfast'
import { type VirtualClock, virtualClock } from 'holdfast/testing'
import { afterEach, describe, expect, it } from 'vitest'

const open: Holdfast[] = []
afterEach(async () => {
  for (const hf of open.splice(0)) await hf.close()
})

async function setUp(clock?: VirtualClock) {
  const hf = await openHoldfast('memory:', { telemetry: false, ...(clock ? { clock } : {}) })
  open.push(hf)
  return hf
}

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

/** A flow with a charge beside other steps. Its first run does not come to the charge, but the rest is recorded. */
function chargesBeside(beside: (ctx: Context, calls: number) => Promise<unknown>) {
  let calls = 0
  const world = { recorded: false, charged: 0 }
  const program = flow({ name: 'charging', version: '1.0.0' }, async (ctx) => {
    calls++
    const charge = async () => {
      if (calls === 1) await new Promise(() => {})
      return ctx.step('charge', { effect: 'idempotent' }, () => ++world.charged)
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
async function leave(thread: Runs, world: { readonly recorded: boolean }, clock?: VirtualClock): Promise<void> {
  const stop = new AbortController()
  const left = thread.run({ input: 1, signal: stop.signal }).catch((error: unknown) => error)
  while (!world.recorded) {
    await turns()
    await clock?.advance(500)
  }
  stop.abort()
  expect(await left).toMatchObject({ name: 'AbortError' })
}

interface Runs {
  run(options: { readonly input: unknown; readonly signal: AbortSignal }): Promise<unknown>
}

describe('an effect that waits for recorded steps', () => {
  it('waits on while something else of the program is under way', async () => {
    const clock = virtualClock()
    const hf = await setUp(clock)
    const gate = new Gate()
    const { program, world } = chargesBeside(async (ctx, calls) => {
      if (calls > 1) await gate.opened
      for (let i = 0; i < 3; i++) await ctx.sleep(500)
      await ctx.step('look', () => 1)
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
      await ctx.step('look', () => 1)
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
      await ctx.step('look', () => 1)
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
          ctx.step('charge', { key, effect: 'idempotent' }, ({ abort }) => {
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
        if (calls === 2) await gate.opened
        await ctx.step('look', () => 1)
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
})
