import { openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { allEager, desk, events, OPERATIONS, setUpServers, TOKENS } from './server-setup.js'

const backends = (await durableBackends()).filter(({ name }) => name === 'SQLite' || name === 'Postgres')

describe.each(backends)('every route on $name', ({ missing, fresh, cleanup }) => {
  const { serve } = setUpServers()
  afterAll(cleanup)

  it.skipIf(missing)('does what its summary says, with answers that fit the document', async () => {
    const server = await serve({ store: await fresh() })
    const client = server.client()
    expect(await (await server.fetch('/v1/health', { token: null })).json()).toEqual({ ok: true })
    expect(await client.me()).toMatchObject({ tenant: 'acme', subject: 'ada@acme.example' })
    expect(await client.tenants()).toEqual(['acme'])
    expect((await client.programs()).map(({ name, kind }) => [name, kind])).toEqual([
      ['desk', 'flow'],
      ['counter', 'graph'],
    ])
    expect(
      ((await (await server.fetch('/v1/openapi.json', { token: null })).json()) as { openapi: string }).openapi,
    ).toBe('3.1.0')

    // A run that asks, and its answer.
    const asking = client.thread({ user: 'u/1', session: '..' })
    const paused = await asking.run({ program: 'desk', input: { ask: true } })
    expect(paused).toMatchObject({ status: 'paused', pauses: [{ kind: 'question', question: { ask: 'Really?' } }] })
    const [pause] = await asking.pauses()
    await asking.defer(pause?.id as string, new Date(Date.now() + 3_600_000))
    expect((await client.pauses({ deferred: false })).pauses).toEqual([])
    expect((await client.pauses()).pauses).toMatchObject([{ id: pause?.id, thread: { user: 'u/1', session: '..' } }])
    expect((await client.unknownEffects()).pauses).toEqual([])
    await expect(asking.resolveEffect(pause?.id as string, true)).rejects.toMatchObject({ code: 'conflict' })
    await asking.answer(pause?.id as string, { yes: true })
    await expect(asking.answer(pause?.id as string, 1)).rejects.toMatchObject({
      code: 'pause-closed',
      problem: { by: 'ada@acme.example' },
    })
    expect((await client.answers()).answers).toMatchObject([
      {
        pause: pause?.id,
        thread: { user: 'u/1', session: '..' },
        kind: 'question',
        question: { ask: 'Really?' },
        value: { yes: true },
        by: 'ada@acme.example',
      },
    ])
    const same = await asking.run({ program: 'desk', input: { order: 'B' } })
    expect(same).toMatchObject({ status: 'completed', output: { order: { id: 'B' } } })

    // Signals, cancellation, another try.
    const waiting = client.thread('waiting')
    expect(await waiting.start({ program: 'desk', input: { wait: 'parcel' } })).toMatchObject({ input: 'queued' })
    expect(await waiting.signal('parcel', { n: 1 }, { key: 'd-1' })).toEqual({ signal: 'sent' })
    expect(await waiting.signal('parcel', { n: 1 }, { key: 'd-1' })).toEqual({ signal: 'known' })
    expect(await waiting.run({ input: { wait: 'never' } }, { timeoutMs: 60_000 })).toMatchObject({ status: 'paused' })
    await waiting.cancel('not needed')
    // At once, or by the worker where it took the thread in between.
    await expect.poll(async () => (await waiting.state()).run?.status).toBe('cancelled')
    const failed = client.thread('failed')
    expect(await failed.run({ program: 'desk', input: { fail: true } })).toMatchObject({
      status: 'failed',
      canResume: true,
    })
    expect(await failed.resume()).toBe(true)

    // Streams.
    const seen: string[] = []
    for await (const event of client.thread('stream').stream({ program: 'desk', input: { tell: 2 } }))
      seen.push(event.type)
    expect(seen.filter((type) => type === 'custom')).toHaveLength(2)
    expect(seen.at(0)).toBe('started')
    expect(seen.at(-1)).toBe('outcome')
    const followed = await server.fetch('/v1/threads/stream/events?after=start')
    for await (const { data } of events(followed)) if (data['type'] === 'run' && data['status'] === 'completed') break

    // The past.
    const counting = client.thread('counting')
    await counting.run({ program: 'counter', input: {} })
    await counting.run({ input: {} })
    const { checkpoints } = await counting.history()
    const [newest, ...older] = checkpoints
    const first = older.at(-1)
    expect(newest?.parent).toBe(older[0]?.id)
    expect((await counting.state()).state).toMatchObject({ count: 2 })
    const atOne = older.find(({ kind }) => kind === 'end' || kind === 'step')
    expect((await counting.state(atOne?.id)).state).toMatchObject({ count: 1 })
    expect(await counting.diff(atOne?.id as string, newest?.id as string)).toMatchObject([{ path: '$.count' }, {}])
    const fork = await counting.fork({ at: atOne?.id as string, name: 'what-if', set: { count: 40 } })
    expect(await fork.run({ input: {} })).toMatchObject({
      status: 'completed',
      branch: 'what-if',
      state: { count: 41 },
    })
    const reduced = await counting.fork({ at: atOne?.id as string, update: { seen: ['more'] } })
    expect((await reduced.state()).state).toMatchObject({ seen: ['one', 'more'] })
    expect((await counting.branches())[0]?.forks).toHaveLength(2)
    expect(await counting.compare('what-if')).toMatchObject({ branches: [{ name: 'main' }, { name: 'what-if' }] })
    expect(await counting.replay()).toMatchObject({ status: 'identical' })
    expect(await counting.verify()).toMatchObject({ ok: true })
    expect(await counting.tag('good', first?.id as string)).toEqual({ tag: 'good', checkpoint: first?.id })
    expect((await counting.show()).thread.tags).toEqual(['good'])
    await counting.untag('good')
    await expect(counting.untag('good')).rejects.toMatchObject({ code: 'not-found' })

    const said = (await counting.history({ events: true })).checkpoints.flatMap(({ events = [] }) => events)
    expect(said.filter(({ type }) => type === 'step').map(({ step }) => step)).toEqual(['0:one', '0:one'])
    await expect(counting.fork({ set: { seen: 'no list' } })).rejects.toMatchObject({ code: 'invalid-value' })
    const exported = await counting.export({ redact: true })
    await using elsewhere = await openHoldfast('memory:')
    expect(await elsewhere.import(exported)).toMatchObject({ thread: 'counting' })
    await expect(client.thread('none').export()).rejects.toMatchObject({ code: 'not-found' })

    // Pages over all branches, none left out and none twice.
    const pages: string[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await counting.history({ allBranches: true, limit: 2, ...(cursor === undefined ? {} : { cursor }) })
      pages.push(...page.checkpoints.map(({ id }) => id))
      cursor = page.cursor
      if (cursor === undefined) break
    }
    const whole = await counting.history({ allBranches: true, limit: 100 })
    expect(pages).toEqual(whole.checkpoints.map(({ id }) => id))
    expect(new Set(pages).size).toBe(pages.length)
    expect(new Set(whole.checkpoints.map(({ branch }) => branch)).size).toBe(3)

    // The index.
    expect((await client.threads({ status: ['completed'], limit: 1 })).cursor).toBeDefined()
    expect((await client.threads({ metadata: ['holdfast.program=counter'] })).threads).toHaveLength(3)

    // The store.
    const prefs = client.collection({ user: 'u/1' }, 'prefs')
    const { version } = await prefs.put('a/b', { dark: true })
    await expect(prefs.put('a/b', 1, { expect: null })).rejects.toMatchObject({ code: 'conflict' })
    expect(await prefs.get('a/b')).toMatchObject({ value: { dark: true }, version })
    expect((await prefs.list()).items).toHaveLength(1)
    expect((await prefs.search({ filter: { dark: true } })).items).toHaveLength(1)
    expect((await client.collections()).collections).toContainEqual({ scope: { user: 'u/1' }, collection: 'prefs' })
    await prefs.delete('a/b')
    await expect(prefs.get('a/b')).rejects.toMatchObject({ code: 'not-found' })
    const { processes, series } = await client.metrics()
    expect(processes.length).toBeGreaterThan(allEager ? -1 : 0)
    const begun = series.values['holdfast.runs.started'] ?? []
    expect(Math.round(begun.reduce((sum, count) => sum + count, 0))).toBeGreaterThan(allEager ? -1 : 5)
    expect(await client.workers()).toMatchObject({ held: expect.any(Array), queue: expect.any(Array) })
    expect(await client.retention()).toMatchObject({ report: { threads: 0 }, threads: [] })

    await counting.erase()
    await expect(counting.show()).rejects.toMatchObject({ code: 'not-found', status: 404 })
    const missed = OPERATIONS.filter(({ operationId }) => !server.called.has(operationId))
    expect(missed.map(({ operationId }) => operationId)).toEqual([])
  })

  it.skipIf(missing)('keeps every route from who has no token, no role, or another tenant', async () => {
    const server = await serve({ store: await fresh() })
    await server
      .client()
      .thread('t')
      .run({ program: 'desk', input: { ask: true } })
    const before = await server.client().thread('t').state()
    const pause = before.pauses[0]?.id as string
    for (const { path, method, operationId, ...operation } of OPERATIONS) {
      const filled = path
        .replace('{thread}', 't')
        .replace('{pause}', pause)
        .replace('{scope}', 'user=u')
        .replace(/\{\w+\}/g, 'x')
      const body = operation.requestBody ? { body: '{}', headers: { 'content-type': 'application/json' } } : {}
      const call = (token: string | null) => server.fetch(filled, { method, token, ...body })
      const role = operation['x-role']
      if (role === undefined) continue
      for (const wrong of [null, 'wrong', `${TOKENS.ada.token}x`, '']) {
        expect((await call(wrong)).status, `${operationId} with ${wrong}`).toBe(401)
      }
      expect((await call(TOKENS.nobody.token)).status, operationId).toBe(403)
      if (role !== 'read') expect((await call(TOKENS.reader.token)).status, operationId).toBe(403)
      if (method === 'GET' && path.includes('{thread}')) {
        expect((await call(TOKENS.other.token)).status, `${operationId} of another tenant`).toBeGreaterThanOrEqual(400)
      }
    }
    // What writes, with a body that would do it.
    const eve = server.client('other').thread('t')
    await expect(eve.answer(pause, true)).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.defer(pause, new Date(Date.now() + 1e6))).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.cancel()).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.signal('x')).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.resume()).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.fork()).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.fork({ at: before.id })).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.tag('x')).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.replay()).rejects.toMatchObject({ code: 'not-found' })
    await expect(eve.verify()).rejects.toMatchObject({ code: 'not-found' })
    await eve.erase()
    expect((await server.client('other').threads()).threads).toEqual([])
    expect((await server.client('other').pauses()).pauses).toEqual([])
    expect(await server.client().thread('t').state()).toEqual(before)
  })
})

