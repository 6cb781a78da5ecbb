import { type Context, flow, type Holdfast, openHoldfast, type Outcome, type Value } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { startRedis } from '../../../scripts/services/index.mjs'
import { losePower, mark } from '../../support/lost-power.js'
import { orUndefined, redisUrl } from '../../support/servers.js'

type Server = Awaited<ReturnType<typeof startRedis>>
type RedisSettings = NonNullable<Parameters<typeof openHoldfast>[1]>['redis']

const url = await redisUrl()
const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function ownServer(options: Parameters<typeof startRedis>[0]): Promise<Server> {
  const server = await orUndefined(() => startRedis(options))
  if (server === undefined) throw new Error('the server was there a moment ago')
  cleanups.push(() => server.stop())
  return server
}

async function opened(server: Server, redis: RedisSettings = {}): Promise<Holdfast> {
  const hf = await openHoldfast(server.url, { redis })
  cleanups.push(() => hf.close())
  return hf
}

/** An orderly restart. Nobody can see afterwards that it was one. */
async function restart(server: Server): Promise<void> {
  await server.kill('SIGTERM')
  await server.restart()
}

/** A shop that others look at, and a program that pays there. */
function shop() {
  const charges: string[] = []
  const asked: string[] = []
  const kind: { effect: 'once' | 'reconcilable' | 'idempotent' } = { effect: 'once' }
  const charge = async (ctx: Context<string>) =>
    ctx.step(
      'charge',
      {
        ...(kind.effect === 'reconcilable'
          ? {
              effect: 'reconcilable' as const,
              reconcile: async (key: string) => {
                asked.push(key)
                return charges.includes(key)
                  ? { outcome: 'executed' as const, result: 'paid' }
                  : { outcome: 'not-executed' as const }
              },
            }
          : { effect: kind.effect }),
      },
      async ({ idempotencyKey }) => {
        charges.push(idempotencyKey)
        return 'paid'
      },
    )
  const pay = flow<string, string>({ name: 'pay', version: '1.0.0' }, async (ctx, how) => {
    await ctx.step('look', () => 1)
    if (how === 'ask') await ctx.pause('pay?')
    if (how === 'two') await charge(ctx)
    const paid = how === 'two' ? await ctx.step('rest', () => 'paid') : await charge(ctx)
    return paid
  })
  return { charges, asked, kind, pay }
}

function questionOf<Output>(
  outcome: Outcome<Readonly<Record<string, Value>>, Output>,
): { kind: string; error?: string; id: string } | undefined {
  if (outcome.status !== 'paused') throw new Error(`the run is ${outcome.status}`)
  const [pause] = outcome.pauses
  const question = pause?.question as { error?: string } | undefined
  return pause && { kind: pause.kind, id: pause.id, ...(question?.error ? { error: question.error } : {}) }
}

const everysec = { appendfsync: 'everysec' } as const

