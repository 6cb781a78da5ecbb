import { flow, Holdfast, openHoldfast } from 'holdfast'
import { serveHealth } from 'holdfast/server'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { LogStore } from '#src/log/log-store.js'
import { afterEach, describe, expect, it } from 'vitest'
import { gate } from '../support/gate.js'

const toClose: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of toClose.splice(0).reverse()) await one.close()
})

async function served(hf: Holdfast, worker: Parameters<typeof serveHealth>[1]) {
  const health = await serveHealth(hf, worker, { host: '127.0.0.1', port: 0 })
  toClose.push(health)
  return async (path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${health.port}${path}`, init)
    const text = await response.text()
    return { status: response.status, text, body: text.startsWith('{') ? JSON.parse(text) : undefined }
  }
}

describe('the health of a worker', () => {
  it('tells what it runs, and stops being ready while it drains', async () => {
    const hf = await openHoldfast('memory:')
    toClose.push(hf)
    const begun = gate()
    const held = gate()
    const program = flow<number, string>({ name: 'report', version: '1.0.0' }, (ctx) =>
      ctx.step('hold', async () => {
        begun.open()
        await held.passed
        return 'done'
      }),
    )
    const other = flow({ name: 'other', version: '1.0.0' }, async () => 'never')
    await hf.thread(program, 't').enqueue(1)
    await hf.thread(other, 'o').enqueue(1)
    const worker = hf.worker({ programs: [program], concurrency: 1, name: 'w-1', handleSignals: false })
    const get = await served(hf, worker)
    await begun.passed
    await hf.thread(program, 'waits').enqueue(2)
    const runs = { name: 'w-1', programs: [{ name: 'report', version: '1.0.0' }], places: 1, busy: 1 }
    expect(await get('/live')).toMatchObject({ status: 200, body: { live: true, state: 'running', ...runs } })
    expect(await get('/ready')).toMatchObject({ status: 200, body: { ready: true, store: 'ok', ...runs } })
    // Of its own programs: what no worker here can run must not make more of them start.
    expect(await get('/queue')).toMatchObject({ status: 200, body: { due: 1, oldestSeconds: expect.any(Number) } })
    const { text } = await get('/metrics')
    for (const line of [
      'holdfast_worker_places 1',
      'holdfast_worker_busy 1',
      'holdfast_queue_due 1',
      'holdfast_runs_started_total 1',
      '# TYPE holdfast_queue_duration_milliseconds histogram',
      'holdfast_queue_duration_milliseconds_count 1',
      'holdfast_queue_duration_milliseconds_bucket{le="+Inf"} 1',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
    expect(text).toMatch(/^holdfast_queue_age_seconds \d/m)

    const stopped = worker.stop()
    expect(await get('/live')).toMatchObject({ status: 200, body: { live: true, state: 'draining', busy: 1 } })
    expect(await get('/ready')).toMatchObject({ status: 503, body: { ready: false, store: 'ok', state: 'draining' } })
    held.open()
    await stopped
    expect((await get('/metrics')).text.split('\n')).toContain('holdfast_worker_draining 1')
  })

  it('is not ready while the store is away, but alive, so that nobody restarts it', async () => {
    const driver = await openMemory()
    let isAway = true
    const away = new Proxy(driver, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (isAway && name !== 'close') return Promise.reject(new Error('away'))
          return (value as (...all: unknown[]) => unknown).apply(target, args)
        }
      },
    })
    const hf = new Holdfast(new LogStore(away))
    toClose.push(hf)
    const program = flow({ name: 'report', version: '1.0.0' }, async () => 'done')
    const get = await served(hf, hf.worker({ programs: [program], handleSignals: false }))
    expect(await get('/ready')).toMatchObject({ status: 503, body: { ready: false, store: 'unavailable' } })
    expect(await get('/live')).toMatchObject({ status: 200, body: { live: true } })
    expect(await get('/queue')).toMatchObject({ status: 503, body: { error: 'The store does not answer.' } })
    expect((await get('/metrics')).text).toMatch(/^holdfast_worker_busy 0$/m)
    isAway = false
  })

  it('is not alive once it is stuck, and answers nothing but what it is asked', async () => {
    const hf = await openHoldfast('memory:')
    toClose.push(hf)
    const status = { state: 'stuck', name: 'w', programs: [], places: 1, busy: 1 } as const
    const get = await served(hf, { status })
    expect(await get('/live')).toMatchObject({ status: 503, body: { live: false, state: 'stuck' } })
    expect(await get('/ready')).toMatchObject({ status: 503, body: { ready: false } })
    expect(await get('/toString')).toMatchObject({ status: 404 })
    expect(await get('/live', { method: 'POST' })).toMatchObject({ status: 405 })
    expect(await get('/live', { method: 'HEAD' })).toMatchObject({ status: 503, text: '' })
  })
})
