// @ts-check
import { chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cached } from './cache-folder.mjs'
import { unpackDebianPackages, unpackedEnvironment } from './debian-packages.mjs'
import { MissingServerError } from './missing-server.mjs'
import { onFreePort } from './ports.mjs'
import { firstOnPath, versionOf } from './redis-binaries.mjs'
import { reachableTree, unprivilegedUser } from './run-as.mjs'
import { makeRunFolder } from './run-folder.mjs'
import { startServerProcess } from './server-process.mjs'

/**
 * @typedef {object} PgBouncer
 * @property {string} url
 * @property {number} port
 * @property {string} version
 * @property {string} from
 * @property {(signal?: NodeJS.Signals) => Promise<void>} kill default SIGKILL
 * @property {() => Promise<void>} stop
 */

/**
 * A real PgBouncer in front of a Postgres, in transaction mode: each transaction may run on another server connection.
 * @param {{ postgresUrl: string, poolMode?: 'transaction' | 'session' | 'statement', poolSize?: number,
 *   settings?: Record<string, string>, log?: (line: string) => void }} options
 * @returns {Promise<PgBouncer>}
 */
export async function startPgBouncer({ postgresUrl, poolMode = 'transaction', poolSize = 10, settings = {}, log }) {
  const [binary, runAs] = await Promise.all([findPgBouncer(log ?? console.error), unprivilegedUser()])
  const target = new URL(postgresUrl)
  const runFolder = await makeRunFolder('pgbouncer', runAs)
  const folder = runFolder.path
  const logFile = join(folder, 'pgbouncer.log')
  try {
    const tree = binary.tree && (await reachableTree(binary.tree, runAs, folder))
    const command = tree ? join(tree, binary.path) : binary.path
    const env = tree ? await unpackedEnvironment(tree) : {}

    /** @param {number} port */
    const launch = async (port) => {
      const configFile = join(folder, 'pgbouncer.ini')
      const usersFile = join(folder, 'users.txt')
      const config = {
        listen_addr: '127.0.0.1',
        listen_port: String(port),
        unix_socket_dir: '',
        // The password in clear, so that PgBouncer can log in to the server with it as well.
        auth_type: 'scram-sha-256',
        auth_file: usersFile,
        pool_mode: poolMode,
        default_pool_size: String(poolSize),
        max_client_conn: '1000',
        ignore_startup_parameters: 'extra_float_digits,options',
        ...settings,
      }
      const lines = Object.entries(config).map(([key, value]) => `${key} = ${value}`)
      const server = `host=${target.hostname} port=${target.port || 5432}`
      const files = {
        [configFile]: `[databases]\n* = ${server}\n[pgbouncer]\n${lines.join('\n')}\n`,
        [usersFile]: `"${decodeURIComponent(target.username)}" "${decodeURIComponent(target.password)}"\n`,
      }
      for (const [path, content] of Object.entries(files)) {
        await writeFile(path, content, { mode: 0o600 })
        if (runAs) await chown(path, runAs.uid, runAs.gid)
      }
      const started = await startServerProcess({
        name: 'pgbouncer',
        command,
        args: [configFile],
        cwd: folder,
        logFile,
        env,
        runAs,
        endSignal: 'SIGKILL',
        isReady: async (process) => (await process.log()).includes('process up'),
      })
      return { started, port }
    }

    const { started, port } = await onFreePort(launch)
    const url = new URL(postgresUrl)
    url.hostname = '127.0.0.1'
    url.port = String(port)
    return {
      url: url.href,
      port,
      version: binary.version,
      from: binary.from,
      kill: (signal = 'SIGKILL') => started.kill(signal),
      async stop() {
        await started.end()
        await runFolder.remove()
      },
    }
  } catch (error) {
    await runFolder.remove()
    throw error
  }
}

/**
 * @param {(line: string) => void} log
 * @returns {Promise<{ path: string, tree?: string, version: string, from: string }>} with `tree`, `path` is inside it
 */
async function findPgBouncer(log) {
  const onPath = await firstOnPath(['pgbouncer'])
  if (onPath) return onPath
  const path = 'usr/sbin/pgbouncer'
  /** @param {string} found */
  const version = async (found) => versionOf(join(found, path), await unpackedEnvironment(found))
  try {
    const tree = await cached('pgbouncer', {
      make: (fresh) => unpackDebianPackages({ packages: ['pgbouncer'], program: path, folder: fresh, log }),
      isUsable: async (found) => Boolean(await version(found)),
    })
    return { path, tree, version: (await version(tree)) ?? '', from: 'Debian package, unpacked' }
  } catch (cause) {
    const remedy = 'Put pgbouncer on PATH (Debian: `apt-get install pgbouncer`), or set HOLDFAST_TEST_PGBOUNCER_URL.'
    throw new MissingServerError('PgBouncer', remedy, { cause })
  }
}
