import type { TenantId } from '../../../core/ids.js'
import type { Hash } from '../../../log/contract.js'
import { hashBytes } from './single-append.js'
import { encodeArray } from '../values/binary-array.js'
import type { Statement } from '../connection/sessions.js'

// Strictly later than before, also when the clock stands still or goes back: removing a blob relies on it.
const NOW_US = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint'

export interface BlobStatements {
  /** Returns the hashes that exist. */
  touch(tenant: TenantId, hashes: readonly Hash[]): Statement
  put(tenant: TenantId, blobs: readonly { readonly hash: Hash; readonly bytes: Uint8Array }[]): Statement
  get(tenant: TenantId, hashes: readonly Hash[]): Statement
  list(tenant: TenantId, after: Hash | undefined, limit: number): Statement
  remove(tenant: TenantId, hash: Hash, touchedUs: number): Statement
}

/** Rows are locked in the order of their hashes, so that two processes with the same blobs never deadlock. */
export function makeBlobStatements(schema: string, nameOf: (operation: string) => string): BlobStatements {
  const touchText = `WITH locked AS MATERIALIZED (
      SELECT b.hash FROM ${schema}.blobs b WHERE b.tenant = $1 AND b.hash = ANY ($2) ORDER BY b.hash FOR NO KEY UPDATE
    )
    UPDATE ${schema}.blobs b SET touched_us = greatest(${NOW_US}, b.touched_us + 1)
    FROM locked WHERE b.tenant = $1 AND b.hash = locked.hash RETURNING encode(b.hash, 'hex')`
  const putText = `INSERT INTO ${schema}.blobs AS b (tenant, hash, touched_us, size, bytes)
    SELECT $1, n.hash, ${NOW_US}, octet_length(n.bytes), n.bytes FROM unnest($2::bytea[], $3::bytea[]) AS n (hash, bytes)
    ORDER BY n.hash
    ON CONFLICT (tenant, hash) DO UPDATE SET touched_us = greatest(${NOW_US}, b.touched_us + 1)`
  const getText = `SELECT encode(b.hash, 'hex'), encode(b.bytes, 'base64') FROM ${schema}.blobs b
    WHERE b.tenant = $1 AND b.hash = ANY ($2)`
  const listText = `SELECT encode(b.hash, 'hex'), b.size, b.touched_us FROM ${schema}.blobs b
    WHERE b.tenant = $1 AND b.hash > $2 ORDER BY b.hash LIMIT $3`
  const removeText = `DELETE FROM ${schema}.blobs b WHERE b.tenant = $1 AND b.hash = $2 AND b.touched_us = $3 RETURNING 1`
  const array = (hashes: readonly Hash[]) =>
    encodeArray(
      'bytea',
      hashes.map((hash) => hashBytes(hash)),
    )
  return {
    touch: (tenant, hashes) => ({ name: nameOf('touch'), text: touchText, values: [tenant, array(hashes)] }),
    put: (tenant, blobs) => ({
      name: nameOf('put'),
      text: putText,
      values: [
        tenant,
        array(blobs.map((blob) => blob.hash)),
        encodeArray(
          'bytea',
          blobs.map((blob) => blob.bytes),
        ),
      ],
    }),
    get: (tenant, hashes) => ({ name: nameOf('get'), text: getText, values: [tenant, array(hashes)] }),
    list: (tenant, after, limit) => ({
      name: nameOf('list'),
      text: listText,
      values: [tenant, hashBytes(after ?? ''), limit],
    }),
    remove: (tenant, hash, touchedUs) => ({
      name: nameOf('remove'),
      text: removeText,
      values: [tenant, hashBytes(hash), touchedUs],
    }),
  }
}
