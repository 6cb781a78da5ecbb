import { request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { chatRoutes } from '#src/server/ai-sdk/chat-routes.js'
import { langGraphRoutes } from '#src/server/langgraph/routes.js'
import { nativeRoutes } from '#src/server/native/routes.js'
import { describe, expect, it } from 'vitest'
import { until } from '../support/until.js'
import { setUpServers, type TestServer, TOKENS } from './server-setup.js'

const { serve, onClose } = setUpServers()
const bearer = { authorization: `Bearer ${TOKENS.ada.token}` }

/** A request with just these headers, `Host` included. */
function raw(
  server: TestServer,
  path: string,
  options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string } = {},
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  const { method = 'GET', headers = {}, body } = options
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      { host: '127.0.0.1', port: server.port, path, method, headers, setHost: !headers['host'] },
      (got) => {
        let text = ''
        got.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        got.on('end', () => resolve({ status: got.statusCode ?? 0, headers: got.headers, text }))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

function dial(server: TestServer): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, '127.0.0.1', () => resolve(socket))
    socket.on('error', reject)
    onClose(async () => socket.destroy())
  })
}

describe('a page of a stranger', () => {
  it('reaches nothing by a name that it lets point here', async () => {
    const server = await serve()
    for (const host of ['evil.example', 'evil.example:80', 'localhost.evil.example', '127.0.0.1.evil.example']) {
      const { status, text } = await raw(server, '/v1/threads', { headers: { host, ...bearer } })
      expect(status, host).toBe(421)
      expect(JSON.parse(text)).toMatchObject({ code: 'unknown-host' })
      expect((await raw(server, '/v1/health', { headers: { host } })).status).toBe(421)
    }
    for (const host of ['localhost', '127.0.0.1:99', '[::1]:8787', 'LOCALHOST:1']) {
      expect((await raw(server, '/v1/threads', { headers: { host, ...bearer } })).status, host).toBe(200)
    }
    const named = await serve({ hosts: ['agents.example'] })
    expect((await raw(named, '/v1/health', { headers: { host: 'agents.example' } })).status).toBe(200)
  })

  it('can send no request across origins that does something, and reads no answer', async () => {
    const server = await serve({ origins: ['https://app.example'] })
    const post = (headers: Record<string, string>, body = '{"program":"desk","input":{}}') =>
      raw(server, '/v1/threads/t/runs', { method: 'POST', headers: { ...bearer, ...headers }, body })
    for (const origin of ['https://evil.example', 'null', 'https://app.example.evil.example', 'http://app.example']) {
      const got = await post({ origin, 'content-type': 'application/json' })
      expect(got.status, origin).toBe(403)
      expect(got.headers).not.toHaveProperty('access-control-allow-origin')
      const asked = await raw(server, '/v1/threads/t/runs', {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      })
      expect(asked.status, origin).toBe(403)
    }
    // What a form can send without asking first.
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonx',
    ]) {
      expect((await post({ 'content-type': type })).status, type).toBe(415)
    }
    expect((await post({})).status).toBe(415)
    expect((await server.client().threads()).threads).toEqual([])

    const asked = await raw(server, '/v1/threads/t/runs', {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' },
    })
    expect(asked).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': 'https://app.example' } })
    const allowed = await post({ origin: 'https://app.example', 'content-type': 'application/json' })
    expect(allowed).toMatchObject({ status: 202, headers: { 'access-control-allow-origin': 'https://app.example' } })
    const own = `http://127.0.0.1:${server.port}`
    expect((await post({ origin: own, 'content-type': 'application/json' })).status).toBe(202)
  })
})

