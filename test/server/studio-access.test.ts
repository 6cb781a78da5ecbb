import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { setUpServers, TOKENS } from './server-setup.js'

const files = ['index.html', 'studio.js', 'studio.css', 'icon.svg', 'licenses.txt']
const LARGEST_BYTES = 150 * 1024

/** What a browser sends from the studio's own page. */
const own = (url: string) => ({ origin: url, 'sec-fetch-site': 'same-origin' })

describe('the studio', () => {
  const { serve } = setUpServers()

  async function signedIn() {
    const server = await serve({ studio: true })
    const response = await fetch(`${server.url}/studio/session`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.ada.token}`, ...own(server.url) },
    })
    const given = response.headers.get('set-cookie') ?? ''
    return { server, status: response.status, given, cookie: given.split(';')[0] as string }
  }

  it('is served only where it was asked for, and never over what the API serves', async () => {
    const plain = await serve()
    expect((await fetch(`${plain.url}/studio`)).status).toBe(404)
    const { url } = await serve({ studio: true })
    for (const path of ['/studio', '/studio/', '/studio/thread/t?at=main~1~x', '/studio/../studio/inbox']) {
      const page = await fetch(url + path)
      expect([page.status, page.headers.get('content-type')], path).toEqual([200, 'text/html; charset=utf-8'])
    }
    expect((await fetch(`${url}/studio/studio.js`)).headers.get('content-type')).toMatch(/^text\/javascript/)
    expect((await fetch(`${url}/v1/threads`)).status).toBe(401)
  })

  it('lets its page load nothing from elsewhere, run no script but its own, and be framed by nobody', async () => {
    const { url } = await serve({ studio: true })
    const page = await fetch(`${url}/studio`)
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    expect(policy).not.toMatch(/unsafe|\*|https?:|data:/)
    expect(policy).toContain("frame-ancestors 'none'")
    const html = await page.text()
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|https?:/)
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    const again = await fetch(`${url}/studio`, { headers: { 'if-none-match': page.headers.get('etag') as string } })
    expect(again.status).toBe(304)
  })

  it('knows where it is mounted', async () => {
    const { url } = await serve({ studio: true, basePath: '/api/agents' })
    expect((await fetch(`${url}/studio`)).status).toBe(404)
    const html = await (await fetch(`${url}/api/agents/studio/inbox`)).text()
    expect(html).toContain('src="/api/agents/studio/studio.js"')
    expect((await fetch(`${url}/api/agents/studio/studio.js`)).headers.get('content-type')).toMatch(/javascript/)
  })

  it('changes a token for a cookie that no script can read, no other page can send, and that does not hold the token', async () => {
    const { server, status, given, cookie } = await signedIn()
    expect(status).toBe(204)
    expect(given).toMatch(/; Path=\/v1; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    expect(given).toMatch(new RegExp(`^holdfast_${server.port}=`))
    const hidden = Buffer.from(cookie.split('=')[1] as string, 'base64url').toString('latin1')
    expect(hidden).not.toContain(TOKENS.ada.token)
    const me = await fetch(`${server.url}/v1/me`, { headers: { cookie, 'sec-fetch-site': 'same-origin' } })
    expect(await me.json()).toMatchObject({ tenant: 'acme', subject: 'ada@acme.example' })
    const wrong = await fetch(`${server.url}/studio/session`, {
      method: 'POST',
      headers: { authorization: 'Bearer wrong', ...own(server.url) },
    })
    expect([wrong.status, wrong.headers.get('set-cookie')]).toEqual([401, null])
    const out = await fetch(`${server.url}/studio/session`, { method: 'DELETE', headers: own(server.url) })
    expect(out.headers.get('set-cookie')).toMatch(/^holdfast_\d+=; Path=\/v1; Max-Age=0;/)
  })

  it('takes the cookie from its own page alone', async () => {
    const { server, cookie } = await signedIn()
    const { url } = server
    const start = (headers: Record<string, string>) =>
      fetch(`${url}/v1/threads/t/runs`, {
        method: 'POST',
        headers: { cookie, 'content-type': 'application/json', ...headers },
        body: '{"program":"counter","input":{}}',
      })
    // Other ports of this machine are the same site for a browser, which then sends the cookie along.
    const other = `http://127.0.0.1:${server.port + 1}`
    expect((await start({ origin: other, 'sec-fetch-site': 'same-site' })).status).toBe(403)
    expect((await start({ origin: url, 'sec-fetch-site': 'same-site' })).status).toBe(401)
    expect((await start({ origin: url, 'sec-fetch-site': 'cross-site' })).status).toBe(401)
    expect((await start({ 'sec-fetch-site': 'same-origin' })).status).toBe(401)
    expect((await start({})).status).toBe(401)
    expect((await server.client().threads()).threads).toEqual([])
    for (const site of ['same-site', 'cross-site', 'none', undefined]) {
      const headers = { cookie, ...(site === undefined ? {} : { 'sec-fetch-site': site }) }
      expect((await fetch(`${url}/v1/threads`, { headers })).status, site).toBe(401)
    }
    expect((await start(own(url))).status).toBe(202)
  })

  it('takes no cookie that it did not make, that is another server’s, or where the page of an allowed origin sends it', async () => {
    const { server, cookie } = await signedIn()
    const [name, value = ''] = cookie.split('=') as [string, string]
    const headers = (sealed: string) => ({ cookie: `${name}=${sealed}`, ...own(server.url) })
    for (const wrong of ['', 'x', value.slice(1), `${value.slice(0, -2)}AA`, TOKENS.ada.token]) {
      expect((await fetch(`${server.url}/v1/me`, { headers: headers(wrong) })).status, wrong).toBe(401)
    }
    const plain = await serve()
    expect((await fetch(`${plain.url}/v1/me`, { headers: { cookie, ...own(plain.url) } })).status).toBe(401)
    const friendly = await serve({ studio: true, origins: ['https://app.example.com'] })
    const foreign = { cookie: `holdfast_${friendly.port}=${value}`, origin: 'https://app.example.com' }
    expect((await fetch(`${friendly.url}/v1/me`, { headers: foreign })).status).toBe(401)
    // The other dialects are not the studio's.
    const assistants = await fetch(`${server.url}/assistants/search`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json', ...own(server.url) },
      body: '{}',
    })
    expect(assistants.status).toBe(401)
  })

  it('lets a session hold with every server of the same tokens, and none of another', async () => {
    const { cookie } = await signedIn()
    const [, value] = cookie.split('=')
    const twin = await serve({ studio: true })
    const mine = { cookie: `holdfast_${twin.port}=${value}`, ...own(twin.url) }
    expect((await fetch(`${twin.url}/v1/me`, { headers: mine })).status).toBe(200)
    const other = await serve({ studio: true, tokens: [TOKENS.reader] })
    const theirs = { cookie: `holdfast_${other.port}=${value}`, ...own(other.url) }
    expect((await fetch(`${other.url}/v1/me`, { headers: theirs })).status).toBe(401)
  })

  it('weighs at most 150 KB with everything, packed as it is sent', () => {
    const sizes = files.map(
      (name) => gzipSync(readFileSync(new URL(`../../dist/studio/${name}`, import.meta.url))).length,
    )
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(LARGEST_BYTES)
  })
})

