import { flow, Holdfast } from 'holdfast'
import type { Driver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { readMessage, writeMessages } from '#src/log/news/messages.js'
import { MESSAGE_BYTES } from '#src/log/contract.js'
import { logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import { describe, expect, it } from 'vitest'
import { until } from '../support/until.js'

const echo = flow<string, string>({ name: 'echo', version: '1.0.0' }, async (_, input) => input)

/** Two processes, so to speak, on one store, whose clock stands still; what the second asks of the store is counted. */
async function twoProcesses() {
  const clock = virtualClock()
  const store = createMemoryStore({ clock })
  const calls: string[] = []
  const published: string[] = []
  const counted = (driver: Driver, names: string[]) =>
    new Proxy(driver, {
      get(target, name: keyof Driver) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          names.push(name)
          if (name === 'publish') published.push(args[0] as string)
          return (value as (...args: unknown[]) => unknown).apply(target, args)
        }
      },
    })
  const open = async (names: string[]) =>
    new Holdfast(new LogStore(counted(await openMemory({ clock, store }), names), { clock }))
  return { clock, writer: await open([]), waiter: await open(calls), calls, published }
}

/** Lets go of everything that is due by now. */
const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
}

describe('news', () => {
  it('wake who waits without a look at the clock, and spare the store while nothing happens', async () => {
    const { clock, writer, waiter, calls } = await twoProcesses()
    const waiting = waiter.thread(echo, 't').waitFor()
    // Until it hears of everything it looks by itself, more and more seldom.
    for (let i = 0; i < 20; i++) {
      await clock.advance(500)
      await turns()
    }
    calls.length = 0
    await clock.advance(30_000)
    await turns()
    expect(calls.filter((name) => name !== 'positions')).toEqual([])
    await writer.thread(echo, 't').run({ input: 'hello' })
    expect(await waiting).toMatchObject({ status: 'completed', output: 'hello' })
  })

  it('are published only on topics that somebody listens to', async () => {
    const { writer, waiter, published } = await twoProcesses()
    await writer.thread(echo, 'before').enqueue('x')
    await turns()
    expect(published).toEqual([])
    const worker = waiter.worker({ programs: [echo], pollMs: 3_600_000, handleSignals: false })
    await writer.thread(echo, 'after').enqueue('y')
    await turns()
    expect(published).toEqual(['due'])
    await worker.stop()
  })

  it('bring what is due to a worker at once, and pass over other programs and tenants', async () => {
    const { writer, waiter, calls } = await twoProcesses()
    const other = flow({ name: 'other', version: '1.0.0' }, async () => 'other')
    const taken: string[] = []
    const worker = waiter.tenant('ours').worker({
      programs: [echo],
      pollMs: 3_600_000,
      handleSignals: false,
      onEvent: (event) => event.type === 'ended' && taken.push(event.log),
    })
    await turns()
    calls.length = 0
    await writer
      .tenant('ours')
      .thread(other, 'a')
      .enqueue(1 as never)
    await writer.tenant('theirs').thread(echo, 'b').enqueue('b')
    await turns()
    expect(calls).toEqual([])
    await writer.tenant('ours').thread(echo, 'c').enqueue('c')
    await until(() => taken.length > 0)
    expect(taken).toEqual(['thread "c" of tenant "ours"'])
    await worker.stop()
  })

  it('of a release without an entry reach a worker', async () => {
    const { writer, waiter } = await twoProcesses()
    const taken: string[] = []
    const log = await writer.log('t')
    await writer.thread(echo, 't').enqueue('x')
    await log.refresh()
    const claim = await log.claim({ owner: 'slow', ms: 3_600_000 })
    const worker = waiter.worker({
      programs: [echo],
      pollMs: 3_600_000,
      handleSignals: false,
      onEvent: (event) => event.type === 'ended' && taken.push(event.log),
    })
    await turns()
    expect(taken).toEqual([])
    await claim.release()
    await until(() => taken.length > 0)
    await worker.stop()
  })

  it('that name more than there is keep nobody awake', async () => {
    const { writer } = await twoProcesses()
    await writer.thread(echo, 't').run({ input: 'x' })
    const follower = (await writer.log('t')).follow()
    follower.told(1_000_000)
    await follower.rest(20)
    let isOver = false
    const rested = follower.rest(20).finally(() => {
      isOver = true
    })
    await turns()
    expect(isOver).toBe(false)
    follower.close()
    await rested
  })
})

describe('messages', () => {
  const news = (thread: string, seq = 1) => ({ log: logKey(newTenant(), thread), seq, wakeAt: 0, program: 'p 🦀 "x"' })

  it('hold as much as fits, and come back as they were', () => {
    const all = Array.from({ length: 500 }, (_, i) => news(`thread ${i} ${'é'.repeat(100)}`, i))
    const messages = writeMessages(all)
    expect(messages.length).toBeGreaterThan(10)
    for (const message of messages) expect(Buffer.byteLength(message)).toBeLessThanOrEqual(MESSAGE_BYTES)
    expect(messages.flatMap(readMessage)).toEqual(all)
  })

  it('that are none of ours say nothing', () => {
    const good = news('t')
    const [ours = ''] = writeMessages([good])
    for (const bad of ['', 'hello', '{}', 'null', '[1]', '[["t","x","main",1.5,0,"p"]]', '[["t",2,"main",1,0,"p"]]']) {
      expect(readMessage(bad)).toEqual([])
    }
    expect(readMessage(`[7,${ours.slice(1)}`)).toEqual([good])
  })
})
