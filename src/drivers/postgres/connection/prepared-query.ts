import { type PgClientLike, TEXT_ONLY } from '../pg-client.js'
import type { Row, Statement } from './sessions.js'

/** What we use of the connection inside a client of `pg`, as its own queries do. */
interface PgConnection {
  readonly stream: { write(bytes: Uint8Array): unknown; cork(): void; uncork(): void }
  /** Texts of the prepared statements that the server knows, by name. */
  readonly parsedStatements: Readonly<Record<string, string | undefined>>
  parse(statement: { readonly name: string; readonly text: string; readonly types: readonly number[] }): void
}

type Value = string | Uint8Array | null

const BIND = 0x42
const EXECUTE = 0x45
const SYNC = 0x53
/** The messages behind Bind: Execute of the unnamed portal without a limit, and Sync. */
const END_LENGTH = 10 + 5

/** By the usual query of a client, whoever made it. */
export async function sendPlain(client: PgClientLike, { name, ...query }: Statement): Promise<readonly Row[]> {
  const named = name === undefined ? {} : { name }
  const { rows } = await client.query({ ...query, ...named, rowMode: 'array', types: TEXT_ONLY })
  return rows as readonly Row[]
}

/** Undefined if the client is not one of `pg`, or a value is not of a kind that is written here. */
export function sendPrepared(client: PgClientLike, statement: Statement): Promise<readonly Row[]> | undefined {
  const { name, text, values } = statement
  if (name === undefined || !isOfPg(client)) return undefined
  const message = encodeCall(name, values)
  if (message === undefined) return undefined
  return new Promise((resolve, reject) => {
    client.query(
      new PreparedQuery(name, text, message, (error, rows) => {
        if (error) reject(error)
        else resolve(rows)
      }),
    )
  })
}

function isOfPg(client: PgClientLike): client is PgClientLike & { query(query: PreparedQuery): void } {
  const { connection } = client as { readonly connection?: Partial<PgConnection> }
  return typeof connection?.parse === 'function' && typeof connection.parsedStatements === 'object'
}

/**
 * A prepared statement as `pg` takes it from its own cursors and streams. Its usual query describes the result of each
 * execution anew and writes each value and message by itself, which costs as much again as everything else around a
 * small statement.
 */
class PreparedQuery {
  /** `pg` notes under these that the server has parsed it. */
  readonly name: string
  readonly text: string
  /** Public and called at the end, because time limits and tracing put their own in its place. */
  callback: (error: Error | null, rows: readonly Row[]) => void
  readonly #message: Uint8Array
  readonly #rows: Row[] = []

  constructor(name: string, text: string, message: Uint8Array, callback: PreparedQuery['callback']) {
    this.name = name
    this.text = text
    this.#message = message
    this.callback = callback
  }

  submit(connection: PgConnection): null {
    const { name, text } = this
    if (connection.parsedStatements[name] !== undefined) {
      connection.stream.write(this.#message)
      return null
    }
    connection.stream.cork()
    try {
      connection.parse({ name, text, types: [] })
      connection.stream.write(this.#message)
    } finally {
      connection.stream.uncork()
    }
    return null
  }

  handleDataRow({ fields }: { readonly fields: Row }): void {
    this.#rows.push(fields)
  }

  handleError(error: Error): void {
    this.callback(error, [])
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#rows)
  }

  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}

/** Bind, Execute and Sync in one piece: bytes as they are, everything else as text, and so the answer. */
function encodeCall(name: string, values: readonly unknown[]): Buffer | undefined {
  const given: Value[] = []
  // Code of the message, its length, the names' ends, two counts of parameters with a format for each, no formats of results.
  let size = 1 + 4 + 1 + Buffer.byteLength(name) + 1 + 2 + 2 + 2 * values.length + 2
  for (const value of values) {
    const sent = toSent(value)
    if (sent === undefined) return undefined
    given.push(sent)
    size += 4 + lengthOf(sent)
  }
  const message = Buffer.allocUnsafe(size + END_LENGTH)
  let at = message.writeUInt8(BIND, 0)
  at = message.writeInt32BE(size - 1, at)
  at = message.writeUInt8(0, at)
  at += message.write(name, at)
  at = message.writeUInt8(0, at)
  at = message.writeInt16BE(given.length, at)
  for (const value of given) at = message.writeInt16BE(value instanceof Uint8Array ? 1 : 0, at)
  at = message.writeInt16BE(given.length, at)
  for (const value of given) at = writeValue(message, at, value)
  at = message.writeInt16BE(0, at)
  at = message.writeUInt8(EXECUTE, at)
  at = message.writeInt32BE(9, at)
  at = message.writeUInt8(0, at)
  at = message.writeInt32BE(0, at)
  at = message.writeUInt8(SYNC, at)
  message.writeInt32BE(4, at)
  return message
}

function toSent(value: unknown): Value | undefined {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
    case 'boolean':
    case 'bigint':
      return String(value)
    case 'undefined':
      return null
    default:
      return value === null || value instanceof Uint8Array ? value : undefined
  }
}

function lengthOf(value: Value): number {
  if (value === null) return 0
  return typeof value === 'string' ? Buffer.byteLength(value) : value.length
}

function writeValue(message: Buffer, at: number, value: Value): number {
  if (value === null) return message.writeInt32BE(-1, at)
  let length = value.length
  if (typeof value === 'string') length = message.write(value, at + 4)
  else message.set(value, at + 4)
  message.writeInt32BE(length, at)
  return at + 4 + length
}
