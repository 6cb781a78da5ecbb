import { randomInt } from 'node:crypto'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChaosLink, type LinkHost, type Pace } from './chaos-link.js'
import { applyRandomFaults, type RandomFaultOptions, type RandomFaults } from './random-faults.js'

export type { Pace } from './chaos-link.js'
export type { RandomFaultOptions, RandomFaults } from './random-faults.js'

export type ChaosFault = 'cut' | 'reset' | 'stall' | 'halfOpen' | 'dropAfterRequest' | 'slow' | 'refuse'

/** Which connections a fault hits: the ones that are open now, the ones opened until `heal()`, or both. */
export interface FaultScope {
  readonly on?: 'existing' | 'new' | 'all'
}

export interface ChaosProxyOptions {
  readonly target: { readonly host: string; readonly port: number }
  /** Default: a free one. */
  readonly port?: number
}

export interface ChaosCounters {
  /** Connections accepted so far. */
  readonly connections: number
  /** Connections open now. */
  readonly active: number
  /** Bytes taken from clients for the server. */
  readonly bytesUp: number
  /** Bytes taken from the server for clients. */
  readonly bytesDown: number
  /** How often each fault was applied; for `dropAfterRequest`, how many replies were lost. */
  readonly faults: Readonly<Record<ChaosFault, number>>
}

/** A TCP proxy between a client and a server that fails on command, in the ways networks do. */
export interface ChaosProxy extends AsyncDisposable {
  readonly host: string
  readonly port: number
  readonly counters: ChaosCounters
  /** The same URL, through the proxy. */
  url(original: string): string
  /** Connections are closed cleanly (FIN to both): a restarted load balancer, an idle timeout. Default: existing. */
  cut(scope?: FaultScope): void
  /** Connections are reset (RST to both): a crashed peer, a firewall that lost its table. Default: existing. */
  reset(scope?: FaultScope): void
  /** Nothing gets through and nobody is told: a partition, a frozen server. Default: all. Ends with `resume()`. */
  stall(scope?: FaultScope): void
  /** What was stalled continues, with the bytes that were held back. */
  resume(): void
  /** The server forgets the connection, the client keeps it: power loss of the server's host. Default: existing. */
  halfOpen(scope?: FaultScope): void
  /**
   * The lost acknowledgment: the next request reaches the server and is handled, its reply is swallowed and the client
   * is reset. `when` picks the request by its bytes, such as the ones with a COMMIT in them.
   * @returns the number of replies lost, once there are `times` of them, or when `heal()` or `close()` ended the wait
   */
  dropAfterRequest(times?: number, options?: { readonly when?: (request: Buffer) => boolean }): Promise<number>
  /** Everything gets through late or in trickles: a congested line. Default: all. */
  slow(pace: Pace, scope?: FaultScope): void
  /** New connections are refused (the listener is gone): a server that isn't up. Open connections stay. */
  refuse(): Promise<void>
  /** Ends every fault. Late bytes arrive, half-open connections are reset, as they are once a network is back. */
  heal(): Promise<void>
  /** Faults at random, from a seed, until stopped; stopping heals. */
  randomFaults(seed: number, options?: RandomFaultOptions): RandomFaults
  close(): Promise<void>
}

/** Replies that are yet to be lost. */
interface LostReplies {
  readonly times: number
  left: number
  lost: number
  readonly when: (request: Buffer) => boolean
  readonly done: (lost: number) => void
}

