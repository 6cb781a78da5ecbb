import type { DuePage, DueQuery } from '../../log/contract.js'
import { encodeArray } from './binary-array.js'
import { parseHead } from './head-row.js'
import type { Row, Statement } from './sessions.js'

/** The time at which whoever is looked at is free: the end of its lease, or of what it is kept for. */
const HELD_UNTIL = `greatest(
  CASE WHEN l.lease_owner IS NOT NULL THEN l.lease_until END, CASE WHEN l.taken_seq = l.seq THEN l.taken_until END)`

/** As the index has it (migrations/0015-due.sql). */
const WAKE = '(l.wake_at + 0)'

/**
 * Takes what is due: rows that nobody holds, longest first, of each program those marked as due and those whose time has
 * come. Rows that another worker is just taking are passed over and not waited for. Only where fewer are found than were
 * asked for it is looked up when the next will be: then all that are due are held, and those are few.
 */
export function makeDueStatement(schema: string, name: string, query: DueQuery): Statement {
  const { programs, tenant, now, limit, reserveMs } = query
  const moment = 'coalesce($2::double precision, extract(epoch FROM statement_timestamp())::double precision * 1000)'
  const part = (wake: string, order: string, since: string) => `MATERIALIZED (
    SELECT d.id, d.since FROM unnest($1::text[]) AS p (program) CROSS JOIN LATERAL (
      SELECT l.id, ${since} AS since FROM ${schema}.logs l
      WHERE l.program = p.program AND l.wake_at IS NOT NULL AND ${wake} AND ($3::text IS NULL OR l.tenant = $3)
        AND coalesce(${HELD_UNTIL} <= clock_timestamp(), true)
      ORDER BY ${order} LIMIT $4 FOR NO KEY UPDATE OF l SKIP LOCKED
    ) AS d
  )`
  // What is lost with the server is taken again; nobody waits for the disk.
  const text = `WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
  marked AS ${part(`${WAKE} = 0`, '(l.updated_minute + 0)', 'l.updated_at')},
  dated AS ${part(`${WAKE} <> 0 AND ${WAKE} <= ${moment}`, WAKE, 'l.wake_at')},
  found AS MATERIALIZED (
    SELECT m.id, m.since FROM marked m UNION ALL SELECT d.id, d.since FROM dated d
  ), taken AS (
    UPDATE ${schema}.logs l
    SET taken_seq = l.seq, taken_until = clock_timestamp() + $5::double precision * interval '1 millisecond'
    WHERE l.id IN (SELECT f.id FROM found f ORDER BY f.since LIMIT $4)
    RETURNING ${schema}.head_json(l, clock_timestamp()) AS head
  )
  SELECT t.head, NULL::double precision FROM taken t
  UNION ALL
  SELECT NULL, CASE WHEN (SELECT count(*) FROM found) < $4 THEN (
    SELECT min(n.ms) FROM unnest($1::text[]) AS p (program) CROSS JOIN LATERAL (
      SELECT extract(epoch FROM min(${HELD_UNTIL}) - clock_timestamp())::double precision * 1000 AS ms
      FROM ${schema}.logs l
      WHERE l.program = p.program AND l.wake_at IS NOT NULL AND ${WAKE} <= ${moment} AND ($3::text IS NULL OR l.tenant = $3)
        AND ${HELD_UNTIL} > clock_timestamp()
      UNION ALL
      (SELECT ${WAKE} - ${moment} FROM ${schema}.logs l
      WHERE l.program = p.program AND l.wake_at IS NOT NULL AND ${WAKE} > ${moment} AND ($3::text IS NULL OR l.tenant = $3)
      ORDER BY ${WAKE} LIMIT 1)
    ) AS n
  ) END FROM quick`
  const keys = encodeArray('text', [...new Set(programs.map(programKey))])
  return { name, text, values: [keys, now === 'now' ? null : now, tenant ?? null, limit, reserveMs] }
}

export function readDuePage(rows: readonly Row[], { limit }: DueQuery): DuePage {
  const heads = rows.flatMap(([head]) => (head ? [parseHead(head)] : []))
  const next = rows.find(([head]) => head === null)?.[1]
  return {
    heads: heads.sort((a, b) => sinceOf(a) - sinceOf(b)),
    more: heads.length >= limit,
    nextMs: next === null || next === undefined ? null : Math.max(0, Number(next)),
  }
}

function sinceOf({ index }: DuePage['heads'][number]): number {
  return index.wakeAt === 0 ? index.updatedAt : (index.wakeAt ?? 0)
}

/** A program's name as the column has it (migrations/0015-due.sql). */
function programKey(program: string): string {
  return JSON.stringify(program).split(']', 1)[0] as string
}
