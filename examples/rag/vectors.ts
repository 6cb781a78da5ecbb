// One table of passages with their vectors, in the database that Holdfast stores its threads in: on SQLite searched with
// sqlite-vec, on Postgres with pgvector where the server has it, and otherwise with a column of numbers.
import type * as sqlite from '@photostructure/sqlite'
import type { TransactionalSink } from 'holdfast/pipeline'
import { DIMENSIONS } from './embedder.js'

/** A chunk with its vector, on its way into the table. */
export interface Passage {
  readonly text: string
  readonly vector: Float32Array
}

/** A passage that fits a question. */
export interface Found {
  readonly document: string
  readonly text: string
  /** 1: says the same; 0: has nothing to do with it. */
  readonly score: number
}

export interface Vectors {
  readonly sink: TransactionalSink<Passage>
  search(vector: Float32Array, limit: number): Promise<readonly Found[]>
}

const COLUMNS = ['id', 'document', 'hash', 'position', 'text', 'vector']

export async function openVectors(url: string): Promise<Vectors> {
  return url.startsWith('postgres')
    ? openPostgres(url)
    : openSqlite(url.replace(/^sqlite:(\/\/)?/, '').replace(/\?.*/, ''))
}

async function openSqlite(path: string): Promise<Vectors> {
  const bytes = (vector: Float32Array) => new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)
  return {
    sink: makeSink({ type: 'BLOB', mark: () => '?', value: bytes }),
    async search(vector, limit) {
      const { getLoadablePath } = await import('sqlite-vec')
      const { DatabaseSync } = await loadSqlite()
      const db = new DatabaseSync(path, { allowExtension: true })
      try {
        db.enableLoadExtension(true)
        db.loadExtension(getLoadablePath())
        const sql =
          'SELECT document, text, 1 - vec_distance_cosine(vector, ?) AS score FROM passages ORDER BY score DESC LIMIT ?'
        return db.prepare(sql).all(bytes(vector), limit) as unknown as Found[]
      } finally {
        db.close()
      }
    },
  }
}

/** Node's own SQLite from 22.13 on, and the package with the same API before. */
async function loadSqlite(): Promise<typeof sqlite> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const name: string = major > 22 || (major === 22 && minor >= 13) ? 'node:sqlite' : '@photostructure/sqlite'
  return import(name)
}

async function openPostgres(url: string): Promise<Vectors> {
  const { default: pg } = await import('pg')
  const target = new URL(url)
  // A setting of Holdfast's, which Postgres does not know.
  target.searchParams.delete('schema')
  const pool = new pg.Pool({ connectionString: target.href, max: 1, allowExitOnIdle: true })
  const { rowCount } = await pool.query("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
  const hasVector = (rowCount ?? 0) > 0
  const list = (vector: Float32Array) => `[${[...vector].join(',')}]`
  const numbers = (vector: Float32Array) => [...vector]
  const score = hasVector ? '1 - (vector <=> $1)' : '(SELECT sum(a * b) FROM unnest(vector, $1::real[]) AS pair (a, b))'
  return {
    sink: makeSink({
      type: hasVector ? `vector(${DIMENSIONS})` : 'real[]',
      before: hasVector ? 'CREATE EXTENSION IF NOT EXISTS vector' : undefined,
      mark: (n) => `$${n}`,
      value: hasVector ? list : numbers,
    }),
    async search(vector, limit) {
      const sql = `SELECT document, text, ${score} AS score FROM passages ORDER BY score DESC LIMIT $2`
      const { rows } = await pool.query(sql, [hasVector ? list(vector) : numbers(vector), limit])
      return rows as Found[]
    },
  }
}

/** Writes passages in the same transaction as the progress of the pipeline: nothing is stored twice or lost. */
function makeSink(database: {
  readonly type: string
  readonly before?: string | undefined
  readonly mark: (n: number) => string
  readonly value: (vector: Float32Array) => unknown
}): TransactionalSink<Passage> {
  const { type, before, mark, value } = database
  return {
    transactional: true,
    async setUp(sql) {
      if (before) await sql.query(before)
      await sql.query(
        'CREATE TABLE IF NOT EXISTS passages' +
          ` (id TEXT PRIMARY KEY, document TEXT NOT NULL, hash TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL, vector ${type} NOT NULL)`,
      )
      await sql.query('CREATE INDEX IF NOT EXISTS passages_document ON passages (document)')
    },
    async write(rows, sql) {
      const marks = rows.map((_, i) => `(${COLUMNS.map((_, n) => mark(i * COLUMNS.length + n + 1)).join(', ')})`)
      const values = rows.flatMap(({ id, document, hash, position, item }) => [
        id,
        document,
        hash,
        position,
        item.text,
        value(item.vector),
      ])
      await sql.query(`INSERT INTO passages (${COLUMNS.join(', ')}) VALUES ${marks.join(', ')}`, values)
    },
    async remove({ document, keepHash = '' }, sql) {
      await sql.query(`DELETE FROM passages WHERE document = ${mark(1)} AND hash <> ${mark(2)}`, [document, keepHash])
    },
  }
}
