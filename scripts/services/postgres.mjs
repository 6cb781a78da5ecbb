// @ts-check
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import net from 'node:net'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { onFreePort } from './ports.mjs'
import { findPostgres } from './postgres-binaries.mjs'
import { asUser, reachableTree, unprivilegedUser } from './run-as.mjs'
import { makeRunFolder } from './run-folder.mjs'
import { ServerStartError, startServerProcess } from './server-process.mjs'

const execute = promisify(execFile)
const user = 'holdfast'

/**
 * @typedef {object} PostgresOptions
 * @property {number} [version] major version, such as 15 or 18; default the newest on the machine, else the npm package
 * @property {boolean} [embedded] true: only the npm package; false: only the machine
 * @property {boolean} [fsync] default true
 * @property {Record<string, string>} [settings] any further setting of postgresql.conf
 * @property {number} [port] default a free one
 */

/**
 * @typedef {object} PostgresServer
 * @property {string} url as a superuser with a password, on 127.0.0.1
 * @property {number} port
 * @property {string} version such as `15.18`
 * @property {string} from where the binaries were found
 * @property {string} dataDir
 * @property {string} logFile
 * @property {() => number} pid
 * @property {(signal?: NodeJS.Signals) => Promise<void>} kill default SIGQUIT, which is `pg_ctl stop -m immediate`;
 *   SIGINT is `-m fast`, SIGTERM is `-m smart` and waits for the clients to leave
 * @property {(options?: { immediate?: boolean, settings?: Record<string, string> }) => Promise<void>} restart same
 *   port, same data; ends the server first if it still runs. `immediate`: without a checkpoint, so that it has to
 *   recover from its log as after a crash. `settings`: changes
 * @property {() => Promise<void>} stop
 */

/**
 * A real Postgres on 127.0.0.1, also for root.
 * @param {PostgresOptions} [options]
 * @returns {Promise<PostgresServer>}
 */
export async function startPostgres(options = {}) {
  const [binaries, runAs] = await Promise.all([findPostgres(options), unprivilegedUser()])
  const runFolder = await makeRunFolder('postgres', runAs)
  const folder = runFolder.path
  const dataDir = join(folder, 'data')
  const logFile = join(folder, 'postgres.log')
  const password = randomBytes(12).toString('hex')
  let settings = settingsOf(options)

  /** @type {string} */
  let bin

  /** @param {number} port */
  async function launch(port) {
    const server = await startServerProcess({
      name: 'postgres',
      command: join(bin, 'postgres'),
      args: [
        '-D',
        dataDir,
        '-p',
        String(port),
        ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
      ],
      cwd: folder,
      logFile,
      runAs,
      // An immediate stop: what was acknowledged is in the log, and the data is about to be removed anyway.
      endSignal: 'SIGQUIT',
      timeoutMs: 60_000,
      isReady: ({ pid }) => isReady(dataDir, pid, port),
    })
    return { server, port }
  }

  try {
    const tree = await reachableTree(binaries.tree, runAs, folder)
    bin = join(tree, relative(binaries.tree, binaries.bin))
    await initialise({ bin, dataDir, folder, password, runAs })
    const first = await onFreePort(launch, { port: options.port })
    const { port } = first
    let { server } = first
    return {
      url: `postgres://${user}:${password}@127.0.0.1:${port}/postgres`,
      port,
      version: binaries.version,
      from: binaries.from,
      dataDir,
      logFile,
      pid: () => server.pid,
      kill: (signal = 'SIGQUIT') => server.kill(signal),
      async restart({ immediate = false, settings: changes = {} } = {}) {
        if (server.isRunning()) await server.kill(immediate ? 'SIGQUIT' : 'SIGINT')
        settings = { ...settings, ...changes }
        server = await withLeftovers(async () => (await launch(port)).server)
      },
      async stop() {
        await server.end()
        await runFolder.remove()
      },
    }
  } catch (error) {
    await runFolder.remove()
    throw error
  }
}

/**
 * @param {PostgresOptions} options
 * @returns {Record<string, string>}
 */
function settingsOf({ fsync = true, settings = {} }) {
  return {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    max_prepared_transactions: '20',
    fsync: fsync ? 'on' : 'off',
    ...settings,
  }
}

/**
 * @param {{ bin: string, dataDir: string, folder: string, password: string,
 *   runAs: import('./run-as.mjs').RunAs | undefined }} options
 */
async function initialise({ bin, dataDir, folder, password, runAs }) {
  const passwordFile = join(folder, 'password')
  await mkdir(dataDir, { mode: 0o700 })
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (runAs) for (const path of [dataDir, passwordFile]) await chown(path, runAs.uid, runAs.gid)
  const auth = ['--auth=scram-sha-256', `--username=${user}`, `--pwfile=${passwordFile}`]
  // Not synced: an empty cluster is quickly made again. The server itself syncs from its first write on.
  const args = ['-D', dataDir, '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions', ...auth]
  try {
    const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
    await execute(join(bin, 'initdb'), args, { cwd: folder, env, ...asUser(runAs) })
  } catch (error) {
    const output = /** @type {{ stdout?: string, stderr?: string }} */ (error)
    throw new ServerStartError('initdb failed', `${output.stdout ?? ''}${output.stderr ?? String(error)}`)
  } finally {
    await rm(passwordFile, { force: true })
  }
}

/**
 * After a SIGKILL of the main process its children live on for a moment and hold the shared memory: Postgres then
 * refuses to start, rightly, and a little later it doesn't.
 * @template T
 * @param {() => Promise<T>} start
 * @returns {Promise<T>}
 */
async function withLeftovers(start) {
  const deadline = Date.now() + 15_000
  for (;;) {
    try {
      return await start()
    } catch (error) {
      const leftover =
        error instanceof ServerStartError &&
        (error.code === 'EADDRINUSE' || /pre-existing shared memory|lock file .* already exists/.test(error.log))
      if (!leftover || Date.now() > deadline) throw error
      await sleep(100)
    }
  }
}

/**
 * The server notes in its pid file that it accepts connections; `pg_ctl` waits for the same line. The pid makes sure
 * that it isn't the note of the server before, nor a stranger's server on the port.
 * @param {string} dataDir
 * @param {number} pid
 * @param {number} port
 */
async function isReady(dataDir, pid, port) {
  const lines = (await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready' && (await accepts(port))
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
