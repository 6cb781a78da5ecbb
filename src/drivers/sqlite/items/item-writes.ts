import type { ItemWriteResult } from '../../../log/store-contract.js'
import type { Connection } from '../connection/connection.js'
import { type CarriedTask, type ItemTask, unpackItemWrites } from '../parcel/item-parcel.js'
import type { Parcel } from '../parcel/parcel.js'

/** Where an item is: tenant, space and key. */
export const PLACE = 'tenant = ? AND space = ? AND key = ?'

/** True in SQL for an item that has not expired at the time that is bound. */
export const ALIVE = '(expires_at IS NULL OR expires_at > ?)'

const FIND_VERSION = `SELECT version FROM items WHERE ${PLACE} AND ${ALIVE}`

/** Writes the values of these expressions over whatever is there. */
// An item that expired was gone before it was written over, so it is created again.
export const putItemSql = (values: readonly string[], now: string) => `
  INSERT INTO items (tenant, space, key, version, created_at, updated_at, expires_at, fields, value)
  VALUES (${values.join(', ')})
  ON CONFLICT (tenant, space, key) DO UPDATE SET
    version = excluded.version,
    created_at = CASE WHEN items.expires_at <= ${now} THEN excluded.created_at ELSE items.created_at END,
    updated_at = excluded.updated_at,
    expires_at = excluded.expires_at,
    fields = excluded.fields,
    value = excluded.value`
const PUT_ITEM = putItemSql(
  Array.from({ length: 9 }, () => '?'),
  '?',
)

const REMOVE_ITEM = `DELETE FROM items WHERE ${PLACE}`

const SWEEP_ITEMS = `DELETE FROM items WHERE id IN (
  SELECT id FROM items WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`

/**
 * The writes of one call, in one transaction with one commit. In: a parcel of writes, and the time that decides what
 * has expired. Out: a result for each. A write that conflicts has written nothing and does not affect the others.
 */
export function writeItems(db: Connection, tenant: string, packed: Parcel, now: number): ItemWriteResult[] {
  const tasks = unpackItemWrites(packed)
  return db.write(() =>
    tasks.map((task) => {
      if (task.expect !== undefined) {
        const version = findVersion(db, tenant, task, now)
        if (version !== task.expect) return { status: 'conflict', version }
      }
      putItem(db, tenant, task, now)
      return { status: 'written' }
    }),
  )
}

/** What an append carries, inside its transaction and after its comparison: written over whatever is there. */
export function carryItems(db: Connection, tenant: string, carried: readonly CarriedTask[]): void {
  for (const task of carried) putItem(db, tenant, task, task.at)
}

/** Removes up to `limit` expired items of all tenants, those that expired first before others. Out: how many. */
export function sweepItems(db: Connection, now: number, limit: number): number {
  return db.write(() => db.run(SWEEP_ITEMS, now, limit))
}

function findVersion(db: Connection, tenant: string, { space, key }: ItemTask, now: number): string | null {
  const row = db.get(FIND_VERSION, tenant, space, key, now)
  return row === undefined ? null : (row['version'] as string)
}

function putItem(db: Connection, tenant: string, { space, key, item }: ItemTask, now: number): void {
  if (item === null) {
    db.run(REMOVE_ITEM, tenant, space, key)
    return
  }
  const { version, at, expiresAt, fields, value } = item
  db.run(PUT_ITEM, tenant, space, key, version, at, at, expiresAt, fields, value, now)
}
