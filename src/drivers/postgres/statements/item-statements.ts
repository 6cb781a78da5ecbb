import type { TenantId } from '../../../core/ids.js'
import { compareUtf8 } from '../../../core/text-order.js'
import type { ItemScan, ItemWrite, ItemWriteResult, StoredItem } from '../../../log/store-contract.js'
import { encodeArray } from '../values/binary-array.js'
import { fieldsText, fieldText, nameText, readFields } from '../values/item-fields.js'
import { bytesOf } from './log-statements.js'
import type { Row, Statement } from '../connection/sessions.js'
import { fromText, toText } from '../values/text-form.js'

/** Above every key: one character more than a key has room for, of the last that there is. */
const LAST = '\u{10ffff}'.repeat(257)
/** The first character that a key may have. */
const FIRST = '\u0001'

/** What is read of items: rows for `readItem`. */
const ITEM = "i.key, i.version, i.created_at, i.updated_at, i.expires_at, encode(i.value, 'base64')"

/** The statements about items. Each is one statement, and so one snapshot and one round trip. */
export interface ItemStatements {
  write(tenant: TenantId, writes: readonly ItemWrite[], now: number): SortedWrites
  read(tenant: TenantId, space: string, keys: readonly string[], now: number): Statement
  extend(tenant: TenantId, space: string, keys: readonly string[], now: number, extendTo: number): Statement
  scan(tenant: TenantId, space: string, scan: ItemScan, now: number): Statement
  spaces(tenant: TenantId, after: string | undefined, limit: number): Statement
  sweep(now: number, limit: number): Statement
}

/** Writes on their way: the call of migrations/0009-write-items.sql, and the order its answers come in. */
interface SortedWrites {
  readonly statement: Statement
  /** For each answer, the index of its write in the call. */
  readonly order: readonly number[]
}