describe.skipIf(url === undefined)('a Redis that lost what it had acknowledged', () => {
  it.each(['that was open all the time', 'that is new'])(
    'makes a process %s ask before an effect that may have begun',
    async (which) => {
      const { charges, pay } = shop()
      const server = await ownServer(everysec)
      const before = which === 'that is new' ? undefined : await opened(server)
      const worker = await opened(server)
      // The other process knows the thread, and keeps what it read of it.
      await (before ?? worker).thread(pay, 't').enqueue('now', { key: 'order-1' })
      const kept = await mark(server)
      expect(await worker.thread(pay, 't').run()).toMatchObject({ status: 'completed' })
      expect(charges).toHaveLength(1)
      await losePower(server, kept)

      const other = before ?? (await opened(server))
      const outcome = await other.thread(pay, 't').run()
      expect(questionOf(outcome)).toMatchObject({ kind: 'unknown-effect', error: expect.stringContaining('came back') })
      expect(charges).toHaveLength(1)
      // The same question, from whatever process it is looked at.
      const third = await opened(server)
      expect(questionOf(await third.thread(pay, 't').run())).toEqual(questionOf(outcome))
      await third.thread(pay, 't').answer(questionOf(outcome)?.id ?? '', { outcome: 'succeeded', result: 'paid' })
      expect(await third.thread(pay, 't').run()).toMatchObject({ status: 'completed', output: 'paid' })
      expect(charges).toHaveLength(1)
    },
  )

  it('asks what became of an effect that can be asked about, under the key that it had', async () => {
    const { charges, asked, pay, kind } = shop()
    kind.effect = 'reconcilable'
    const server = await ownServer(everysec)
    const worker = await opened(server)
    await worker.thread(pay, 't').enqueue('now', { key: 'order-1' })
    const kept = await mark(server)
    expect(await worker.thread(pay, 't').run()).toMatchObject({ status: 'completed' })
    await losePower(server, kept)
    const other = await opened(server)
    expect(await other.thread(pay, 't').run()).toMatchObject({ status: 'completed', output: 'paid' })
    expect(asked).toEqual(charges)
    expect(charges).toHaveLength(1)
  })

  it('repeats an effect that may be repeated, under the same key', async () => {
    const { charges, pay, kind } = shop()
    kind.effect = 'idempotent'
    const server = await ownServer(everysec)
    const worker = await opened(server)
    await worker.thread(pay, 't').enqueue('now', { key: 'order-1' })
    const kept = await mark(server)
    await worker.thread(pay, 't').run()
    await losePower(server, kept)
    expect(await (await opened(server)).thread(pay, 't').run()).toMatchObject({ status: 'completed' })
    expect(charges).toHaveLength(2)
    expect(new Set(charges).size).toBe(1)
  })

  it('asks also when the answer before the effect was lost with it, and is given again', async () => {
    const { charges, pay } = shop()
    const server = await ownServer(everysec)
    const worker = await opened(server)
    const asking = questionOf(await worker.thread(pay, 't').run({ input: 'ask' }))?.id ?? ''
    const kept = await mark(server)
    await worker.thread(pay, 't').answer(asking, 'yes')
    expect(await worker.thread(pay, 't').run()).toMatchObject({ status: 'completed' })
    await losePower(server, kept)
    const other = await opened(server)
    await other.thread(pay, 't').answer(asking, 'yes')
    expect(questionOf(await other.thread(pay, 't').run())?.kind).toBe('unknown-effect')
    expect(charges).toHaveLength(1)
  })

  it('asks no more once a person said that nothing had happened, and nothing of what was sent since', async () => {
    const { charges, pay } = shop()
    const server = await ownServer(everysec)
    const worker = await opened(server)
    await worker.thread(pay, 't').enqueue('two', { key: 'order-1' })
    await losePower(server, await mark(server))
    const other = await opened(server)
    // A guest of the new life, before anybody claimed the thread.
    await other.thread(pay, 't').enqueue('now', { key: 'order-2' })
    const asking = questionOf(await other.thread(pay, 't').run())
    expect(asking?.kind).toBe('unknown-effect')
    expect(charges).toHaveLength(0)
    await other.thread(pay, 't').answer(asking?.id ?? '', { outcome: 'not-executed' })
    expect(await other.thread(pay, 't').run()).toMatchObject({ status: 'completed' })
    expect(charges).toHaveLength(2)
    expect(await other.thread(pay, 't').run({ input: 'now', key: 'order-3' })).toMatchObject({ status: 'completed' })
  })
})

