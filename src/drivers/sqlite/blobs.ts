import type { BlobInfo, Hash } from '../../log/contract.js'
import type { Connection } from './connection/connection.js'
import type { Instant } from './rows/lease.js'
import { type Parcel, ParcelReader } from './parcel/parcel.js'

/** Later than every touch before it, also within one millisecond and across processes. */
const STEP_MS = 0.001

const TOUCH = 'UPDATE blobs SET touched_at = ? WHERE tenant = ? AND hash = unhex(?)'
const FIND_BYTES = `SELECT bytes FROM blobs JOIN blob_bytes ON blob_bytes.id = blobs.id
  WHERE tenant = ? AND hash = unhex(?)`

/** Touches the blobs that exist and returns the hashes of the others. */
export function touchBlobs(db: Connection, tenant: string, hashes: readonly Hash[], now: () => Instant): Hash[] {
  return db.write(() => {
    const at = nextTouch(db, now())
    return hashes.filter((hash) => db.run(TOUCH, at, tenant, hash) === 0)
  })
}

/** The parcel holds a count, then a hash and bytes for each. */
export function putBlobs(db: Connection, tenant: string, packed: Parcel, now: () => Instant): void {
  db.write(() => {
    const at = nextTouch(db, now())
    const parcel = new ParcelReader(packed)
    for (let left = parcel.number(); left > 0; left--) {
      const hash = parcel.text()
      const bytes = parcel.bytes()
      if (db.run(TOUCH, at, tenant, hash) > 0) continue
      const row = db.get('INSERT INTO blob_bytes (bytes) VALUES (?) RETURNING id', bytes)
      db.run(
        'INSERT INTO blobs (tenant, hash, touched_at, size, id) VALUES (?, unhex(?), ?, ?, ?)',
        tenant,
        hash,
        at,
        bytes.length,
        row?.['id'] as number,
      )
    }
  })
}

/** The bytes of the blobs that exist, by hash. */
export function getBlobs(db: Connection, tenant: string, hashes: readonly Hash[]): [Hash, Uint8Array][] {
  return db.read(() => {
    const found: [Hash, Uint8Array][] = []
    for (const hash of new Set(hashes)) {
      const row = db.get(FIND_BYTES, tenant, hash)
      if (row !== undefined) found.push([hash, row['bytes'] as Uint8Array])
    }
    return found
  })
}

export function listBlobs(db: Connection, tenant: string, after: Hash | null, limit: number): BlobInfo[] {
  const rows = db.all(
    `SELECT lower(hex(hash)) AS hash, size, touched_at FROM blobs
     WHERE tenant = ? AND hash > unhex(?) ORDER BY hash LIMIT ?`,
    tenant,
    after ?? '',
    limit,
  )
  return rows.map((row) => ({
    hash: row['hash'] as string,
    size: row['size'] as number,
    touchedAt: row['touched_at'] as number,
  }))
}

export function removeBlob(db: Connection, tenant: string, hash: Hash, touchedAt: number): boolean {
  return db.write(() => {
    const row = db.get(
      'DELETE FROM blobs WHERE tenant = ? AND hash = unhex(?) AND touched_at = ? RETURNING id',
      tenant,
      hash,
      touchedAt,
    )
    if (row === undefined) return false
    db.run('DELETE FROM blob_bytes WHERE id = ?', row['id'] as number)
    return true
  })
}

function nextTouch(db: Connection, now: Instant): number {
  const row = db.get('UPDATE last_touch SET at = max(?, at + ?) RETURNING at', now.wall, STEP_MS)
  return row?.['at'] as number
}
