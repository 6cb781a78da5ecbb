import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { checkOptionNames } from '../core/wording/option-names.js'
import { InvalidOptionError } from '../errors.js'
import type { HoldfastServer } from './create-server.js'

/** Where to listen. */
export interface ListenOptions {
  /** Default 127.0.0.1: this machine only. */
  readonly host?: string
  /** Default 8787; 0 takes any free port. */
  readonly port?: number
}

/** A server that is listening. */
export interface Listening {
  readonly url: string
  readonly port: number
  /**
   * Accepts no new connections, ends the streams with an event that tells clients to reconnect, then closes the rest.
   */
  close(): Promise<void>
}

/** How long headers may take to arrive: a client that sends them byte by byte holds a connection and nothing else. */
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 60_000
const CLOSE_GRACE_MS = 2000
/** All clients of a restarted server connect at once; what the system has no room for is cut off. */
const BACKLOG = 4096

/** Listens for requests with Node's own HTTP server. */
export async function listen(server: HoldfastServer, options: ListenOptions = {}): Promise<Listening> {
  checkOptionNames('listen()', options, { host: true, port: true })
  const { host = '127.0.0.1', port = 8787 } = options
  if (!(Number.isSafeInteger(port) && port >= 0 && port <= 65_535)) {
    throw new InvalidOptionError('port', `must be 0 to 65535, not ${String(port)}`, 'Pass a whole number.')
  }
  const node = createAdaptorServer({
    fetch: server.fetch,
    serverOptions: { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS },
  })
  await new Promise<void>((resolve, reject) => {
    node.once('error', reject)
    node.listen({ host, port, backlog: BACKLOG }, () => {
      node.off('error', reject)
      resolve()
    })
  })
  const address = node.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    async close() {
      const closed = new Promise<void>((resolve) => node.close(() => resolve()))
      const stopped = server.close()
      const { closeAllConnections, closeIdleConnections } = node as Server
      // Connections on which a stream has just ended are kept alive by their clients, and would delay the shutdown.
      const idle = setInterval(() => closeIdleConnections?.call(node), 20)
      const late = setTimeout(() => closeAllConnections?.call(node), CLOSE_GRACE_MS)
      await stopped
      await closed
      clearInterval(idle)
      clearTimeout(late)
    },
  }
}

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
