import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { type BullmqEngine, openBullmq } from 'holdfast/bullmq'
import { startChaosProxy } from 'holdfast/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { startRedis } from '../../../scripts/services/index.mjs'
import { durableBackends } from '../../support/backends.js'
import { freeze } from '../../support/freeze.js'
import { orUndefined } from '../../support/servers.js'
import { until } from '../../support/until.js'
import { fresh, queues } from './bullmq-setup.js'
import { type Charge, openChargeService } from './charge-service.js'
import { makeOrders } from './orders.mjs'

const PROGRAM = fileURLToPath(new URL('fleet-worker.mjs', import.meta.url))
const backends = await durableBackends()
const store = backends.find(({ name, missing }) => name === 'Postgres' && !missing) ?? backends[0]
const children: ChildProcess[] = []
const toClose: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const close of toClose.splice(0).reverse()) await close()
})

/** A place for a queue that may be lost as a whole, with a way to lose it. */
async function openQueue(name: string) {
  if (name === 'Postgres') {
    const { connection } = queues.find((one) => one.name === name) as (typeof queues)[number]
    // Others use this server: it can't be killed here.
    const crash = async () => {}
    return { connection, crash, lose: (engine: BullmqEngine) => engine.queue.obliterate({ force: true }) }
  }
  // Its own: the one that tests share must not be flushed.
  const redis = await orUndefined(() => startRedis())
  if (redis === undefined) return undefined
  toClose.push(() => redis.stop())
  const crash = async () => {
    await redis.kill('SIGKILL')
    await redis.restart()
  }
  return { connection: redis.url, crash, lose: () => redis.command('FLUSHALL') }
}

/** Each order was charged for what it is, whoever asked how often. */
function checkCharges(calls: readonly Charge[], orders: readonly string[]) {
  for (const order of orders) {
    const own = calls.filter((call) => call.order === order)
    for (const step of ['deposit', 'rest']) {
      // Asked for again only with the key that it had: the service does nothing twice.
      expect(new Set(own.filter((call) => call.step === step).map(({ key }) => key)).size).toBe(1)
    }
    // What was acknowledged is never asked for again: the first charge was before the second began.
    const second = own.findIndex(({ step }) => step === 'rest')
    expect(own.slice(second).map(({ step }) => step)).not.toContain('deposit')
  }
}

/** A queue, a store with its engine, and a service; worker processes join by name. */
async function openScene(name: string) {
  const place = await openQueue(name)
  if (place === undefined) return undefined
  const queue = fresh()
  const service = await openChargeService()
  toClose.push(() => service.close())
  const url = (await store?.fresh()) as string
  const hf = await openHoldfast(url)
  toClose.push(() => hf.close())
  const engine = await openBullmq(hf, { connection: place.connection, queue })
  toClose.push(() => engine.close())
  const start = async (worker: string, connection = place.connection) => {
    const child = fork(PROGRAM, [url, connection, queue, service.url, worker], { stdio: 'inherit' })
    children.push(child)
    await once(child, 'message')
    return { child, ended: once(child, 'exit') }
  }
  return { place, url, service, hf, engine, start }
}

describe.each(queues.filter(({ missing }) => !missing))('worker processes on BullMQ on $name', ({ name }) => {
  it('are killed, stopped, and lose their queue: every thread completes, no acknowledged effect twice', {
    timeout: 600_000,
  }, async () => {
    const scene = await openScene(name)
    if (scene === undefined) return
    const { place, service, hf, engine, start } = scene
    const [killed, stopped, stays] = await Promise.all([start('killed'), start('stopped'), start('stays')])

    const orders = Array.from({ length: 30 }, (_, i) => `order-${i}`)
    const program = makeOrders(service.url, 'test')
    for (const order of orders) await hf.thread(program, order).enqueue(order)
    // Each has more than one thread in the middle of its second charge, which the service does not answer yet.
    const isAtWork = (worker: string) => service.calls.some(({ step, by }) => step === 'rest' && by === worker)
    await until(() => ['killed', 'stopped', 'stays'].every(isAtWork))

    killed?.child.kill('SIGKILL')
    stopped?.child.kill('SIGTERM')
    await killed?.ended
    // Jobs of threads that wait are removed, then everything that the queue holds is lost.
    await engine.queue.drain()
    await place.lose(engine)
    const successor = await start('successor')
    // The same threads are named again, some of them several times, without deduplication.
    const hints = orders.slice(0, 10).map((thread) => ({ tenant: 'default', thread, branch: 'main' }))
    for (const hint of [...hints, ...hints]) await engine.queue.add('order', hint)
    await until(() => isAtWork('successor'))
    service.release()

    expect(await stopped?.ended).toEqual([0, null])
    for (const order of orders) {
      await until(async () => (await hf.inspect(order).waitFor({ timeoutMs: 120_000 })).status === 'completed')
    }
    checkCharges(service.calls, orders)

    // Jobs for threads that are done do nothing.
    const before = service.calls.length
    for (const hint of hints) await engine.queue.add('order', hint)
    await until(async () => (await engine.queue.getJobCountByTypes('wait', 'active', 'delayed')) === 0)
    expect(service.calls).toHaveLength(before)

    for (const one of [stays, successor]) one?.child.kill('SIGTERM')
    expect([await stays?.ended, await successor.ended]).toEqual([
      [0, null],
      [0, null],
    ])
  })

  it('stand still for longer than their lease, lose their connections and their server: every thread completes', {
    timeout: 600_000,
  }, async () => {
    const scene = await openScene(name)
    if (scene === undefined) return
    const { place, url, service, hf, start } = scene
    const { hostname, port } = new URL(place.connection)
    const proxy = await startChaosProxy({ target: { host: hostname, port: Number(port) } })
    toClose.push(() => proxy.close())
    const [frozen, far, stays] = await Promise.all([
      start('frozen'),
      start('far', proxy.url(place.connection)),
      start('stays'),
    ])
    const orders = Array.from({ length: 24 }, (_, i) => `order-${i}`)
    const program = makeOrders(service.url, 'test')
    for (const order of orders) await hf.thread(program, order).enqueue(order)
    const isAtWork = (worker: string) => service.calls.some(({ step, by }) => step === 'rest' && by === worker)
    await until(() => ['frozen', 'far', 'stays'].every(isAtWork))

    await freeze(frozen.child, url)
    proxy.stall()
    const successor = await start('successor')
    // What the frozen one was in the middle of has another owner.
    await until(() => isAtWork('successor'))
    await place.crash()
    proxy.reset()
    await proxy.heal()
    service.release()
    for (const order of orders) {
      await until(async () => (await hf.inspect(order).waitFor({ timeoutMs: 120_000 })).status === 'completed')
    }
    checkCharges(service.calls, orders)

    // All of them are as good as new.
    frozen.child.kill('SIGCONT')
    const others = [stays, successor]
    for (const { child } of others) child.kill('SIGTERM')
    for (const { ended } of others) expect(await ended).toEqual([0, null])
    const last = Array.from({ length: 16 }, (_, i) => `last-${i}`)
    for (const order of last) await hf.thread(program, order).enqueue(order)
    for (const order of last) {
      await until(async () => (await hf.inspect(order).waitFor({ timeoutMs: 120_000 })).status === 'completed')
    }
    checkCharges(service.calls, last)
    for (const { child, ended } of [frozen, far]) {
      child.kill('SIGTERM')
      expect(await ended).toEqual([0, null])
    }
  })
})
