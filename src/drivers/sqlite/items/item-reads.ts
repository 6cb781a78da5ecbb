import { compareUtf8 } from '../../../core/text-order.js'
import type { ItemScan } from '../../../log/store-contract.js'
import type { Connection } from '../connection/connection.js'
import type { Row, SqlValue } from '../connection/engine.js'
import { FIELD_FITS, fieldFitsValues } from './item-fields.js'
import { packItems } from '../parcel/item-parcel.js'
import { ALIVE, PLACE } from './item-writes.js'
import type { Parcel } from '../parcel/parcel.js'

const COLUMNS = 'key, version, created_at, updated_at, expires_at, value'

/** With the fields where a scan wants them. */
const WITH_FIELDS = `${COLUMNS}, fields`

const FIND_ITEM = `SELECT ${COLUMNS} FROM items WHERE ${PLACE} AND ${ALIVE}`

const EXTEND_ITEM = `UPDATE items SET expires_at = ? WHERE ${PLACE} AND expires_at > ? AND expires_at < ?`

// One step in the index per space, however many items it holds: SELECT DISTINCT would walk through all of them.
const NEXT_SPACE = 'SELECT space FROM items WHERE tenant = ? AND space > ? ORDER BY space LIMIT 1'

/**
 * Items by their keys. In: the keys, the time, and where to move expiries that are earlier (null: nowhere). Out: a
 * parcel of those that exist. Only when an expiry must be moved is anything written, and the write lock taken.
 */
export function readItems(
  db: Connection,
  tenant: string,
  space: string,
  keys: readonly string[],
  now: number,
  extendTo: number | null,
): Parcel {
  const wanted = [...new Set(keys)]
  const find = (): Row[] =>
    wanted.map((key) => db.get(FIND_ITEM, tenant, space, key, now)).filter((row) => row !== undefined)
  const rows = db.read(find)
  if (extendTo === null || !rows.some(({ expires_at: at }) => at != null && (at as number) < extendTo)) {
    return packItems(rows)
  }
  const extended = db.write(() => {
    for (const key of wanted) db.run(EXTEND_ITEM, extendTo, tenant, space, key, now, extendTo)
    // Read again: between the two transactions others may have written.
    return find()
  })
  return packItems(extended)
}

/** A page of a space in the order of its keys' bytes. Out: a parcel of items. */
export function scanItems(db: Connection, tenant: string, space: string, scan: ItemScan, now: number): Parcel {
  const { sql, values } = buildItemScan(tenant, space, scan, now)
  return packItems(db.all(sql, ...values))
}

/** The SQL of a scan: one range of the index. Its text depends on how many fields narrow it; all else is bound. */
export function buildItemScan(
  tenant: string,
  space: string,
  { prefix = '', after, limit, where = [], fields = false }: ItemScan,
  now: number,
): { readonly sql: string; readonly values: SqlValue[] } {
  // SQLite begins a range at one bound only, so the one that lies further on is chosen here.
  const afterPrefix = after !== undefined && compareUtf8(after, prefix) >= 0
  const sql = [
    `SELECT ${fields ? WITH_FIELDS : COLUMNS} FROM items WHERE tenant = ? AND space = ?`,
    `AND key ${afterPrefix ? '>' : '>='} ? AND key < CAST(? AS TEXT) AND ${ALIVE}`,
    ...where.map(() => `AND ${FIELD_FITS}`),
    'ORDER BY key LIMIT ?',
  ].join(' ')
  const from = afterPrefix ? after : prefix
  return { sql, values: [tenant, space, from, prefixEnd(prefix), now, ...where.flatMap(fieldFitsValues), limit] }
}

// No byte of UTF-8 is 0xff: every key with this beginning lies below it, and every other that is above the prefix
// lies above it. A pattern (LIKE, GLOB) would give characters of the prefix a meaning.
function prefixEnd(prefix: string): Uint8Array {
  return Buffer.concat([Buffer.from(prefix), Buffer.of(0xff)])
}

/** Names of spaces that hold items, in order. */
export function listSpaces(db: Connection, tenant: string, after: string | null, limit: number): string[] {
  return db.read(() => {
    const spaces: string[] = []
    let last = after ?? ''
    while (spaces.length < limit) {
      const row = db.get(NEXT_SPACE, tenant, last)
      if (row === undefined) break
      last = row['space'] as string
      spaces.push(last)
    }
    return spaces
  })
}
