import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ChaosProxy, startChaosProxy } from '#src/testing/chaos-proxy.js'
import { until } from '../support/until.js'

/** Answers each line with `ok <line>`, and remembers what it handled and how its connections ended. */
async function startLineServer() {
  const handled: string[] = []
  const endings: string[] = []
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    let rest = ''
    let ended = 'FIN'
    socket.on('data', (chunk) => {
      const lines = (rest + chunk.toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        handled.push(line)
        socket.write(`ok ${line}\n`)
      }
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      ended = error.code ?? 'error'
    })
    socket.on('close', () => {
      sockets.delete(socket)
      endings.push(ended)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as net.AddressInfo).port,
    handled,
    endings,
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A client that asks one line at a time. */
async function connect(port: number) {
  const socket = net.connect({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString()
  })
  let ending: string | undefined
  socket.on('end', () => {
    ending ??= 'FIN'
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    ending ??= error.code ?? 'error'
  })
  socket.on('close', () => {
    ending ??= 'FIN'
  })
  return {
    socket,
    received: () => received,
    ending: () => ending,
    async ask(line: string) {
      socket.write(`${line}\n`)
      await until(() => {
        const isAnswered = received.includes(`ok ${line}\n`)
        if (!isAnswered && socket.destroyed) throw new Error(`closed before "${line.slice(0, 20)}" was answered`)
        return isAnswered
      }, 5)
    },
  }
}

let server: Awaited<ReturnType<typeof startLineServer>>
let proxy: ChaosProxy

beforeEach(async () => {
  server = await startLineServer()
  proxy = await startChaosProxy({ target: { host: '127.0.0.1', port: server.port } })
})

afterEach(async () => {
  await proxy.close()
  await server.close()
})

describe('a healthy chaos proxy', () => {
  it('passes bytes both ways unchanged and counts them', async () => {
    const client = await connect(proxy.port)
    const line = 'x'.repeat(3_000_000)
    await client.ask(line)
    expect(server.handled).toEqual([line])
    expect(proxy.counters).toMatchObject({ connections: 1, active: 1, bytesUp: 3_000_001, bytesDown: 3_000_004 })
  })

  it('passes on a half-closed connection: the reply after the FIN still arrives', async () => {
    const client = await connect(proxy.port)
    client.socket.end('last\n')
    await until(() => client.ending() === 'FIN')
    expect(client.received()).toBe('ok last\n')
    await until(() => proxy.counters.active === 0)
  })

  it('passes on the end that the server makes', async () => {
    const client = await connect(proxy.port)
    await client.ask('a')
    for (const socket of server.sockets) socket.resetAndDestroy()
    await until(() => client.ending() === 'ECONNRESET')
  })

  it('resets a client whose server is not there', async () => {
    await server.close()
    const client = await connect(proxy.port)
    await until(() => client.ending() === 'ECONNRESET')
    server = await startLineServer()
  })

  it('points a URL at itself and keeps the rest of it', () => {
    const { port } = proxy
    expect(proxy.url('postgres://user:p%40ss@db.example:5432/name?sslmode=disable')).toBe(
      `postgres://user:p%40ss@127.0.0.1:${port}/name?sslmode=disable`,
    )
    expect(proxy.url('redis://localhost')).toBe(`redis://127.0.0.1:${port}`)
  })

  it('lets go of its port and its connections when disposed', async () => {
    const client = await connect(proxy.port)
    await proxy[Symbol.asyncDispose]()
    await until(() => client.ending() !== undefined)
    await expect(connect(proxy.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})

describe('the faults of a chaos proxy', () => {
  it('cut: both sides see an orderly end, and a new connection works', async () => {
    const client = await connect(proxy.port)
    await client.ask('a')
    proxy.cut()
    await until(() => client.ending() !== undefined && server.endings.length === 1)
    expect([client.ending(), server.endings]).toEqual(['FIN', ['FIN']])
    await (await connect(proxy.port)).ask('b')
  })

  it('cut on new: only connections opened afterwards are ended, until healed', async () => {
    const before = await connect(proxy.port)
    await before.ask('a')
    proxy.cut({ on: 'new' })
    const after = await connect(proxy.port)
    await until(() => after.ending() === 'FIN')
    await before.ask('b')
    await proxy.heal()
    await (await connect(proxy.port)).ask('c')
  })

  it('reset: both sides see the reset', async () => {
    const client = await connect(proxy.port)
    await client.ask('a')
    proxy.reset()
    await until(() => client.ending() !== undefined && server.endings.length === 1)
    expect([client.ending(), server.endings]).toEqual(['ECONNRESET', ['ECONNRESET']])
  })

  it('stall: nothing gets through and nobody is told; resume delivers what was held back, in order', async () => {
    const client = await connect(proxy.port)
    await client.ask('a')
    proxy.stall()
    client.socket.write('b\nc\n')
    const late = await connect(proxy.port)
    late.socket.write('d\n')
    await sleep(150)
    expect(server.handled).toEqual(['a'])
    expect(server.sockets.size).toBe(1)
    expect([client.ending(), late.ending()]).toEqual([undefined, undefined])
    proxy.resume()
    await until(() => client.received() === 'ok a\nok b\nok c\n' && late.received() === 'ok d\n')
  })

  it('stall: holds back a reply that the server has already sent', async () => {
    const client = await connect(proxy.port)
    await client.ask('a')
    const [connection] = server.sockets
    proxy.stall({ on: 'existing' })
    connection?.write('pushed\n')
    await (await connect(proxy.port)).ask('another')
    await sleep(50)
    expect(client.received()).toBe('ok a\n')
    await proxy.heal()
    await until(() => client.received() === 'ok a\npushed\n')
  })

  it('halfOpen: the server has lost the connection, the client is told nothing until healed', async () => {
    const client = await connect(proxy.port)
    await client.ask('a')
    proxy.halfOpen()
    await until(() => server.endings.length === 1)
    client.socket.write('b\n')
    await sleep(150)
    expect(client.ending()).toBeUndefined()
    expect(client.received()).toBe('ok a\n')
    expect(server.handled).toEqual(['a'])
    await proxy.heal()
    await until(() => client.ending() === 'ECONNRESET')
  })

  it('halfOpen on new: connections open and stay silent without reaching the server', async () => {
    proxy.halfOpen({ on: 'new' })
    const client = await connect(proxy.port)
    client.socket.write('a\n')
    await sleep(100)
    expect(client.ending()).toBeUndefined()
    expect(server.sockets.size).toBe(0)
  })

  it('dropAfterRequest: the server handles the request, the client gets a reset in place of the reply', async () => {
    const client = await connect(proxy.port)
    await client.ask('a')
    const lost = proxy.dropAfterRequest()
    client.socket.write('b\n')
    expect(await lost).toBe(1)
    await until(() => client.ending() === 'ECONNRESET')
    expect(client.received()).toBe('ok a\n')
    expect(server.handled).toEqual(['a', 'b'])
    expect(proxy.counters.faults.dropAfterRequest).toBe(1)
    const next = await connect(proxy.port)
    await next.ask('c')
  })

  it('dropAfterRequest: counts, and picks requests by their bytes', async () => {
    const lost = proxy.dropAfterRequest(2, { when: (request) => request.includes('commit') })
    for (const round of [1, 2]) {
      const client = await connect(proxy.port)
      await client.ask(`begin ${round}`)
      client.socket.write(`commit ${round}\n`)
      await until(() => client.ending() === 'ECONNRESET')
    }
    expect(await lost).toBe(2)
    await (await connect(proxy.port)).ask('commit 3')
    expect(server.handled).toEqual(['begin 1', 'commit 1', 'begin 2', 'commit 2', 'commit 3'])
  })

  it('dropAfterRequest: heal ends the wait and tells how many were lost', async () => {
    const lost = proxy.dropAfterRequest(5)
    await proxy.heal()
    expect(await lost).toBe(0)
    await (await connect(proxy.port)).ask('a')
  })

  it('slow: bytes arrive at the given rate, in torn pieces', async () => {
    const client = await connect(proxy.port)
    proxy.slow({ bytesPerSecond: 1000 })
    let pieces = 0
    client.socket.on('data', () => pieces++)
    const began = performance.now()
    await client.ask('y'.repeat(300))
    // 301 bytes up and 304 down at 1000 per second, the two partly at the same time.
    expect(performance.now() - began).toBeGreaterThan(300)
    expect(pieces).toBeGreaterThan(2)
    await proxy.heal()
    pieces = 0
    await client.ask('z'.repeat(300))
    expect(pieces).toBe(1)
  })

  it('slow: a delay is added in each direction', async () => {
    const client = await connect(proxy.port)
    proxy.slow({ delayMs: 80 })
    const began = performance.now()
    await client.ask('a')
    expect(performance.now() - began).toBeGreaterThan(150)
  })

  it('refuse: new connections are refused, open ones live on, heal listens on the same port again', async () => {
    const client = await connect(proxy.port)
    await client.ask('a')
    await proxy.refuse()
    await expect(connect(proxy.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await client.ask('b')
    await proxy.heal()
    await (await connect(proxy.port)).ask('c')
  })

  it('counts each fault', async () => {
    proxy.cut()
    proxy.reset()
    proxy.stall()
    proxy.slow({ delayMs: 1 })
    proxy.halfOpen()
    await proxy.refuse()
    const applied = { cut: 1, reset: 1, stall: 1, halfOpen: 1, slow: 1, refuse: 1 }
    expect(proxy.counters.faults).toEqual({ ...applied, dropAfterRequest: 0 })
  })
})

describe('random faults', () => {
  const pace = { everyMs: [2, 10], holdMs: [2, 15] } as const

  it('come in the same order from the same seed', async () => {
    const runs = []
    for (const seed of [7, 7, 8]) {
      const faults = proxy.randomFaults(seed, pace)
      await until(() => faults.applied.length >= 12)
      await faults.stop()
      runs.push(faults.applied.slice(0, 12).join(' '))
    }
    expect(runs[0]).toBe(runs[1])
    expect(runs[0]).not.toBe(runs[2])
  })

  it('never tear or mix what a client receives, and stopping heals', async () => {
    const faults = proxy.randomFaults(42, pace)
    let answered = 0
    for (let attempt = 0; attempt < 60 || faults.applied.length < 40 || answered === 0; attempt++) {
      const client = await connect(proxy.port).catch(() => undefined)
      if (!client) {
        await sleep(3)
        continue
      }
      const line = `attempt ${attempt}`
      await Promise.race([
        client.ask(line).catch(() => {}),
        sleep(30 + attempt),
        once(client.socket, 'close').catch(() => {}),
      ])
      if (client.received() === `ok ${line}\n`) answered++
      // A slowed reply may be cut short; it is never somebody else's.
      expect(`ok ${line}\n`.startsWith(client.received())).toBe(true)
      client.socket.destroy()
    }
    await faults.stop()
    await (await connect(proxy.port)).ask('healed')
  })
})