describe('requests that do not fit', () => {
  const { serve } = setUpServers()

  it('are refused with a problem that names what is wrong, and write nothing', async () => {
    const server = await serve()
    const wrong: readonly [path: string, body: unknown, status: number, problem: object][] = [
      ['/v1/threads/t/runs', { program: 'none', input: 1 }, 404, { code: 'not-found', field: 'program' }],
      ['/v1/threads/t/runs', { input: {} }, 400, { code: 'invalid-option', field: 'program' }],
      ['/v1/threads/t/runs', { program: 'desk', inptu: 1 }, 422, { code: 'invalid-value' }],
      ['/v1/threads/t/runs', { program: 'desk', busy: 'perhaps' }, 422, { code: 'invalid-value' }],
      ['/v1/threads/t/runs', { program: 'desk', key: '' }, 422, { code: 'invalid-value' }],
      ['/v1/threads/t/runs', [], 422, { code: 'invalid-value' }],
      ['/v1/threads/t/runs?x=1', { program: 'desk' }, 400, { code: 'invalid-option', field: 'x' }],
      ['/v1/threads/t/runs/wait?timeoutMs=soon', { program: 'desk' }, 400, { field: 'timeoutMs' }],
      ['/v1/threads/t/runs/wait?timeoutMs=0', { program: 'desk' }, 422, {}],
      ['/v1/threads/t/runs/stream', { program: 'counter', input: { no: 1 } }, 422, { code: 'invalid-value' }],
      ['/v1/threads/none/cancel', {}, 404, { code: 'not-found' }],
      ['/v1/threads/none/pauses/p/answer', { value: 1 }, 404, { code: 'not-found' }],
      ['/v1/threads/none/pauses/p/answer', {}, 422, { code: 'invalid-value' }],
      ['/v1/threads/none/fork', { at: 'nonsense' }, 400, { code: 'invalid-id' }],
      ['/v1/nothing', {}, 404, { code: 'not-found' }],
    ]
    for (const [path, body, status, problem] of wrong) {
      const response = await server.post(path, body)
      expect(response.headers.get('content-type'), path).toBe('application/problem+json')
      expect(await response.json(), path).toMatchObject({ status, ...problem })
    }
    expect((await server.fetch('/v1/threads?limit=none')).status).toBe(400)
    expect((await server.fetch('/v1/threads?limit=1000000')).status).toBe(422)
    expect((await server.fetch('/v1/threads?cursor=zzz')).status).toBe(400)
    expect((await server.fetch('/v1/threads?metadata=nothing')).status).toBe(400)
    expect((await server.fetch('/v1/threads/t/history?cursor=zzz')).status).toBe(404)
    expect((await server.fetch('/v1/threads/t/events', { headers: { 'last-event-id': 'zzz' } })).status).toBe(400)
    const wrongMethod = await server.fetch('/v1/threads', { method: 'DELETE' })
    expect([wrongMethod.status, wrongMethod.headers.get('allow')]).toEqual([405, 'GET'])
    const broken = await server.post('/v1/threads/t/runs', {}, { body: '{"program":' })
    expect(await broken.json()).toMatchObject({ status: 400, code: 'not-json' })
    expect((await server.client().threads()).threads).toEqual([])
  })

  it('are told nothing of what fails inside', async () => {
    const failures: unknown[] = []
    const hf = await openHoldfast('memory:')
    const server = await serve({ hf, onError: (error) => failures.push(error) })
    await hf.close()
    const response = await server.fetch('/v1/threads')
    const text = await response.text()
    expect(response.status).toBe(503)
    expect(text).not.toMatch(/stack|node_modules|at /)
    expect(failures).toHaveLength(1)
  })

  it('need a way to tell who calls, before anything is served', async () => {
    const { createServer } = await import('holdfast/server')
    await using hf = await openHoldfast('memory:')
    expect(() => createServer(hf, { programs: [desk] })).toThrow(/Say who may call/)
    expect(() => createServer(hf, { programs: [desk], tokens: [{ token: 'short' }] })).toThrow(/at least 16/)
    expect(() =>
      createServer(hf, { programs: [desk], tokens: [{ token: 'x'.repeat(16), roles: ['root' as never] }] }),
    ).toThrow(/can't hold "root"/)
    expect(() => createServer(hf, { programs: [desk, desk], tokens: [TOKENS.ada] })).toThrow(/twice/)
  })
})
