import type { TenantId, ThreadId } from '../../core/ids.js'
import type { Tombstone } from '../../log/contract.js'
import type { NamedTombstone, TombstonePage } from '../../log/copy-contract.js'
import type { Row, Sessions, Statement } from './connection/sessions.js'
import { fromText, toText } from './values/text-form.js'

/** How many tombstones one page holds. */
const PAGE = 1000

/** Every tenant, by one step in each index per tenant, however much each has. */
export function tenantsStatement(schema: string): Statement {
  const next = (above: string): string => {
    const tables = ['logs', 'tombstones', 'blobs', 'items']
    const parts = tables.map(
      (table) => `(SELECT x.tenant FROM ${schema}.${table} x WHERE x.tenant > ${above} ORDER BY x.tenant LIMIT 1)`,
    )
    return `SELECT min(n.tenant) AS tenant FROM (${parts.join(' UNION ALL ')}) n`
  }
  const text = `WITH RECURSIVE found AS (
      ${next("''")}
      UNION ALL
      SELECT (${next('found.tenant')}) FROM found WHERE found.tenant IS NOT NULL
    )
    SELECT found.tenant FROM found WHERE found.tenant IS NOT NULL`
  return { text, values: [] }
}

export async function listTombstones(
  sessions: Sessions,
  schema: string,
  cursor: string | undefined,
): Promise<TombstonePage> {
  const after = cursor === undefined ? ['', ''] : (JSON.parse(cursor) as [string, string])
  const text = `SELECT t.tenant, t.thread, t.at, t.reason FROM ${schema}.tombstones t
    WHERE (t.tenant, t.thread) > ($1, $2) ORDER BY t.tenant, t.thread LIMIT ${PAGE}`
  const tombstones = (await sessions.read({ text, values: after })).map(readTombstone)
  const last = tombstones.at(-1)
  return { tombstones, ...(last && { cursor: JSON.stringify([last.tenant, last.thread]) }) }
}

/** Under the lock that erasing takes: a log that is created beside it comes before or after, and then removes it. */
export async function bury(
  sessions: Sessions,
  schema: string,
  tenant: TenantId,
  thread: ThreadId,
  { at, reason }: Tombstone,
  timeoutMs: number,
): Promise<boolean> {
  return sessions.transaction(timeoutMs, async (query) => {
    const name = [tenant, thread]
    await query({ text: `SELECT pg_advisory_xact_lock(${schema}.thread_lock($1, $2))`, values: name })
    const text = `INSERT INTO ${schema}.tombstones AS t (tenant, thread, at, reason)
      SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT FROM ${schema}.logs l WHERE l.tenant = $1 AND l.thread = $2)
      ON CONFLICT (tenant, thread) DO UPDATE SET at = excluded.at, reason = excluded.reason RETURNING 1`
    return (await query({ text, values: [...name, at, toText(reason)] })).length > 0
  })
}

function readTombstone([tenant, thread, at, reason]: Row): NamedTombstone {
  return {
    tenant: tenant as TenantId,
    thread: thread as ThreadId,
    at: Number(at),
    reason: fromText(reason as string),
  }
}