/** Starts a proxy on 127.0.0.1 in front of `target`. */
export async function startChaosProxy({ target, port: wanted }: ChaosProxyOptions): Promise<ChaosProxy> {
  const host = '127.0.0.1'
  const links = new Set<ChaosLink>()
  const faults = { cut: 0, reset: 0, stall: 0, halfOpen: 0, dropAfterRequest: 0, slow: 0, refuse: 0 }
  const totals = { connections: 0, bytesUp: 0, bytesDown: 0 }
  const drops: LostReplies[] = []
  /** What hits a connection when it is opened, by the fault's name: a later call of the same fault replaces it. */
  const onNew = new Map<ChaosFault, (link: ChaosLink) => void>()

  const linkHost: LinkHost = {
    target,
    takesReply(request) {
      const drop = drops.find(({ left, when }) => left > 0 && when(request))
      if (!drop) return undefined
      drop.left--
      return () => {
        faults.dropAfterRequest++
        drop.lost++
        if (drop.lost < drop.times) return
        if (drops.includes(drop)) drops.splice(drops.indexOf(drop), 1)
        drop.done(drop.lost)
      }
    },
    counted(direction, bytes) {
      if (direction === 'up') totals.bytesUp += bytes
      else totals.bytesDown += bytes
    },
    closed: (link) => void links.delete(link),
  }

  function accept(client: net.Socket): void {
    totals.connections++
    const link = new ChaosLink(client, linkHost)
    links.add(link)
    for (const fault of onNew.values()) fault(link)
    // Stalled connections are accepted and go no further: the server must not see them before `resume()`.
    if (!onNew.has('stall')) link.connect()
  }

  function apply(fault: ChaosFault, on: 'existing' | 'new' | 'all', act: (link: ChaosLink) => void): void {
    faults[fault]++
    if (on !== 'new') for (const link of [...links]) act(link)
    if (on !== 'existing') onNew.set(fault, act)
  }

  function disarmDrops(): void {
    for (const drop of drops.splice(0)) drop.done(drop.lost)
  }

  let closed = false
  let server: net.Server | undefined = await listen(host, wanted, accept)
  const { port } = server.address() as net.AddressInfo

  const proxy: ChaosProxy = {
    host,
    port,
    get counters() {
      return { ...totals, active: links.size, faults: { ...faults } }
    },
    url(original) {
      const url = new URL(original)
      url.hostname = host
      url.port = String(port)
      return url.href
    },
    cut: ({ on = 'existing' } = {}) => apply('cut', on, (link) => link.cut()),
    reset: ({ on = 'existing' } = {}) => apply('reset', on, (link) => link.reset()),
    stall: ({ on = 'all' } = {}) => apply('stall', on, (link) => link.stall()),
    halfOpen: ({ on = 'existing' } = {}) => apply('halfOpen', on, (link) => link.halfOpen()),
    slow: (pace, { on = 'all' } = {}) => apply('slow', on, (link) => link.slow(pace)),
    resume() {
      onNew.delete('stall')
      for (const link of links) link.resume()
    },
    dropAfterRequest(times = 1, { when = () => true } = {}) {
      return new Promise((done) => drops.push({ times, left: times, lost: 0, when, done }))
    },
    async refuse() {
      faults.refuse++
      // Without waiting for the close: it would wait for the open connections, which stay.
      server?.close()
      server = undefined
      await new Promise((resolve) => setImmediate(resolve))
    },
    async heal() {
      onNew.clear()
      disarmDrops()
      for (const link of [...links]) link.heal()
      if (!server && !closed) server = await listen(host, port, accept)
    },
    randomFaults: (seed, options = {}) => applyRandomFaults(proxy, seed, options),
    async close() {
      closed = true
      disarmDrops()
      for (const link of [...links]) link.destroy()
      const closing = server
      server = undefined
      if (closing) await new Promise((resolve) => closing.close(resolve))
    },
    [Symbol.asyncDispose]: () => proxy.close(),
  }
  return proxy
}

async function listen(
  host: string,
  wanted: number | undefined,
  accept: (client: net.Socket) => void,
): Promise<net.Server> {
  for (let attempt = 1; ; attempt++) {
    const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, accept)
    // Below the ports that the kernel gives to outgoing connections: while the proxy refuses, a client that reconnects
    // could otherwise be given this very port, connect to itself, and keep the proxy from coming back.
    const port = wanted ?? randomInt(10_000, 32_000)
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen({ host, port, exclusive: true }, resolve)
      })
      return server
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || attempt === 50) throw error
      if (wanted !== undefined) await sleep(20)
    }
  }
}
