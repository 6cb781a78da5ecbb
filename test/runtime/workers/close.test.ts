import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { flow, Holdfast, openHoldfast, type WorkerEvent } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { gate } from '../../support/gate.js'

describe('closing a store while a worker runs', () => {
  it('stops the worker first: steps end and are recorded, threads are let go of, and nothing is polled any more', async () => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    // Closing the store must not take the data with it.
    const kept = new Proxy(driver, {
      get: (target, name) => (name === 'close' ? async () => {} : Reflect.get(target, name, target)),
    })
    const started = gate()
    const finish = gate()
    const work = flow({ name: 'work', version: '1.0.0' }, async (ctx) => {
      await ctx.step('first', async () => {
        started.open()
        await finish.passed
        return 1
      })
      await ctx.step('second', () => 2)
    })
    const hf = new Holdfast(new LogStore(kept, { clock }))
    await hf.thread(work, 't').enqueue(null)
    const events: WorkerEvent[] = []
    const worker = hf.worker({ programs: [work], handleSignals: false, onEvent: (event) => events.push(event) })
    await started.passed
    const closing = Promise.all([hf.close(), hf.close()])
    finish.open()
    await closing
    await hf.close()
    await worker.done()
    await clock.advance(60_000)
    expect(events.map(({ type }) => type).filter((type) => type !== 'event')).toEqual(['taken', 'stopped'])

    await using after = new Holdfast(new LogStore(driver, { clock }))
    expect((await after.threads()).threads).toMatchObject([{ thread: 't', status: 'active', claimedBy: null }])
    const history = await after.inspect('t').history({ all: true })
    expect(history.map(({ kind }) => kind)).toContain('park')
    expect(await after.thread(work, 't').run()).toMatchObject({ status: 'completed' })
  })

  it('stops the workers of every tenant, and refuses new ones', async () => {
    const hf = await openHoldfast('memory:')
    const idle = flow({ name: 'idle', version: '1.0.0' }, async () => null)
    const worker = hf.tenant('acme').worker({ programs: [idle], handleSignals: false })
    await hf.close()
    await worker.done()
    expect(() => hf.worker({ programs: [idle], handleSignals: false })).toThrow(/closed/)
  })

  it('lets the process exit', async () => {
    const script = `
      import { flow, openHoldfast } from 'holdfast'
      const hf = await openHoldfast('memory:')
      const idle = flow({ name: 'idle', version: '1.0.0' }, async () => null)
      hf.worker({ programs: [idle], pollMs: 10, onEvent: (event) => console.log(event.type) })
      await hf.close()
    `
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
    expect(stdout).toBe('')
  })
})

it('runs more than ten threads at once without a warning of leaked listeners', async () => {
  await using hf = await openHoldfast('memory:')
  const everybody = gate()
  let running = 0
  const wait = flow({ name: 'wait', version: '1.0.0' }, (ctx) =>
    ctx.step('wait', async () => {
      if (++running === 25) everybody.open()
      await everybody.passed
    }),
  )
  for (let i = 0; i < 25; i++) await hf.thread(wait, `t-${i}`).enqueue(null)
  const warnings: Error[] = []
  const warn = (warning: Error) => warnings.push(warning)
  process.on('warning', warn)
  try {
    const worker = hf.worker({ programs: [wait], concurrency: 25, pollMs: 5 })
    await everybody.passed
    // Warnings are told a tick later.
    await new Promise(setImmediate)
    await worker.stop()
  } finally {
    process.off('warning', warn)
  }
  expect(warnings).toEqual([])
})
