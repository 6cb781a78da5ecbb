// @ts-check
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import net from 'node:net'

const lowest = 10_001

/**
 * Where the kernel begins to take source ports for outgoing connections. A server port above it is unsafe in tests
 * that kill and restart the server: while it is down a client's reconnect can be given that very port as its source,
 * and then either connects to itself or keeps the server from binding again.
 */
function ephemeralStart() {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/)[0])
  } catch {
    return process.platform === 'linux' ? 32_768 : 49_152
  }
}

/**
 * A port on 127.0.0.1 that nobody listens on right now. Another process may take it before the server does:
 * use `onFreePort`, which tries again with another one.
 * @param {{ alsoFree?: number }} [options] `alsoFree`: distance of a second port that must be free as well
 *   (Redis Cluster's bus listens on the port plus 10,000)
 * @returns {Promise<number>}
 */
export async function freePort({ alsoFree = 0 } = {}) {
  const end = ephemeralStart() - alsoFree
  for (let attempt = 0; end > lowest + 1000 && attempt < 200; attempt++) {
    const port = randomInt(lowest, end)
    if ((await canListen(port)) && (alsoFree === 0 || (await canListen(port + alsoFree)))) return port
  }
  // The range is set unusually wide on this machine: take what the kernel gives.
  for (;;) {
    const port = await listenOnce(0)
    if (alsoFree === 0 || (port + alsoFree < 65_536 && (await canListen(port + alsoFree)))) return port
  }
}

/**
 * @template T
 * @param {(port: number) => Promise<T>} start rejects with an error whose `code` is EADDRINUSE when it lost the race
 * @param {{ alsoFree?: number, port?: number | undefined }} [options] `port`: this one and no other
 * @returns {Promise<T>}
 */
export async function onFreePort(start, { alsoFree = 0, port } = {}) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(port ?? (await freePort({ alsoFree })))
    } catch (error) {
      const lostRace = /** @type {NodeJS.ErrnoException} */ (error).code === 'EADDRINUSE'
      if (!lostRace || port !== undefined || attempt === 5) throw error
    }
  }
}

/** @param {number} port */
function canListen(port) {
  return listenOnce(port).then(
    () => true,
    () => false,
  )
}

/**
 * @param {number} port
 * @returns {Promise<number>}
 */
function listenOnce(port) {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = /** @type {net.AddressInfo} */ (server.address())
      server.close(() => resolve(address.port))
    })
  })
}
