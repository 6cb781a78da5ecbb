// @ts-check
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { onFreePort } from './ports.mjs'
import { findRedis } from './redis-binaries.mjs'
import { redisCommand } from './resp.mjs'
import { makeRunFolder } from './run-folder.mjs'
import { startServerProcess } from './server-process.mjs'

/**
 * @typedef {object} RedisOptions
 * @property {boolean | 'yes' | 'no'} [appendonly] default yes
 * @property {'always' | 'everysec' | 'no'} [appendfsync] default always
 * @property {string} [maxmemoryPolicy] default noeviction
 * @property {string} [maxmemory] such as `64mb`; default no limit
 * @property {string} [requirepass]
 * @property {Record<string, string>} [config] any further line of redis.conf, wins over the ones above
 * @property {number} [port] default a free one
 * @property {string} [folder] parent of the data folder, kept on stop; default a temporary one, removed on stop
 * @property {(line: string) => void} [log]
 * @property {boolean} [install] see findRedis
 */

/**
 * @typedef {object} RedisServer
 * @property {string} url
 * @property {number} port
 * @property {string} dir data folder, with the append-only files
 * @property {string} version
 * @property {string} from where the binary was found
 * @property {string} logFile
 * @property {() => number} pid
 * @property {(signal?: NodeJS.Signals) => Promise<void>} kill default SIGKILL; SIGSTOP and SIGCONT work as well
 * @property {(options?: { wipe?: boolean, config?: Record<string, string> }) => Promise<void>} restart same port, same
 *   data; ends the server first if it still runs. `wipe`: without its data, as after a lost disk. `config`: changes
 * @property {(...args: string[]) => Promise<string>} command one command, for what a test wants to know of the server
 * @property {() => Promise<void>} stop
 */

/**
 * A real Redis or Valkey on 127.0.0.1. By default it keeps what it acknowledged: append-only file, fsync always.
 * @param {RedisOptions} [options]
 * @returns {Promise<RedisServer>}
 */
export async function startRedis(options = {}) {
  const binary = await findRedis({
    ...(options.log && { log: options.log }),
    ...(options.install && { install: true }),
  })
  const runFolder = options.folder ? undefined : await makeRunFolder('redis')
  const folder = options.folder ?? /** @type {{ path: string }} */ (runFolder).path
  let config = configOf(options)
  const password = config['requirepass'] || undefined

  /** @param {number} port */
  async function launch(port) {
    const dir = join(folder, `redis-${port}`)
    await mkdir(dir, { recursive: true })
    const logFile = join(folder, `redis-${port}.log`)
    const lines = Object.entries({ port: String(port), dir, ...config })
    const server = await startServerProcess({
      name: 'redis-server',
      command: binary.path,
      args: lines.flatMap(([key, value]) => [`--${key}`, value]),
      cwd: dir,
      logFile,
      env: binary.env,
      // Killed, not asked: on SIGTERM it would finish its files first, and they are about to be removed.
      endSignal: 'SIGKILL',
      isReady: ({ pid }) => answers(port, password, pid),
    })
    return { server, port, dir, logFile }
  }

  try {
    const alsoFree = config['cluster-enabled'] === 'yes' ? 10_000 : 0
    const first = await onFreePort(launch, { port: options.port, alsoFree })
    const { port, dir, logFile } = first
    let { server } = first
    return {
      url: `redis://${password ? `:${encodeURIComponent(password)}@` : ''}127.0.0.1:${port}`,
      port,
      dir,
      logFile,
      version: binary.version,
      from: binary.from,
      pid: () => server.pid,
      kill: (signal = 'SIGKILL') => server.kill(signal),
      command: (...args) => redisCommand({ port, password }, args),
      async restart({ wipe = false, config: changes = {} } = {}) {
        // Asked politely first: a plain restart loses nothing, whatever appendfsync says.
        if (server.isRunning()) await server.kill('SIGTERM')
        for (const name of wipe ? await readdir(dir) : []) await rm(join(dir, name), { recursive: true })
        config = { ...config, ...changes }
        server = (await launch(port)).server
      },
      async stop() {
        await server.end()
        await runFolder?.remove()
      },
    }
  } catch (error) {
    await runFolder?.remove()
    throw error
  }
}

/**
 * @param {RedisOptions} options
 * @returns {Record<string, string>}
 */
function configOf({ appendonly = 'yes', appendfsync = 'always', maxmemoryPolicy = 'noeviction', ...more }) {
  const yesNo = typeof appendonly === 'string' ? appendonly : appendonly ? 'yes' : 'no'
  return {
    bind: '127.0.0.1',
    daemonize: 'no',
    // No snapshots in between: what a kill loses is then decided by the append-only file alone.
    save: '',
    appendonly: yesNo,
    appendfsync,
    'maxmemory-policy': maxmemoryPolicy,
    ...(more.maxmemory && { maxmemory: more.maxmemory }),
    ...(more.requirepass && { requirepass: more.requirepass }),
    ...more.config,
  }
}

/**
 * Whether our own server answers, and not a stranger's that took the port first.
 * @param {number} port
 * @param {string | undefined} password
 * @param {number} pid
 */
async function answers(port, password, pid) {
  try {
    // PING fails while the data is still loading, INFO doesn't.
    await redisCommand({ port, password }, ['PING'])
    const info = await redisCommand({ port, password }, ['INFO', 'server'])
    return new RegExp(`^process_id:${pid}\\r?$`, 'm').test(info)
  } catch {
    return false
  }
}
