import { flow, Holdfast, type WorkerEvent } from 'holdfast'
import { type Append, type Driver, openDriver } from 'holdfast/driver'
import { StorageError, UnavailableError } from 'holdfast/errors'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/until.js'

const MINUTE = 60_000
/** How long a claim holds by default. */
const LEASE_MS = 10_000
const RECOVERY_MS = 2000

/** A store of which single calls can be made to fail or to wait. */
async function openFragile() {
  const clock = virtualClock()
  const inner = await openDriver('memory:', { clock })
  const faults: { [Name in keyof Driver]?: Driver[Name] } = {}
  const driver: Driver = new Proxy(inner, {
    get: (target, name: keyof Driver) => faults[name] ?? Reflect.get(target, name, target),
  })
  const open = () => new Holdfast(new LogStore(driver, { clock }))
  const events: WorkerEvent[] = []
  const work = (hf: Holdfast, program: Parameters<Holdfast['worker']>[0]['programs'][number]) =>
    hf.worker({ programs: [program], handleSignals: false, onEvent: (event) => events.push(event) })
  return { clock, inner, faults, open, events, work }
}

type Fragile = Awaited<ReturnType<typeof openFragile>>

/** Lets time pass until something is so. */
async function passing(clock: Fragile['clock'], isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    await clock.advance(100)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/**
 * Lets so much time pass until something is so. A slow machine has not done by then what was begun within it: a little more
 * may pass, but less than a lease.
 */
async function recovered(clock: Fragile['clock'], ms: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
  await clock.advance(ms)
  for (let more = ms; !(await isSo()) && more < LEASE_MS; more += 100) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    await clock.advance(100)
  }
  await until(isSo)
}

const diskFull = () => new StorageError('The disk is full.', 'Make room.', { reason: 'full', written: 'nothing' })
const gone = () => new UnavailableError('Nobody answers.', { written: 'unknown' })
const isClaim = ({ lease }: Append) => lease.kind === 'claim'

describe('after the store is well again, within two seconds', () => {
  it('a thread is taken that could not be claimed for minutes', async () => {
    const { clock, faults, open, events, work } = await openFragile()
    await using hf = open()
    const hello = flow({ name: 'hello', version: '1.0.0' }, (ctx) => ctx.step('say', () => 'hello'))
    for (let i = 0; i < 30; i++) await hf.thread(hello, `t-${i}`).enqueue(null)
    faults.append = async () => Promise.reject(diskFull())
    await using _worker = work(hf, hello)
    await clock.advance(3 * MINUTE)
    const errors = events.filter(({ type }) => type === 'error').length
    expect(errors).toBeGreaterThan(10)
    // A few threads a second try it, and not every one in each round.
    expect(errors).toBeLessThan(3 * 60 * 30)
    delete faults.append
    const all = async () => (await hf.threads({ status: 'completed' })).threads.length === 30
    await recovered(clock, RECOVERY_MS, all)
  })

  it('a thread goes on whose run was given up in the middle of a step, without waiting for its lease', async () => {
    const { clock, faults, open, work } = await openFragile()
    await using hf = open()
    const ended: (() => void)[] = []
    const two = flow({ name: 'two', version: '1.0.0' }, async (ctx) => {
      await ctx.step('first', () => new Promise<void>((resolve) => ended.push(resolve)))
      return ctx.step('second', () => 'done')
    })
    await hf.thread(two, 't').enqueue(null)
    await using _worker = work(hf, two)
    await passing(clock, () => ended.length === 1)
    faults.append = async () => Promise.reject(diskFull())
    faults.renew = async () => Promise.reject(diskFull())
    ended[0]?.()
    await clock.advance(1000)
    delete faults.append
    delete faults.renew
    await recovered(clock, RECOVERY_MS, () => ended.length === 2)
    ended[1]?.()
    await clock.advance(1000)
    expect(await hf.thread(two, 't').waitFor()).toMatchObject({ status: 'completed', output: 'done' })
  })

  it('a renewal that lands long after its run was given up holds nobody back', async () => {
    const { clock, inner, faults, open, events, work } = await openFragile()
    await using hf = open()
    let steps = 0
    const wait = flow({ name: 'wait', version: '1.0.0' }, (ctx) =>
      ctx.step('wait', () => (++steps === 1 ? new Promise(() => {}) : 'done')),
    )
    await hf.thread(wait, 't').enqueue(null)
    await using _worker = work(hf, wait)
    await passing(clock, () => steps === 1)
    // A server that stands still: what it was sent is done when it goes on, and its clients have long given up.
    const late: (() => Promise<unknown>)[] = []
    const stands = (name: 'renew' | 'append' | 'head' | 'heads' | 'read' | 'tail') => {
      faults[name] = (async (...args: unknown[]) => {
        if (name === 'renew') late.push(() => (inner.renew as (...args: unknown[]) => Promise<unknown>)(...args))
        await clock.sleep(5000)
        throw gone()
      }) as never
    }
    for (const name of ['renew', 'append', 'head', 'heads', 'read', 'tail'] as const) stands(name)
    await clock.advance(45_000)
    expect(events.some(({ type, log }) => type === 'error' && log !== undefined)).toBe(true)
    for (const name of Object.keys(faults)) delete faults[name as keyof Driver]
    for (const land of late) await land()
    // At most what is under way ends, which was sent to the server that stood still.
    await recovered(clock, 5000 + RECOVERY_MS, () => steps === 2)
    expect(await hf.thread(wait, 't').waitFor()).toMatchObject({ status: 'completed' })
  })
})

