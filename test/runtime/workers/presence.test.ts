import { flow, Holdfast, openHoldfast } from 'holdfast'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { LogStore } from '#src/log/log-store.js'
import { workerSigns } from '#src/holdfast/worker-store.js'
import { virtualClock } from 'holdfast/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { gate } from '../../support/gate.js'

const MINUTE = 60_000
const open: Holdfast[] = []
afterEach(async () => {
  for (const hf of open.splice(0)) await hf.close()
})

async function openAt(clock = virtualClock()) {
  const hf = await openHoldfast('memory:', { clock })
  open.push(hf)
  return { hf, clock }
}

describe('workers of a store', () => {
  it('are listed with what they run, and not any more once they have stopped', async () => {
    const { hf, clock } = await openAt()
    const held = gate()
    const begun = gate()
    const program = flow({ name: 'report', version: '2.1.0' }, (ctx) =>
      ctx.step('hold', async () => {
        begun.open()
        await held.passed
      }),
    )
    const since = new Date(clock.now())
    const worker = hf.worker({ programs: [program], concurrency: 7, name: 'w-1', handleSignals: false })
    expect(await hf.workers()).toEqual([])
    await clock.advance(1000)
    const [one, ...others] = await hf.workers()
    expect(others).toEqual([])
    expect(one).toMatchObject({
      name: 'w-1',
      pid: process.pid,
      programs: [{ name: 'report', version: '2.1.0' }],
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      places: 7,
      busy: 0,
      state: 'running',
      since,
      seen: new Date(clock.now()),
    })
    await hf.thread(program, 't').enqueue(1)
    const taken = clock.advance(5 * MINUTE)
    await begun.passed
    await taken
    // Whichever tenant is looked at: a worker serves all of them.
    expect(await hf.tenant('acme').workers()).toMatchObject([{ id: one?.id, busy: 1, state: 'running' }])
    const stopped = worker.stop()
    await clock.advance(0)
    expect(await hf.workers()).toMatchObject([{ state: 'draining', busy: 1 }])
    held.open()
    await stopped
    expect(await hf.workers()).toEqual([])
  })

  it('count as dead when several signs of life are missing, and are forgotten after an hour', async () => {
    const clock = virtualClock()
    const store = new LogStore(await openMemory({ clock }), { clock })
    const hf = new Holdfast(store)
    open.push(hf)
    const sign = {
      name: 'w-2',
      host: 'host-2',
      pid: 2,
      programs: [{ name: 'report', version: '1.0.0' }],
      places: 10,
      busy: 3,
      draining: false,
      since: clock.now(),
      at: clock.now(),
      everyMs: 30_000,
    }
    await workerSigns(store).put('id-2', sign)
    await clock.advance(90_000)
    expect(await hf.workers()).toMatchObject([{ id: 'id-2', state: 'running' }])
    await clock.advance(1)
    expect(await hf.workers()).toMatchObject([{ id: 'id-2', state: 'dead', busy: 3, seen: new Date(sign.at) }])
    await clock.advance(60 * MINUTE)
    expect(await hf.workers()).toEqual([])
  })

  it('write little while they have nothing to do, and go on when the store refuses it', async () => {
    const clock = virtualClock()
    const driver = await openMemory({ clock })
    let calls = 0
    let refuses = false
    const counted = new Proxy(driver, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (name === 'writeItems' || name === 'takeDue') calls++
          if (name === 'writeItems' && refuses) return Promise.reject(new Error('no'))
          return (value as (...all: unknown[]) => unknown).apply(target, args)
        }
      },
    })
    const hf = new Holdfast(new LogStore(counted, { clock }), undefined, undefined, { listsWorkers: true })
    open.push(hf)
    const program = flow({ name: 'report', version: '1.0.0' }, async () => 'done')
    const worker = hf.worker({ programs: [program], pollMs: 5000, handleSignals: false })
    await clock.advance(10 * MINUTE)
    expect(calls / 600).toBeLessThan(0.3)
    refuses = true
    await clock.advance(MINUTE)
    expect(await hf.workers()).toMatchObject([{ state: 'running' }])
    await hf.thread(program, 't').enqueue(1)
    await clock.advance(MINUTE)
    expect(await hf.thread(program, 't').waitFor()).toMatchObject({ status: 'completed' })
    refuses = false
    await worker.stop()
    expect(await hf.workers()).toEqual([])
  })

  it('are stuck when a look for work never ends', async () => {
    const clock = virtualClock()
    const driver = await openMemory({ clock })
    const answer = gate<Awaited<ReturnType<NonNullable<typeof driver.takeDue>>>>()
    const hanging = new Proxy(driver, {
      get: (target, name) => (name === 'takeDue' ? () => answer.passed : Reflect.get(target, name)),
    })
    const hf = new Holdfast(new LogStore(hanging, { clock }))
    open.push(hf)
    const program = flow({ name: 'report', version: '1.0.0' }, async () => 'done')
    const worker = hf.worker({ programs: [program], handleSignals: false })
    await clock.advance(5 * MINUTE)
    expect(worker.status.state).toBe('running')
    await clock.advance(1)
    expect(worker.status.state).toBe('stuck')
    answer.open({ heads: [], more: false, nextMs: null })
    await clock.advance(20 * MINUTE)
    expect(worker.status.state).toBe('running')
  })

  it('say nothing of themselves without telemetry', async () => {
    const clock = virtualClock()
    const hf = await openHoldfast('memory:', { clock, telemetry: false })
    open.push(hf)
    const program = flow({ name: 'report', version: '1.0.0' }, async () => 'done')
    hf.worker({ programs: [program], handleSignals: false })
    await clock.advance(MINUTE)
    expect(await hf.workers()).toEqual([])
    expect(hf.counted).toBeUndefined()
  })
})
