// @ts-check
import { readdirSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { openFileFloor } from './floors/file.mjs'
import { openMemoryFloor } from './floors/memory.mjs'
import { dropSchemas, openPostgresFloor } from './floors/postgres.mjs'
import { openRedisFloor, removeKeys, setAppendFsync } from './floors/redis.mjs'
import { openSqliteFloor } from './floors/sqlite.mjs'

/**
 * The plainest code on the same driver and settings.
 * @typedef {object} Floor
 * @property {(bytes: Buffer) => unknown} write resolves when it is as durable as an append
 * @property {(list: readonly Buffer[]) => Promise<void>} [writeTogether] in one round trip, where that is a floor
 * @property {(name: string, json: string) => unknown} putState
 * @property {(name: string) => unknown} getState reads and parses
 * @property {() => unknown} close
 */

/**
 * @typedef {object} Backend
 * @property {Address} address
 * @property {string} id in results, for a setting that has a budget
 * @property {string} name
 * @property {(part: string) => string} url of a store by name, which is new for a new name
 * @property {() => Promise<Floor>} openFloor
 * @property {(url: string) => number} [diskBytes] of a closed store
 * @property {() => Promise<void>} [prepare] sets the server up, before anything is opened
 * @property {number} [sessions] the most that a crowd of it is measured with
 * @property {() => Promise<void>} [cleanup] removes what this run left behind
 */

/**
 * Where a backend is found: in another process, `backendAt` makes the same of it.
 * @typedef {object} Where
 * @property {string} folder
 * @property {Record<string, string>} env addresses of servers, by variable
 * @property {readonly string[]} given variables that were set before we started any server
 * @property {string} [run] part of every name that is made on a server
 */
/** @typedef {{ kind: Kind, id: string, where: Where }} Address */
/** @typedef {'sqlite' | 'postgres' | 'redis' | 'file' | 'memory'} Kind */

/** An open store with the driver below it. @param {string} url */
export async function openStore(url) {
  const driver = await openDriver(url)
  return { driver, hf: new Holdfast(new LogStore(driver)) }
}

/**
 * The settings under which a backend is measured, each with its address. Empty if its server is not there.
 * @param {Kind} kind
 * @param {Where} where
 * @returns {Backend[]}
 */
export function makeBackends(kind, where) {
  const { run = `bench_${process.pid}_${Date.now().toString(36)}` } = where
  const named = { ...where, run }
  return settingsOf(kind, named).map((backend) => ({ ...backend, address: { kind, id: backend.id, where: named } }))
}

/** @param {Address} address @returns {Backend} */
export function backendAt({ kind, id, where }) {
  const found = makeBackends(kind, where).find((backend) => backend.id === id)
  if (found === undefined) throw new Error(`There is no backend "${id}".`)
  return found
}

/** @param {Kind} kind @param {Where & { run: string }} where @returns {Omit<Backend, 'address'>[]} */
function settingsOf(kind, { folder, env, given, run }) {
  const postgres = env['HOLDFAST_TEST_POSTGRES_URL']
  const redis = env['HOLDFAST_TEST_REDIS_URL']
  switch (kind) {
    case 'sqlite':
      return [sqliteBackend(folder, 'FULL'), sqliteBackend(folder, 'NORMAL')]
    case 'postgres':
      if (postgres === undefined) return []
      return [
        {
          id: 'postgres',
          name: 'Postgres',
          url: (part) => withSetting(postgres, 'schema', `${run}_${part}`),
          openFloor: () => openPostgresFloor(postgres, `${run}_floor`),
          cleanup: () => dropSchemas(postgres, run),
        },
      ]
    case 'redis': {
      if (redis === undefined) return []
      /** @param {string} setting @param {(() => Promise<void>) | undefined} prepare @returns {Omit<Backend, 'address'>} */
      const make = (setting, prepare) => ({
        id: setting === 'everysec' ? 'redis-everysec' : 'redis',
        name: `Redis, ${setting}`,
        url: (part) => withSetting(redis, 'prefix', `${run}_${part}`),
        openFloor: () => openRedisFloor(redis, `${run}_floor`),
        cleanup: () => removeKeys(redis, run),
        ...(prepare ? { prepare } : {}),
      })
      // A server that was given to us is measured as it is: its settings are not ours to change.
      if (given.includes('HOLDFAST_TEST_REDIS_URL')) return [make('as configured', undefined)]
      return ['always', 'everysec'].map((setting) => make(setting, () => setAppendFsync(redis, setting)))
    }
    case 'file':
      return [
        {
          id: 'file',
          name: 'file',
          url: (part) => `file:${join(folder, `file-${part}`)}`,
          openFloor: () => openFileFloor(join(folder, 'file-floor')),
          diskBytes: (url) => treeBytes(url.slice('file:'.length)),
          // One file per save: the whole crowd would be fifty thousand of them.
          sessions: 200,
          cleanup: () => removeStores(folder, 'file-'),
        },
      ]
    case 'memory':
      return [{ id: 'memory', name: 'memory', url: () => 'memory:', openFloor: openMemoryFloor }]
  }
}

/**
 * @param {string} folder
 * @param {'FULL' | 'NORMAL'} synchronous
 * @returns {Omit<Backend, 'address'>}
 */
function sqliteBackend(folder, synchronous) {
  const setting = synchronous.toLowerCase()
  return {
    id: synchronous === 'FULL' ? 'sqlite' : 'sqlite-normal',
    name: `SQLite ${synchronous}`,
    url: (part) => `sqlite:${join(folder, `${setting}-${part}.db`)}?synchronous=${setting}`,
    openFloor: () => openSqliteFloor(join(folder, `${setting}-floor.db`), synchronous),
    cleanup: () => removeStores(folder, `${setting}-`),
    diskBytes: (url) => statSync(url.slice('sqlite:'.length, url.indexOf('?'))).size,
  }
}

/** @param {string} url @param {string} name @param {string} value */
function withSetting(url, name, value) {
  return `${url}${url.includes('?') ? '&' : '?'}${name}=${value}`
}

/** What the files of a folder take on the disk, whole blocks counted. @param {string} folder @returns {number} */
function treeBytes(folder) {
  let bytes = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    bytes += statSync(join(entry.parentPath, entry.name)).blocks * 512
  }
  return bytes
}

/** Removes what is in a folder and begins like this. @param {string} folder @param {string} start */
async function removeStores(folder, start) {
  for (const name of readdirSync(folder).filter((one) => one.startsWith(start))) {
    // A log beside a database goes with it.
    await rm(join(folder, name), { recursive: true, force: true })
  }
}