describe('a store that refuses the record of each step and takes all else', () => {
  it.each([1, 10])(
    'parks nothing: each run that is given up says that its worker lives (concurrency %i)',
    async (concurrency) => {
      const { clock, inner, faults, open, events } = await openFragile()
      await using hf = open()
      const stepped = new Set<string>()
      const hello = flow<string, unknown>({ name: 'hello', version: '1.0.0' }, (ctx, thread) =>
        ctx.step('say', () => {
          stepped.add(thread)
          return 'hello'
        }),
      )
      for (const thread of ['a', 'b', 'c']) await hf.thread(hello, thread).enqueue(thread)
      let isFull = true
      let refused = 0
      faults.append = async (batch) => {
        const isRecord = ({ log, lease }: Append) => lease.kind !== 'claim' && stepped.delete(log.thread)
        if (!isFull || !batch.some(isRecord)) return inner.append(batch)
        refused++
        throw diskFull()
      }
      const options = { programs: [hello], concurrency, maxCrashes: 2, handleSignals: false }
      await using _worker = hf.worker({ ...options, onEvent: (event) => events.push(event) })
      await clock.advance(MINUTE / 2)
      await passing(clock, () => refused > 12)
      // Many times what a thread that ends its workers is allowed, also while it ran alone.
      expect((await hf.threads({ status: 'failed' })).threads).toEqual([])
      isFull = false
      const all = async () => (await hf.threads({ status: 'completed' })).threads.length === 3
      await recovered(clock, RECOVERY_MS, all)
    },
  )
})

describe('a store that takes claims and refuses what follows', () => {
  it.each([1, 10])('parks nothing: no worker died (concurrency %i)', async (concurrency) => {
    const { clock, inner, faults, open, events } = await openFragile()
    await using hf = open()
    const hello = flow({ name: 'hello', version: '1.0.0' }, (ctx) => ctx.step('say', () => 'hello'))
    for (let i = 0; i < 3; i++) await hf.thread(hello, `t-${i}`).enqueue(null)
    faults.append = async (batch) => {
      if (batch.every(isClaim)) return inner.append(batch)
      throw diskFull()
    }
    faults.renew = async () => Promise.reject(diskFull())
    const options = { programs: [hello], concurrency, handleSignals: false }
    await using _worker = hf.worker({ ...options, onEvent: (event) => events.push(event) })
    // Another process, which knows nothing of what the first one found out.
    await using other = open()
    await using _another = other.worker({ ...options, onEvent: (event) => events.push(event) })
    await clock.advance(3 * MINUTE)
    const told = (type: string) => events.filter((event) => event.type === type && event.log !== undefined).length
    await passing(clock, () => told('error') > 30)
    // Whatever was taken ends, and the end is told.
    const ended = () => events.filter(({ type }) => type === 'ended')
    await passing(clock, () => told('error') + told('stopped') + ended().length === told('taken'))
    for (const event of ended()) expect(event).toMatchObject({ outcome: { status: 'busy' } })
    delete faults.append
    delete faults.renew
    const all = async () => (await hf.threads({ status: 'completed' })).threads.length === 3
    await recovered(clock, RECOVERY_MS, all)
  })
})