describe('a caller', () => {
  it('never chooses the tenant, nor who answered', async () => {
    const server = await serve()
    await server
      .client()
      .thread('t')
      .run({ program: 'desk', input: { ask: true } })
    const id = (await server.client().thread('t').pauses())[0]?.id
    for (const extra of [{ tenant: 'acme' }, { by: 'boss' }, { principal: {} }]) {
      const token = TOKENS.other.token
      expect(
        (await server.post('/v1/threads/t/runs', { program: 'desk', input: {}, ...extra }, { token })).status,
      ).toBe(422)
      expect((await server.post(`/v1/threads/t/pauses/${id}/answer`, { value: 1, ...extra })).status).toBe(422)
    }
    for (const path of ['/v1/threads?tenant=acme', '/v1/threads/t/state?tenant=acme']) {
      expect((await server.fetch(path, { token: TOKENS.other.token })).status, path).toBe(400)
    }
    const withHeader = (name: string) =>
      server.fetch('/v1/threads', { token: TOKENS.other.token, headers: { [name]: 'acme' } })
    expect(await (await withHeader('x-tenant')).json()).toEqual({ threads: [] })
    // Only for tokens that may act for that tenant.
    expect((await withHeader('x-holdfast-tenant')).status).toBe(403)
    await server
      .client('answerer')
      .thread('t')
      .answer(id as string, 'yes')
    await expect(
      server
        .client()
        .thread('t')
        .answer(id as string, 'no'),
    ).rejects.toMatchObject({
      problem: { by: 'answerer', reason: 'answered' },
    })
  })

  it('needs a token on every route of every dialect but those that tell nothing', async () => {
    const server = await serve()
    const open: string[] = []
    for (const { method, path, role } of [...nativeRoutes, ...chatRoutes, ...langGraphRoutes]) {
      const filled = path.replace(/:\w+/g, 'x')
      const { status } = await raw(server, filled, { method })
      if (role === 'none') open.push(filled)
      else expect(status, `${method} ${filled}`).toBe(401)
      if (method === 'GET' || method === 'DELETE') continue
      const form = { headers: { ...bearer, 'content-type': 'text/plain' }, body: '{}' }
      expect((await raw(server, filled, { method, ...form })).status, `${method} ${filled}`).toBe(415)
    }
    expect(open).toEqual(['/v1/health', '/v1/openapi.json', '/ok', '/info'])
  })

  it('is not known by a token in the address', async () => {
    const server = await serve()
    const { token } = TOKENS.ada
    for (const name of ['token', 'access_token', 'api_key', 'x-api-key', 'authorization']) {
      expect((await server.fetch(`/v1/threads?${name}=${token}`, { token: null })).status, name).toBe(401)
    }
    expect((await fetch(`${server.url}/v1/threads`, { headers: { 'x-api-key': token } })).status).toBe(200)
    expect(
      (await fetch(`${server.url}/v1/threads`, { headers: { authorization: `Basic ${btoa(`x:${token}`)}` } })).status,
    ).toBe(401)
    expect(
      (await fetch(`${server.url}/v1/threads`, { headers: { authorization: `Bearer ${token} ${token}` } })).status,
    ).toBe(401)
  })

  it('gets nowhere else by tricks with ids in paths', async () => {
    const server = await serve()
    const strange = [
      'a/b',
      '../other',
      '..',
      '.',
      '/',
      '\\',
      '{',
      '{a',
      '~x',
      '%2F',
      'a%00',
      'ü',
      '{user=u}',
      'a?b#c',
      ' ',
    ]
    for (const id of strange) {
      const thread = server.client().thread(id)
      expect(await thread.run({ program: 'desk', input: {} }), id).toMatchObject({ status: 'completed', thread: id })
      expect((await thread.show()).thread.thread).toBe(id)
    }
    expect((await server.client().threads()).threads).toHaveLength(strange.length)
    for (const path of [
      '/v1/threads/a%2Fb/state',
      '/v1/threads/%2e%2e%2f%2e%2e/state',
      '/v1/threads/a%5Cb/state',
      '/v1/threads/~!!!/state',
      '/v1/threads/~/state',
      '/v1/threads/a%00b/state',
      '/v1/threads/a%0Ab/state',
      '/v1/threads/%7Ba%7D/state',
      `/v1/threads/${'x'.repeat(600)}/state`,
    ]) {
      const { status, text } = await raw(server, path, { headers: bearer })
      expect(status, path).toBe(400)
      expect(JSON.parse(text), path).toMatchObject({ code: 'invalid-id' })
    }
    for (const path of [
      '/v1/threads/../metrics',
      '/v1/threads/%2e%2e/metrics',
      '//v1/threads',
      '/v1//threads',
      '/v1/threads/',
    ]) {
      expect(
        (await raw(server, path, { headers: { authorization: `Bearer ${TOKENS.reader.token}` } })).status,
        path,
      ).not.toBe(200)
    }
  })

  it('leaves nothing unhandled by a malformed id, on whatever path: that would end the process', async () => {
    const server = await serve()
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    const { text } = await raw(server, '/v1/openapi.json', { headers: bearer })
    const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, unknown>> }
    const asked = Object.keys(paths).filter((path) => path.includes('{thread}') && 'get' in (paths[path] ?? {}))
    for (const path of asked) {
      for (const [thread, branch] of [
        ['a%2Fb', 'main'],
        ['t', '%00'],
      ] as const) {
        const at = path.replace('{thread}', thread).replaceAll(/\{\w+\}/g, 'x')
        const { status } = await raw(server, `${at}?branch=${branch}`, { headers: bearer })
        expect(status, at).toBe(400)
      }
    }
    expect(asked.length).toBeGreaterThan(5)
    // A rejection counts as unhandled when a turn of the event loop is over.
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })

  it('can neither send too much nor too slowly', async () => {
    const server = await serve({ limits: { maxBodyBytes: 1000, bodyTimeoutMs: 50 } })
    const large = await server.post('/v1/threads/t/runs', { program: 'desk', input: 'x'.repeat(1000) })
    expect(await large.json()).toMatchObject({ status: 413, code: 'too-large', limit: 1000 })
    const head = (length: string) =>
      `POST /v1/threads/t/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKENS.ada.token}\r\nContent-Type: application/json\r\n${length}\r\n\r\n`
    const answer = async (text: string) => {
      const socket = await dial(server)
      const got = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
      socket.write(text)
      return got
    }
    // Without a length, more and more of it.
    const chunk = `400\r\n${'x'.repeat(0x400)}\r\n`
    expect(await answer(head('Transfer-Encoding: chunked') + chunk + chunk)).toMatch(/^HTTP\/1.1 413 /)
    // A body that never ends.
    expect(await answer(`${head('Content-Length: 500')}{`)).toMatch(/^HTTP\/1.1 408 /)
    expect((await server.client().threads()).threads).toEqual([])
  })

  it('may keep open as many streams as it is allowed, and others are not concerned', async () => {
    const server = await serve({ limits: { streamsPerPrincipal: 3 } })
    await server.client().thread('t').run({ program: 'desk', input: {} })
    const open = await Promise.all([1, 2, 3].map(() => server.fetch('/v1/threads/t/events')))
    expect(open.map(({ status }) => status)).toEqual([200, 200, 200])
    const refused = await server.fetch('/v1/threads/t/events')
    expect(await refused.json()).toMatchObject({ status: 429, code: 'too-many-streams', retryable: true })
    const other = await server.fetch('/v1/threads/t/events', { token: TOKENS.reader.token })
    expect(other.status).toBe(200)
    await Promise.all([...open, other].map(({ body }) => body?.cancel()))
    await until(() => server.server.openStreams === 0)
    const again = await server.fetch('/v1/threads/t/events')
    expect(again.status).toBe(200)
    await again.body?.cancel()
  })

  it('that stalls is cut off, and its run goes on', async () => {
    const server = await serve({ limits: { stallMs: 200 } })
    const socket = await dial(server)
    // Much more than the buffers of the connection hold.
    const body = JSON.stringify({ program: 'desk', input: { tell: 400, size: 100_000 } })
    socket.pause()
    socket.write(
      `POST /v1/threads/t/runs/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKENS.ada.token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await until(() => server.server.openStreams === 1)
    await until(() => server.server.openStreams === 0)
    await until(async () => (await server.client().thread('t').state()).status === 'completed')
  })

  it('that opens a thousand idle streams leaves the server answering, and each hears of news', async () => {
    const server = await serve({ limits: { streamsPerPrincipal: 1000 } })
    await server.client().thread('t').run({ program: 'desk', input: {} })
    const { checkpoint } = (await server.client().thread('t').show()).thread
    const path = `/v1/threads/t/events?after=${encodeURIComponent(checkpoint)}`
    const open = async () => {
      const socket = await dial(server)
      let text = ''
      const news = new Promise<void>((resolve) => {
        socket.setEncoding('utf8').on('data', (data: string) => {
          text += data
          if (text.includes('"status":"completed"')) resolve()
        })
      })
      socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKENS.ada.token}\r\n\r\n`)
      return { socket, news }
    }
    const sockets: Awaited<ReturnType<typeof open>>[] = []
    // Not all at once: how many connections may wait to be taken is up to the system, which resets the others.
    while (sockets.length < 1000) {
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, open))))
      await until(() => server.server.openStreams === sockets.length)
    }
    expect(await server.client().thread('t').run({ input: {} })).toMatchObject({ status: 'completed' })
    await Promise.all(sockets.map(({ news }) => news))
    for (const { socket } of sockets) socket.destroy()
    await until(() => server.server.openStreams === 0)
  }, 600_000)
})
