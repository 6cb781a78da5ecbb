import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HoldfastClient } from 'holdfast/client'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { setUpProcesses } from './serve-process.js'

const programs = fileURLToPath(new URL('served-programs.mjs', import.meta.url))
const backends = (await durableBackends()).filter(({ name }) => name === 'SQLite' || name === 'Postgres')
const folder = mkdtempSync(join(tmpdir(), 'holdfast-serve-'))
const { serve, TOKEN } = setUpProcesses(programs)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(backends)('holdfast serve on $name', ({ name, missing, fresh, cleanup }) => {
  afterAll(cleanup)

  it.skipIf(missing)('is killed in mid-run, and a second one goes on while a client follows', async () => {
    const store = await fresh()
    const gate = join(folder, `gate-${name}`)
    const first = await serve(store, ['--lease', '1s'])
    let { url } = first.ready
    // One address for the client, as a load balancer gives: whichever server is there.
    const client = new HoldfastClient({
      baseUrl: 'http://balancer',
      token: TOKEN,
      fetch: (input, init) => fetch(input.replace('http://balancer', url), init),
    })
    const steps: unknown[] = []
    let outcome: unknown
    for await (const event of client.thread('t').stream({ program: 'gated', input: { gate } })) {
      if (event.type === 'outcome') outcome = event['outcome']
      if (event.type !== 'step') continue
      steps.push(event['step'])
      if (event['step'] !== 'first') continue
      first.child.kill('SIGKILL')
      await first.ended
      url = (await serve(store, ['--lease', '1s'])).ready.url
      writeFileSync(gate, '')
    }
    expect(steps).toEqual(['first', 'gate', 'last'])
    expect(outcome).toMatchObject({ status: 'completed', output: { first: first.child.pid } })
    expect((outcome as { output: { last: number } }).output.last).not.toBe(first.child.pid)
  })
})

describe('holdfast serve', () => {
  it('prints a random token where none is set, and ends at SIGTERM with its streams told', async () => {
    const { child, ended, ready } = await serve('memory:', [], {})
    expect(ready.token).toMatch(/^hf_[\w-]{32}$/)
    expect(ready.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const client = new HoldfastClient({ baseUrl: ready.url, token: ready.token as string })
    const gate = join(folder, 'open')
    writeFileSync(gate, '')
    expect(await client.thread('t').run({ input: { gate } })).toMatchObject({ status: 'completed' })
    const stream = await fetch(`${ready.url}/v1/threads/t/events`, {
      headers: { authorization: `Bearer ${ready.token}` },
    })
    child.kill('SIGTERM')
    expect(await stream.text()).toContain('event: reconnect')
    expect(await ended).toBe(0)
  })

  it('keeps a token of the environment to itself', async () => {
    const { ready } = await serve('memory:')
    expect(ready).not.toHaveProperty('token')
    expect(await new HoldfastClient({ baseUrl: ready.url, token: TOKEN }).me()).toMatchObject({ tenant: 'default' })
  })

  it('reads tokens, tenants and roles from a file', async () => {
    const file = join(folder, 'tokens.json')
    writeFileSync(
      file,
      JSON.stringify([{ token: 'a-token-from-a-file', tenant: 'acme', subject: 'ada', roles: ['read'] }]),
    )
    const { ready } = await serve('memory:', ['--tokens', file], {})
    const client = new HoldfastClient({ baseUrl: ready.url, token: 'a-token-from-a-file' })
    expect(await client.me()).toEqual({ tenant: 'acme', subject: 'ada', roles: ['read'] })
    await expect(client.thread('t').start({ input: 1 })).rejects.toMatchObject({ status: 403 })
  })
})
