// A pipeline over made-up documents, for this process and for those that are killed. What is embedded goes to a file, so
// that it is known whoever did it.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { pipeline } from 'holdfast/pipeline'

/** @param {number} count @param {number} chunks */
export function makeDocuments(count, chunks) {
  return Array.from({ length: count }, (_, i) => ({
    id: `doc-${i}`,
    // Documents of different lengths: some fit one batch, some need several.
    content: Array.from({ length: 1 + ((i * 7 + chunks) % (chunks * 2 - 1)) }, (_, n) => `doc ${i} part ${n}`).join(
      '\n',
    ),
  }))
}

/** @param {readonly { id: string, content?: string }[]} documents @param {string} ledger @param {object} sink @param {object} [options] */
export function makePipeline(documents, ledger, sink, options = {}) {
  return pipeline({
    name: 'library',
    version: '1.0.0',
    source: () => documents,
    stages: [
      { name: 'lines', split: ({ text }) => text.split('\n').filter((line) => line !== '') },
      {
        name: 'embed',
        run: (lines, { document, batch }) => {
          appendFileSync(ledger, `${JSON.stringify({ document: document.id, batch, lines })}\n`)
          return { items: lines.map((text) => ({ text, vector: [text.length, batch] })), tokens: lines.length }
        },
      },
    ],
    sink,
    concurrency: 1,
    // One document after the other, unless a test wants more.
    ahead: 0,
    batch: 4,
    ...options,
  })
}

/** Every line that was embedded, as often as it was. @param {string} ledger @returns {string[]} */
export function readEmbedded(ledger) {
  if (!existsSync(ledger)) return []
  const calls = readFileSync(ledger, 'utf8').split('\n').filter(Boolean)
  return calls.flatMap((call) => JSON.parse(call).lines)
}

/** A table in the store's own database: '?' or '$1' as it wants them. @param {string} table @param {boolean} isPostgres */
export function tableSink(table, isPostgres) {
  const mark = (/** @type {number} */ n) => (isPostgres ? `$${n}` : '?')
  return {
    transactional: /** @type {const} */ (true),
    setUp: async (sql) => {
      await sql.query(
        `CREATE TABLE IF NOT EXISTS ${table} (id TEXT PRIMARY KEY, document TEXT, hash TEXT, position INTEGER, item TEXT)`,
      )
    },
    write: async (rows, sql) => {
      const marks = rows.map((_, i) => `(${[1, 2, 3, 4, 5].map((n) => mark(i * 5 + n)).join(', ')})`)
      const values = rows.flatMap((row) => [row.id, row.document, row.hash, row.position, JSON.stringify(row.item)])
      // No upsert: a chunk that came twice would fail here.
      await sql.query(`INSERT INTO ${table} VALUES ${marks.join(', ')}`, values)
    },
    remove: async ({ document, keepHash = '' }, sql) => {
      await sql.query(`DELETE FROM ${table} WHERE document = ${mark(1)} AND hash <> ${mark(2)}`, [document, keepHash])
    },
  }
}

/** A sink of its own: rows in memory, replaced by id. */
export function memorySink() {
  /** @type {Map<string, { document: string, hash: string, position: number, item: unknown }>} */
  const rows = new Map()
  return {
    rows,
    write: async (/** @type {readonly any[]} */ added) => {
      for (const row of added) rows.set(row.id, row)
    },
    remove: async (/** @type {{ document: string, keepHash?: string }} */ { document, keepHash }) => {
      for (const [id, row] of rows) if (row.document === document && row.hash !== keepHash) rows.delete(id)
    },
  }
}
