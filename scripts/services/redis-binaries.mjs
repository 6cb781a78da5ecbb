// @ts-check
import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { cached } from './cache-folder.mjs'
import { unpackDebianPackages, unpackedEnvironment } from './debian-packages.mjs'
import { MissingServerError } from './missing-server.mjs'

const execute = promisify(execFile)

/** @typedef {{ path: string, env: Record<string, string>, version: string, from: string }} Binary */

const remedy =
  'Put redis-server or valkey-server (6.2 or later) on PATH (Debian: `apt-get install redis-server`; ' +
  'macOS: `brew install redis`), or set HOLDFAST_TEST_REDIS_URL and HOLDFAST_TEST_REDIS_CLUSTER_URLS.'

/** @type {Promise<Binary> | undefined} one search and one download for servers that start at the same time */
let search

/**
 * @param {{ log?: (line: string) => void, install?: boolean }} [options]
 *   `install`: root may install the package when unpacking it isn't enough. Only for machines that are thrown away
 *   afterwards: the package also registers a service.
 * @returns {Promise<Binary>}
 */
export function findRedis(options = {}) {
  search ??= searchRedis(options).catch((error) => {
    search = undefined
    throw error
  })
  return search
}

/**
 * @param {{ log?: (line: string) => void, install?: boolean }} options
 * @returns {Promise<Binary>}
 */
async function searchRedis({ log = console.error, install = false }) {
  const onPath = await firstOnPath(['redis-server', 'valkey-server'])
  if (onPath) return onPath
  try {
    return await fetchRedis(log)
  } catch (cause) {
    if (install && process.getuid?.() === 0) {
      log('services: installing redis-server with apt-get')
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
      await execute('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], { env }).catch(
        () => {},
      )
      const installed = await firstOnPath(['redis-server'])
      if (installed) return installed
    }
    throw new MissingServerError('Redis', remedy, { cause })
  }
}

/**
 * @param {string[]} names
 * @returns {Promise<Binary | undefined>}
 */
export async function firstOnPath(names) {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  for (const path of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    if (!(await stat(path).catch(() => undefined))?.isFile()) continue
    const version = await versionOf(path, {})
    if (version) return { path, env: {}, version, from: 'PATH' }
  }
  return undefined
}

/** @param {(line: string) => void} log */
async function fetchRedis(log) {
  const program = 'usr/bin/redis-server'
  const folder = await cached('redis', {
    // The server binary itself is in redis-tools; redis-server has the link to it.
    make: (fresh) => unpackDebianPackages({ packages: ['redis-server', 'redis-tools'], program, folder: fresh, log }),
    isUsable: async (found) => Boolean(await versionOf(join(found, program), await unpackedEnvironment(found))),
  })
  const env = await unpackedEnvironment(folder)
  const path = join(folder, program)
  return { path, env, version: (await versionOf(path, env)) ?? '', from: 'Debian package, unpacked' }
}

/**
 * @param {string} path
 * @param {Record<string, string>} env
 * @returns {Promise<string | undefined>} undefined when it does not run
 */
export async function versionOf(path, env) {
  try {
    const { stdout } = await execute(path, ['--version'], { env: { ...process.env, ...env }, timeout: 10_000 })
    // `Redis server v=7.0.15 sha=…`, `PgBouncer 1.18.0`
    return /(?:v=|\s)(\d+\.\d+[.\d]*)/.exec(stdout)?.[1]
  } catch {
    return undefined
  }
}