describe.skipIf(url === undefined)('a Redis that came back and lost nothing', () => {
  it('asks nothing when it synced every write', async () => {
    const { charges, pay } = shop()
    const server = await ownServer({ appendfsync: 'always' })
    const worker = await opened(server)
    await worker.thread(pay, 't').enqueue('now')
    await restart(server)
    expect(await (await opened(server)).thread(pay, 't').run()).toMatchObject({ status: 'completed' })
    expect(charges).toHaveLength(1)
  })

  it('asks nothing when it is trusted', async () => {
    const { charges, pay } = shop()
    const server = await ownServer(everysec)
    const worker = await opened(server, { trustRestarts: true })
    await worker.thread(pay, 't').enqueue('now')
    await restart(server)
    const other = await opened(server, { trustRestarts: true })
    expect(await other.thread(pay, 't').run()).toMatchObject({ status: 'completed' })
    expect(charges).toHaveLength(1)
  })

  it('asks nothing of a thread that was done, nor of one that is new', async () => {
    const { charges, pay } = shop()
    const server = await ownServer(everysec)
    const worker = await opened(server)
    await worker.thread(pay, 't').run({ input: 'now' })
    await restart(server)
    const other = await opened(server)
    for (const id of ['t', 'new']) {
      expect(await other.thread(pay, id).run({ input: 'now', key: 'again' })).toMatchObject({ status: 'completed' })
    }
    expect(charges).toHaveLength(3)
  })

  it('lets an owner that lived through it go on, and nobody asks after it', async () => {
    const server = await ownServer(everysec)
    const worker = await opened(server)
    let charged = 0
    let first: (() => Promise<void>) | undefined = () => restart(server)
    const long = flow<string, number>({ name: 'long', version: '1.0.0' }, async (ctx) => {
      await ctx.step('first', { effect: 'once' }, async () => {
        await first?.()
        first = undefined
        return ++charged
      })
      await ctx.step('second', { effect: 'once' }, () => ++charged)
      await ctx.pause('go on?')
      return ctx.step('third', { effect: 'once' }, () => ++charged)
    })
    const outcome = await worker.thread(long, 't').run({ input: 'go', leaseMs: 60_000 })
    const asking = questionOf(outcome)
    expect(asking?.kind).toBe('question')
    const other = await opened(server)
    await other.thread(long, 't').answer(asking?.id ?? '', true)
    expect(await other.thread(long, 't').run()).toMatchObject({ status: 'completed', output: 3 })
  })
})

describe.skipIf(url === undefined)('a replica that takes over', () => {
  async function pair() {
    const primary = await ownServer({ ...everysec, config: { 'repl-diskless-sync-delay': '0' } })
    const replica = await ownServer({ ...everysec, config: { replicaof: `127.0.0.1 ${primary.port}` } })
    const state = () => replica.command('INFO', 'replication')
    await expect.poll(state).toContain('master_link_status:up')
    return { primary, replica }
  }

  const waitReplicas = { count: 1, timeoutMs: 20_000 }
  it.each([
    ['asks before an effect that it may not know of', {}, 'paused'],
    ['asks nothing when every write waited for it', { waitReplicas }, 'completed'],
  ])('%s', async (_, redis, status) => {
    const { pay } = shop()
    const { primary, replica } = await pair()
    // A server that was up before is no restarted one; it counts its seconds.
    const uptime = async () => Number(/uptime_in_seconds:(\d+)/.exec(await replica.command('INFO', 'server'))?.[1])
    if (status === 'completed') await expect.poll(uptime).toBeGreaterThan(2)
    const worker = await openHoldfast(primary.url, { redis })
    await worker.thread(pay, 't').enqueue('now')
    await worker.close()
    await expect
      .poll(async () => {
        const [there, here] = await Promise.all([
          replica.command('INFO', 'replication'),
          primary.command('INFO', 'replication'),
        ])
        const offset = /master_repl_offset:(\d+)/.exec(String(here))?.[1]
        return String(there).includes(`slave_repl_offset:${offset}`)
      })
      .toBe(true)
    await primary.kill('SIGKILL')
    await replica.command('REPLICAOF', 'NO', 'ONE')
    const other = await openHoldfast(replica.url)
    cleanups.push(() => other.close())
    expect((await other.thread(pay, 't').run()).status).toBe(status)
  })
})
