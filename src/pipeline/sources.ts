import { createReadStream } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { createInterface } from 'node:readline'
import type { Value } from '../codec/value.js'
import { InvalidOptionError, InvalidValueError } from '../core/errors.js'
import { checkOptionNames } from '../core/wording/option-names.js'
import type { Document } from './document.js'

/** Which files of a folder are documents. */
export interface FolderOptions {
  /** Which files count, by their path in the folder, with slashes. Default: all that do not begin with a dot. */
  readonly include?: (path: string) => boolean
  /**
   * How a change is detected. Default 'content': every file is read. 'time': by size and modification time, so that
   * unchanged files are not read; a tool that sets times back hides its changes.
   */
  readonly changedBy?: 'content' | 'time'
}

/** The files of a folder and its subfolders, in the order of their names; ids are their paths in it. */
export function folder(path: string, options: FolderOptions = {}): () => AsyncIterable<Document> {
  checkOptionNames('folder()', options, { include: true, changedBy: true })
  const { include = isVisible, changedBy = 'content' } = options
  if (changedBy !== 'content' && changedBy !== 'time') {
    throw new InvalidOptionError('changedBy', `must be "content" or "time", not "${String(changedBy)}"`, 'Correct it.')
  }
  return async function* () {
    for await (const file of filesIn(path)) {
      const id = relative(path, file).split(sep).join('/')
      if (!include(id)) continue
      const document = { id, load: () => readFile(file), metadata: { path: id } }
      if (changedBy === 'content') yield document
      else yield { ...document, hash: await fingerprint(file) }
    }
  }
}

// One folder at a time and sorted: any number of files takes little memory, and every process sees the same order.
async function* filesIn(path: string): AsyncGenerator<string> {
  const entries = await readdir(path, { withFileTypes: true })
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    const inside = join(path, entry.name)
    if (entry.isDirectory()) yield* filesIn(inside)
    else if (entry.isFile()) yield inside
  }
}

async function fingerprint(file: string): Promise<string> {
  const { size, mtimeMs } = await stat(file)
  return `${size}-${mtimeMs}`
}

function isVisible(path: string): boolean {
  return !path.split('/').some((part) => part.startsWith('.'))
}

/** How lines become documents. */
export interface JsonLinesOptions {
  /** The fields of a line that hold the id and the text. Default `id` and `text`; the others become metadata. */
  readonly id?: string
  readonly text?: string
}

/** A file with one JSON object per line. */
export function jsonLines(path: string, options: JsonLinesOptions = {}): () => AsyncIterable<Document> {
  checkOptionNames('jsonLines()', options, { id: true, text: true })
  const { id: idField = 'id', text: textField = 'text' } = options
  return async function* () {
    const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
    let number = 0
    for await (const line of lines) {
      number++
      if (line.trim() === '') continue
      yield readLine(`${path}:${number}`, line, idField, textField)
    }
  }
}

function readLine(at: string, line: string, idField: string, textField: string): Document {
  const remedy = 'Write one JSON object per line.'
  let record: unknown
  try {
    record = JSON.parse(line)
  } catch (cause) {
    throw new InvalidValueError(at, 'is not JSON', remedy, {}, cause)
  }
  if (typeof record !== 'object' || record === null || Array.isArray(record)) {
    throw new InvalidValueError(at, 'is not a JSON object', remedy)
  }
  const { [idField]: id, [textField]: content, ...metadata } = record as Record<string, Value>
  // Numbers are ids in many exports; anything else is refused by the pipeline, which names it.
  const name = typeof id === 'number' ? String(id) : id
  return { id: name as string, content: content as string, metadata }
}

/** The part of a database client that `sqlRows` uses: `pg` matches, and any other is easily adapted. */
export interface RowReader {
  query(sql: string, params: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>
}

/** How rows are read and become documents. */
export interface SqlRowsOptions {
  /**
   * Reads one page. `$1` is the id of the last row before it, `$2` how many rows are wanted:
   * `SELECT id, body FROM articles WHERE id > $1 ORDER BY id LIMIT $2`.
   */
  readonly sql: string
  /** What `$1` is for the first page. Default: the empty text. */
  readonly first?: string | number
  readonly toDocument: (row: Record<string, unknown>) => Document
  /** The field that `$1` continues after. Default `id`. */
  readonly id?: string
  /** Default 500. */
  readonly pageSize?: number
}

/** Rows of a query, page by page in the order of a unique field: no cursor is held open while documents are processed. */
export function sqlRows(client: RowReader, options: SqlRowsOptions): () => AsyncIterable<Document> {
  checkOptionNames('sqlRows()', options, { sql: true, first: true, toDocument: true, id: true, pageSize: true })
  const { sql, first = '', toDocument, id = 'id', pageSize = 500 } = options
  return async function* () {
    let last: unknown = first
    for (;;) {
      const { rows } = await client.query(sql, [last, pageSize])
      for (const row of rows) yield toDocument(row)
      const next = rows.at(-1)?.[id]
      if (rows.length < pageSize) return
      if (next === undefined || next === last) {
        throw new InvalidOptionError('sql', `does not advance after ${String(last)}`, `Order by "${id}" and use $1.`)
      }
      last = next
    }
  }
}
