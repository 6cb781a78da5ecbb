import { agent, openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { until } from '../support/until.js'
import { pacedModel } from './paced-model.js'
import { desk, events, type Received, setUpServers } from './server-setup.js'

const backends = (await durableBackends()).filter(({ name }) => name === 'SQLite' || name === 'Postgres')

/** Reads until an event fits, and hangs up. */
async function take(response: Response, isLast: (event: Received) => boolean): Promise<Received[]> {
  const taken: Received[] = []
  for await (const event of events(response)) {
    taken.push(event)
    if (isLast(event)) break
  }
  return taken
}

const lastId = (taken: readonly Received[]) => ({
  'last-event-id': taken.findLast(({ id }) => id !== undefined)?.id as string,
})
const words = (taken: readonly Received[]) =>
  taken.filter(({ event }) => event === 'token').map(({ data }) => data['text'])

describe.each(backends)('a stream on $name', ({ missing, fresh, cleanup }) => {
  const { serve } = setUpServers()
  afterAll(cleanup)

  it.skipIf(missing)(
    'goes on where it broke off: nothing is missed, nothing comes twice, tokens included',
    async () => {
      const { model, next } = pacedModel()
      const writer = agent({ name: 'writer', version: '1.0.0', model })
      const server = await serve({ store: await fresh(), programs: [writer] })
      const post = (headers = {}) =>
        server.post('/v1/threads/t/runs/stream', { input: 'Write!', key: 'k' }, { headers })
      const isWord =
        (word: string) =>
        ({ data }: Received) =>
          data['text'] === word

      const first = post()
      const call = await next()
      call.say('Once ')
      call.say('upon ')
      const one = await take(await first, isWord('upon '))
      // Said while nobody listens.
      call.say('a ')
      const again = post(lastId(one))
      call.say('time.')
      const two = await take(await again, isWord('time.'))
      // Who comes new to it is given what was said of the step under way.
      const fresh1 = await take(await server.fetch('/v1/threads/t/events'), isWord('time.'))
      expect(words(fresh1)).toEqual(['Once ', 'upon ', 'a ', 'time.'])
      call.end()
      const three = await take(await post(lastId(two)), ({ event }) => event === 'outcome')
      expect(words([...one, ...two, ...three])).toEqual(['Once ', 'upon ', 'a ', 'time.'])
      expect(three.at(-1)?.data['outcome']).toMatchObject({ status: 'completed', output: 'Once upon a time.' })

      const newest = (await server.client().thread('t').show()).thread.checkpoint
      const all = await take(
        await server.fetch('/v1/threads/t/events?after=start'),
        ({ data }) => data['type'] === 'checkpoint' && data['checkpoint'] === newest,
      )
      const recorded = (taken: readonly Received[]) =>
        taken.filter(({ event }) => !['started', 'token', 'outcome'].includes(event)).map(({ data }) => data['id'])
      const streamed = recorded([...one, ...two, ...three])
      const entries = recorded(all)
      expect(new Set(streamed).size).toBe(streamed.length)
      expect(entries.slice(-streamed.length)).toEqual(streamed)
    },
  )

  it.skipIf(missing)('can be cut after every event and put together again', async () => {
    const server = await serve({ store: await fresh() })
    const url = '/v1/threads/t/runs/stream'
    const body = { program: 'desk', input: { tell: 3 }, key: 'k' }
    const whole = await take(await server.post(url, body), ({ event }) => event === 'outcome')
    const isEnd = ({ data }: Received) => data['type'] === 'run' && data['status'] === 'completed'
    const all = await take(await server.fetch('/v1/threads/t/events?after=start'), isEnd)
    for (const cut of all.slice(0, -1)) {
      const rest = await take(await server.fetch('/v1/threads/t/events', { headers: lastId([cut]) }), isEnd)
      expect([...all.slice(0, all.indexOf(cut) + 1), ...rest]).toEqual(all)
    }
    // The same request once more tells the same outcome, and runs nothing.
    const again = await take(await server.post(url, body), ({ event }) => event === 'outcome')
    expect(again.map(({ event }) => event)).toEqual(['started', 'outcome'])
    expect(again.at(-1)?.data).toEqual(whole.at(-1)?.data)
  })

  it.skipIf(missing)('follows a run of another process, through a server without a worker', async () => {
    const store = await fresh()
    const front = await serve({ store, worker: false })
    const seen: string[] = []
    const done = (async () => {
      for await (const event of front
        .client()
        .thread('t')
        .stream({ program: 'desk', input: { order: 'Z' } })) {
        seen.push(event.type)
        if (event.type === 'outcome') return event
      }
      throw new Error('no outcome')
    })()
    await using elsewhere = await openHoldfast(store)
    const worker = elsewhere.worker({ programs: [desk], pollMs: 20, handleSignals: false })
    expect(await done).toMatchObject({ outcome: { status: 'completed', output: { order: { id: 'Z' } } } })
    expect(seen).toContain('step')
    await worker.stop()
  })
})

describe('a server that stops', () => {
  const { serve } = setUpServers()

  it('ends its streams with an event that tells clients to come back, and takes no more', async () => {
    const server = await serve()
    await server.client().thread('t').run({ program: 'desk', input: {} })
    const response = await server.fetch('/v1/threads/t/events')
    const rest = take(response, () => false)
    await server
      .client()
      .thread('t')
      .run({ input: { wait: 'never' } })
    const late = server.post('/v1/threads/t/runs/wait', { input: {}, key: 'late' })
    const isQueued = async () =>
      (await server.client().thread('t').start({ input: {}, key: 'late' })).input === 'queued'
    await until(isQueued)
    await server.close()
    expect((await rest).at(-1)).toMatchObject({ event: 'reconnect', data: { retryMs: 1000 } })
    expect(await (await late).json()).toMatchObject({ status: 503, code: 'stopping', retryable: true })
    await expect(server.fetch('/v1/health')).rejects.toThrow('fetch failed')
  })
})

describe('busy threads', () => {
  const { serve } = setUpServers()

  it('refuse, queue or interrupt, as they are asked to', async () => {
    const server = await serve()
    const thread = server.client().thread('t')
    const waiting = await thread.run({ program: 'desk', input: { wait: 'parcel' } })
    expect(waiting).toMatchObject({ status: 'paused' })
    await expect(thread.run({ input: {}, busy: 'reject' })).rejects.toMatchObject({ status: 409, code: 'busy' })
    const queued = await thread.start({ input: { order: 'queued' } })
    expect(queued).toMatchObject({ input: 'queued' })
    const outcome = await thread.run({ input: { order: 'now' }, busy: 'interrupt' })
    expect(outcome).toMatchObject({ status: 'completed', output: { order: { id: 'now' } } })
    const runs = (await thread.history({ limit: 100 })).checkpoints.filter(
      ({ kind }) => kind === 'end' || kind === 'step',
    )
    expect(runs.length).toBeGreaterThan(0)
    expect(await thread.run({ input: { order: 'free' }, busy: 'reject' })).toMatchObject({ status: 'completed' })
  })

  it('take a request that is sent again for what it is', async () => {
    const server = await serve()
    const thread = server.client().thread('t')
    const request = { program: 'desk', input: { wait: 'parcel' }, key: 'k', busy: 'reject' } as const
    const first = await thread.run(request)
    expect(await thread.run(request)).toEqual(first)
    expect(await thread.start(request)).toMatchObject({ input: 'taken', run: first.run })
    await thread.signal('parcel', 7)
    const done = await thread.run({ ...request, busy: 'queue' })
    expect(done.run).toBe(first.run)
  })
})