describe('a token for several tenants', () => {
  const { serve } = setUpServers()
  const many = { token: 'token-of-operator-0', tenant: 'acme', subject: 'op', tenants: ['other'] } as const
  const all = { token: 'token-of-everyone-0', tenant: 'acme', subject: 'root', tenants: '*' } as const

  it('acts for the one that a request names, if it may, and for its own otherwise', async () => {
    const server = await serve({ tokens: [...Object.values(TOKENS), many, all] })
    await server.client('other').thread('theirs').run({ program: 'counter', input: {} })
    const list = async (token: string, tenant?: string) => {
      const headers = tenant === undefined ? {} : { 'x-holdfast-tenant': tenant }
      const response = await server.fetch('/v1/threads', { token, headers })
      const { threads } = (await response.json()) as { threads?: readonly { id: string }[] }
      return threads?.map(({ id }) => id) ?? response.status
    }
    expect(await list(many.token)).toEqual([])
    expect(await list(many.token, 'other')).toEqual(['theirs'])
    expect(await list(many.token, 'third')).toBe(403)
    expect(await list(all.token, 'other')).toEqual(['theirs'])
    expect(await list(all.token, 'third')).toEqual([])
    expect(await list(all.token, '')).toBe(400)
    expect(await list(TOKENS.ada.token, 'other')).toBe(403)
    expect(await list(TOKENS.ada.token, 'acme')).toEqual([])
    const tenants = async (token: string) => (await server.fetch('/v1/tenants', { token })).json()
    expect(await tenants(many.token)).toEqual({ tenants: ['acme', 'other'] })
    expect(await tenants(all.token)).toEqual({ tenants: ['acme', 'other'] })
    expect(await tenants(TOKENS.ada.token)).toEqual({ tenants: ['acme'] })
    await expect(serve({ tokens: [{ ...all, tenants: 'other' as never }] })).rejects.toThrow(/tenants/)
  })
})
