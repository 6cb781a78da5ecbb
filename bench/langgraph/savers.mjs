// @ts-check
import { statSync } from 'node:fs'
import { MemorySaver } from '@langchain/langgraph-checkpoint'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import pg from 'pg'
import { HoldfastSaver } from 'holdfast/langgraph'
import { openStore } from '../backends.mjs'

/** @typedef {import('../backends.mjs').Backend} Backend */

/**
 * A saver that is measured.
 * @typedef {object} Subject
 * @property {import('@langchain/langgraph-checkpoint').BaseCheckpointSaver} saver
 * @property {() => import('@langchain/langgraph-checkpoint').BaseCheckpointSaver} cold one that has read nothing yet
 * @property {() => Promise<number>} bytes that are stored by now
 * @property {() => Promise<void>} close
 */

/** @param {Backend} backend @param {string} part @returns {Promise<Subject & { holdfast: () => import('holdfast').Holdfast }>} */
export async function openOurs(backend, part) {
  const url = backend.url(part)
  let { hf } = await openStore(url)
  const cold = () => new HoldfastSaver(hf)
  const { diskBytes } = backend
  const subject = {
    /** @type {import('@langchain/langgraph-checkpoint').BaseCheckpointSaver} */
    saver: cold(),
    holdfast: () => hf,
    cold,
    close: () => hf.close(),
    bytes: async () => {
      if (backend.id === 'postgres') {
        return schemaBytes(url, /** @type {string} */ (new URL(url).searchParams.get('schema')))
      }
      if (diskBytes === undefined) return bodyBytes(hf)
      // Files have their size when they are closed.
      await hf.close()
      const bytes = diskBytes(url)
      hf = (await openStore(url)).hf
      subject.saver = cold()
      return bytes
    },
  }
  return subject
}

/** The official savers, by the backend that they run on. @type {Record<string, (url: string) => Subject | Promise<Subject>>} */
const OFFICIAL = {
  memory: () => openMemorySaver(),
  postgres: (url) => openPostgresSaver(url),
  sqlite: (url) => openSqliteSaver(url, 'FULL'),
  'sqlite-normal': (url) => openSqliteSaver(url, 'NORMAL'),
}

/** @param {Backend} backend */
export function hasOfficial({ id }) {
  return Object.hasOwn(OFFICIAL, id)
}

/** The official saver of a backend; undefined where there is none that runs on it. @param {Backend} backend @param {string} part @returns {Promise<Subject | undefined>} */
export async function openOfficial(backend, part) {
  return OFFICIAL[backend.id]?.(backend.url(`${part}_official`))
}

/** @returns {Subject} */
function openMemorySaver() {
  const saver = new MemorySaver()
  const bytes = async () => {
    let sum = 0
    for (const namespaces of Object.values(saver.storage)) {
      for (const checkpoints of Object.values(namespaces)) {
        for (const [checkpoint, metadata] of Object.values(checkpoints)) sum += checkpoint.length + metadata.length
      }
    }
    for (const writes of Object.values(saver.writes)) {
      for (const [, , value] of Object.values(writes)) sum += value.length
    }
    return sum
  }
  return { saver, cold: () => saver, bytes, close: async () => {} }
}

/** @param {string} url @returns {Promise<Subject>} */
async function openPostgresSaver(url) {
  const address = new URL(url)
  const schema = /** @type {string} */ (address.searchParams.get('schema'))
  address.searchParams.delete('schema')
  const saver = PostgresSaver.fromConnString(address.href, { schema })
  await saver.setup()
  return { saver, cold: () => saver, bytes: () => schemaBytes(url, schema), close: () => saver.end() }
}

/**
 * On the engine that we use as well, through the few methods that it calls: its own client, better-sqlite3, is compiled
 * for minutes where it is installed. Flushed as our driver is, so that both sides wait for the disk or neither does.
 * @param {string} url
 * @param {'FULL' | 'NORMAL'} synchronous
 * @returns {Promise<Subject>}
 */
async function openSqliteSaver(url, synchronous) {
  const path = url.slice('sqlite:'.length, url.indexOf('?'))
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const builtIn = major > 22 || (major === 22 && minor >= 13)
  const { DatabaseSync } = await import(builtIn ? 'node:sqlite' : '@photostructure/sqlite')
  const db = new DatabaseSync(path)
  const client = {
    prepare: (/** @type {string} */ sql) => bindUndefined(db.prepare(sql)),
    exec: (/** @type {string} */ sql) => db.exec(sql),
    pragma: (/** @type {string} */ text) => db.prepare(`PRAGMA ${text}`).get(),
    transaction: (/** @type {(rows: unknown) => void} */ work) => (/** @type {unknown} */ rows) => {
      db.exec('BEGIN')
      work(rows)
      db.exec('COMMIT')
    },
  }
  client.pragma('journal_mode = WAL')
  client.pragma(`synchronous = ${synchronous}`)
  const make = () => new SqliteSaver(/** @type {any} */ (client))
  const saver = make()
  const bytes = async () => {
    client.pragma('wal_checkpoint(TRUNCATE)')
    return fileBytes(path)
  }
  return { saver, cold: make, bytes, close: async () => db.close() }
}

/** Its own client takes undefined for NULL. @param {any} statement */
function bindUndefined(statement) {
  const bound = (/** @type {unknown[]} */ values) => values.map((value) => value ?? null)
  return {
    run: (/** @type {unknown[]} */ ...values) => statement.run(...bound(values)),
    get: (/** @type {unknown[]} */ ...values) => statement.get(...bound(values)),
    all: (/** @type {unknown[]} */ ...values) => statement.all(...bound(values)),
  }
}

/** @param {string} path */
function fileBytes(path) {
  return statSync(path).size + (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0)
}

/** @param {import('holdfast').Holdfast} hf */
async function bodyBytes(hf) {
  let sum = 0
  const { threads } = await hf.threads({ limit: 1000 })
  for (const { thread, branch } of threads) {
    const log = await hf.log(thread, { branch })
    for (const { storedBytes } of await log.history({ limit: 100_000 })) sum += storedBytes
  }
  return sum
}

/** @param {string} url @param {string} schema */
async function schemaBytes(url, schema) {
  const address = new URL(url)
  address.searchParams.delete('schema')
  const client = new pg.Client({ connectionString: address.href })
  await client.connect()
  try {
    const sql = `SELECT sum(pg_total_relation_size(c.oid))::float8 AS bytes FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`
    return Number((await client.query(sql, [schema])).rows[0].bytes)
  } finally {
    await client.end()
  }
}