export function makeItemStatements(schema: string, nameOf: (operation: string) => string): ItemStatements {
  const writeText = `SELECT * FROM ${schema}.write_items($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
  // One step in the index per key. `key = ANY (…)` would be a filter on all items of the space by a plan made while the
  // table was small, and such a plan is kept for as long as the session lasts.
  const readText = `SELECT found.* FROM unnest($3::text[]) AS wanted (key) CROSS JOIN LATERAL (
      SELECT ${ITEM} FROM ${schema}.items i
      WHERE i.tenant = $1 AND i.space = $2 AND i.key = wanted.key AND (i.expires_at IS NULL OR i.expires_at > $4)
      OFFSET 0
    ) AS found`
  // For copies only: a walk along the primary key, planned each time, that reads the fields as well.
  const scanAllText = `SELECT ${ITEM}, array_to_json(i.fields) FROM ${schema}.items i
    WHERE i.tenant = $1 AND i.space = $2 AND i.key >= $3 AND i.key < $4 AND (i.expires_at IS NULL OR i.expires_at > $5)
    ORDER BY i.key LIMIT $6`
  const extendText = `SELECT * FROM ${schema}.extend_items($1, $2, $3, $4, $5)`
  const scanText = `SELECT * FROM ${schema}.scan_items($1, $2, $3, $4, $5, $6, $7, $8)`
  // One step in the index per space, however many items it holds: SELECT DISTINCT would walk through all of them.
  const spacesText = `WITH RECURSIVE found AS (
      (SELECT i.space FROM ${schema}.items i WHERE i.tenant = $1 AND i.space > $2 ORDER BY i.space LIMIT 1)
      UNION ALL
      SELECT (SELECT i.space FROM ${schema}.items i WHERE i.tenant = $1 AND i.space > found.space ORDER BY i.space LIMIT 1)
      FROM found WHERE found.space IS NOT NULL
    )
    SELECT found.space FROM found WHERE found.space IS NOT NULL LIMIT $3`
  // Rows that others are writing are skipped, so this never waits and is never part of a circular wait.
  const sweepText = `WITH swept AS (
      DELETE FROM ${schema}.items WHERE expires_at <= $1 AND ctid = ANY (ARRAY(
        SELECT i.ctid FROM ${schema}.items i
        WHERE i.expires_minute <= floor($1::double precision / 60000) AND i.expires_at <= $1
        ORDER BY i.expires_minute LIMIT $2 FOR UPDATE SKIP LOCKED
      ))
      RETURNING 1
    )
    SELECT count(*) FROM swept`
  return {
    write(tenant, writes, now) {
      const order = writes.map((_, i) => i)
      order.sort((a, b) => compareItems(writes[a] as ItemWrite, writes[b] as ItemWrite))
      const sorted = order.map((i) => writes[i] as ItemWrite)
      const compared = encodeArray(
        'boolean',
        sorted.map(({ expect }) => expect !== undefined),
      )
      const expected = encodeArray(
        'text',
        sorted.map(({ expect }) => (expect == null ? null : toText(expect))),
      )
      const values = [tenant, now, ...placeValues(sorted), compared, expected, ...contentValues(sorted)]
      return { statement: { name: nameOf('write_items'), text: writeText, values }, order }
    },
    read: (tenant, space, keys, now) => ({
      name: nameOf('read_items'),
      text: readText,
      values: [tenant, space, encodeArray('text', [...new Set(keys)]), now],
    }),
    extend: (tenant, space, keys, now, extendTo) => ({
      name: nameOf('extend_items'),
      text: extendText,
      values: [tenant, space, encodeArray('text', [...new Set(keys)].sort(compareUtf8)), now, extendTo],
    }),
    scan: (tenant, space, scan, now) => {
      const values = [tenant, space, ...rangeOf(scan), now, scan.limit]
      if (scan.fields) return { text: scanAllText, values }
      return { name: nameOf('scan_items'), text: scanText, values: [...values, ...narrowing(scan.where)] }
    },
    // Without names, and so planned each time: both are rare, and a plan made while the table was small would be kept.
    spaces: (tenant, after, limit) => ({ text: spacesText, values: [tenant, after ?? '', limit] }),
    sweep: (now, limit) => ({ text: sweepText, values: [now, limit] }),
  }
}

/** The answers of `write`, in the order of the call. */
export function readWriteResults(rows: readonly Row[], order: readonly number[]): ItemWriteResult[] {
  const results = order.map((): ItemWriteResult => ({ status: 'written' }))
  for (const [place, version] of rows) {
    results[order[Number(place) - 1] as number] = {
      status: 'conflict',
      version: version == null ? null : fromText(version),
    }
  }
  return results
}

export function readItem([key, version, createdAt, updatedAt, expiresAt, value, fields]: Row): StoredItem {
  return {
    key: key as string,
    value: bytesOf(value),
    version: fromText(version as string),
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
    expiresAt: expiresAt == null ? null : Number(expiresAt),
    ...(fields == null ? {} : { fields: readFields(JSON.parse(fields) as string[]) }),
  }
}

type Place = Pick<ItemWrite, 'space' | 'key'>
type Content = Pick<ItemWrite, 'item'>

/** The order in which all who write items of a tenant lock them. */
export function compareItems(a: Place, b: Place): number {
  return compareUtf8(a.space, b.space) || compareUtf8(a.key, b.key)
}

/** Where items are, as two parameters. */
export function placeValues(writes: readonly Place[]): Buffer[] {
  return [
    encodeArray(
      'text',
      writes.map(({ space }) => space),
    ),
    encodeArray(
      'text',
      writes.map(({ key }) => key),
    ),
  ]
}

/** What is left there, as five parameters. */
export function contentValues(writes: readonly Content[]): Buffer[] {
  return [
    encodeArray(
      'text',
      writes.map(({ item }) => item && toText(item.version)),
    ),
    encodeArray(
      'double',
      writes.map(({ item }) => item && item.at),
    ),
    encodeArray(
      'double',
      writes.map(({ item }) => item && item.expiresAt),
    ),
    encodeArray(
      'text',
      writes.map(({ item }) => item && fieldsText(item.fields)),
    ),
    encodeArray(
      'bytea',
      writes.map(({ item }) => item && item.value),
    ),
  ]
}

// One range, which begins at whichever lies further on. A pattern would give characters of the prefix a meaning.
function rangeOf({ prefix = '', after }: ItemScan): [from: string, to: string] {
  const from = after !== undefined && compareUtf8(after, prefix) >= 0 ? after + FIRST : prefix
  return [from, prefix + LAST]
}

function narrowing(where: ItemScan['where'] = []): [Buffer | null, Buffer | null] {
  if (where.length === 0) return [null, null]
  const names = where.map(([name]) => nameText(name))
  const allowed = where.flatMap(([name, tokens]) => tokens.map((token) => fieldText(name, token)))
  return [encodeArray('text', names), encodeArray('text', allowed)]
}
