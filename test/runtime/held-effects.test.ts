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

/** A flow with a charge beside other steps. Its first run ends while the charge is under way and the rest is recorded. */
function chargesBeside(beside: (ctx: Context, calls: number) => Promise<unknown>) {
  let calls = 0
  const world = { recorded: false, charged: [] as string[] }
  const program = flow({ name: 'charging', version: '1.0.0' }, async (ctx) => {
    calls++
    const charge = ctx.step('charge', { effect: 'idempotent' }, ({ idempotencyKey, abort }) => {
      world.charged.push(idempotencyKey)
      if (calls > 1) return 'charged'
      return new Promise((_, reject) => abort.addEventListener('abort', () => reject(abort.reason)))
    })
    const others = async () => {
      await beside(ctx, calls)
      world.recorded = true
    }
    const [said] = await Promise.all([charge, others()])
    return said
  })
  return { program, world }
}

/** Runs until the charge is under way and the rest recorded, and stops then. */
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
    expect(await second).toMatchObject({ status: 'completed', output: 'charged' })
    expect(world.charged).toStrictEqual([world.charged[0], world.charged[0]])
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
    expect(await second).toMatchObject({ status: 'completed', output: 'charged' })
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
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'charged' })
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
      expect(await thread.run()).toMatchObject({ status: 'completed', output: 'charged' })
    },
  )
})
