import { randomUUID } from 'node:crypto'
import { flow, Holdfast, openHoldfast } from 'holdfast'
import { LogStore, ops } from 'holdfast/log'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { type DriverMethod, faultyDriver, startChaosProxy } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { redisUrl } from '../../support/servers.js'

const redis = await redisUrl()

const { set } = ops

const BIG = 'x'.repeat(100_000)

const listen = flow<string, unknown>({ name: 'listen', version: '1.0.0' }, async (ctx, input) => [
  input.length,
  await ctx.receive('news'),
  await ctx.pause('well?'),
])

/** Everything that is sent from outside to a thread, on one that this process has read before and on a new one. */
async function sendAll(hf: Holdfast, id: string, text: string): Promise<unknown> {
  const thread = hf.thread(listen, id)
  await thread.enqueue(text, { key: 'first' })
  await thread.enqueue('again', { key: 'second' })
  await thread.signal('news', text)
  const outcome = await thread.run()
  if (outcome.status !== 'paused') return outcome.status
  await thread.answer(outcome.pauses[0]?.id ?? '', 'yes')
  await thread.cancel()
  const kinds = (await hf.thread(listen, id).history()).map(({ kind }) => kind)
  return kinds.filter((kind) => ['input', 'signal', 'answer', 'cancel'].includes(kind)).sort()
}

const SENT = ['answer', 'cancel', 'input', 'input', 'signal']

describe('a connection that is lost once', () => {
  const methods: DriverMethod[] = ['tail', 'head', 'read', 'append', 'touchBlobs', 'putBlobs', 'getBlobs', 'tombstone']
  const cases = methods.flatMap((method) => (['before', 'after'] as const).map((moment) => [method, moment] as const))

  it.each(cases)('fails nothing that is sent to a thread (%s, %s)', async (method, moment) => {
    const below = faultyDriver(await openMemory())
    await using hf = new Holdfast(new LogStore(below, { cacheBytes: method === 'tail' ? 0 : 1e6 }))
    const fresh = await sendAll(hf, 'fresh', BIG)
    expect(fresh).toEqual(SENT)
    for (let i = 0; i < 3; i++) below.loseNext(method, moment)
    expect(await sendAll(hf, 'lost', BIG)).toEqual(SENT)
  })

  it.each(['tail', 'read', 'head', 'headers'] as const)(
    'fails nothing that reads on over many pages, and leaves out nothing (%s)',
    async (method) => {
      const below = faultyDriver(await openMemory())
      await using hf = new Holdfast(new LogStore(below, { cacheBytes: 0 }))
      const log = await hf.log('long')
      for (let i = 0; i < 600; i++) await log.update(() => [{ kind: 'input', ops: [set('n', i)] }])
      const read = async () => {
        const seen: number[] = []
        for await (const { header } of log.entries()) {
          seen.push(header.seq)
          if (header.seq % 100 === 0) below.loseNext(method, header.seq % 200 === 0 ? 'before' : 'after')
        }
        return seen
      }
      below.loseNext(method, 'before')
      expect(await read()).toEqual([...Array(600).keys()])
      const history = await hf.inspect('long').history({ limit: 600 })
      expect(history.map(({ seq }) => seq)).toEqual([...Array(600).keys()].reverse())
    },
  )

  it.skipIf(redis === undefined)(
    'fails nothing that is sent to a thread on Redis, whichever reply it takes along',
    async () => {
      const target = new URL(redis as string)
      await using proxy = await startChaosProxy({ target: { host: target.hostname, port: Number(target.port) } })
      await using hf = await openHoldfast(proxy.url(redis as string), { redis: { prefix: `test-${randomUUID()}` } })
      await sendAll(hf, 'before', '')
      let passed = 0
      for (let nth = 0; passed >= nth; nth++) {
        passed = 0
        const lost = proxy.dropAfterRequest(1, { when: (request) => isScript(request) && passed++ === nth })
        const id = `lost ${nth}`
        expect(await sendAll(hf, id, ''), id).toEqual(SENT)
        if (passed <= nth) await proxy.heal()
        await lost
      }
      expect(proxy.counters.faults.dropAfterRequest).toBeGreaterThan(10)
    },
  )
})

/** Announcements to watchers may get lost: nobody waits for them. */
function isScript(request: Buffer): boolean {
  return request.includes('evalsha')
}
