import type { HeadPage, HeadQuery } from '../../../log/contract.js'
import { cursorAfter, parseCursor } from '../../shared/cursor.js'
import { encodeArray } from '../values/binary-array.js'
import { parseHead } from '../values/head-row.js'
import { metadataLabel, tagLabel } from '../values/labels.js'
import type { Row, Statement } from '../connection/sessions.js'
import { toText } from '../values/text-form.js'

const MAX_UNION = 8
const MAX_JOINS = 4

/**
 * One page of the index, and one row more that tells whether another page follows. The text depends on which filters
 * are there, never on their values, which are all bound.
 */
export function makeHeadsStatement(schema: string, query: HeadQuery): Statement {
  const values: unknown[] = []
  const bind = (value: unknown) => `$${values.push(value)}`
  const where = filters(schema, query, bind)
  const limit = `LIMIT ${bind(query.limit + 1)}`
  const order = orderBy(query)
  const statuses = query.status && [...new Set(query.status)].map((status) => bind(toText(status)))
  if (statuses === undefined || statuses.length === 0 || statuses.length > MAX_UNION) {
    if (statuses !== undefined) where.push(statuses.length === 0 ? 'false' : `l.status IN (${statuses.join(', ')})`)
    return {
      text: `SELECT ${schema}.head_json(l, clock_timestamp()) FROM ${schema}.logs l ${conditions(where)} ${order} ${limit}`,
      values,
    }
  }
  // One ordered walk of the index per status: a walk over several would have to sort all they hold for every page. The
  // index is on groups of statuses (see migrations/0022-status-groups.sql).
  const parts = statuses.map((status) => {
    const fits = [...where, `l.status_group = ${schema}.status_group_in(${status})`, `l.status = ${status}`]
    return `(SELECT l AS log, l.* FROM ${schema}.logs l ${conditions(fits)} ${order} ${limit})`
  })
  return {
    text: `SELECT ${schema}.head_json(l.log, clock_timestamp()) FROM (${parts.join(' UNION ALL ')}) l ${order} ${limit}`,
    values,
  }
}

export function readHeadPage(rows: readonly Row[], query: HeadQuery): HeadPage {
  const heads = rows.slice(0, query.limit).map(([json]) => parseHead(json as string))
  const last = heads.at(-1)
  return rows.length > query.limit && last !== undefined ? { heads, cursor: cursorAfter(last, query) } : { heads }
}

function filters(schema: string, query: HeadQuery, bind: (value: unknown) => string): string[] {
  const where: string[] = []
  // The indexes of a tenant's logs are on an expression; the one by name is on the column.
  if (query.tenant !== undefined) {
    where.push(`${query.thread === undefined ? "(l.tenant || '')" : 'l.tenant'} = ${bind(query.tenant)}`)
  }
  if (query.thread !== undefined) where.push(`l.thread = ${bind(query.thread)}`)
  for (const part of query.parts ?? []) {
    const inner = "',' || substr(l.thread, 2, length(l.thread) - 2) || ','"
    where.push(`left(l.thread, 1) = '{' AND strpos(${inner}, ${bind(`,${part},`)}) > 0`)
  }
  if (query.branch !== undefined) where.push(`l.branch = ${bind(query.branch)}`)
  const labels = labelFilters(query)
  if (labels.length > MAX_JOINS) {
    // One join per label would take the planner longer than any search.
    const list = bind(encodeArray('bytea', labels))
    where.push(
      `l.id IN (SELECT n.log_id FROM ${schema}.labels n WHERE n.label = ANY (${list}) GROUP BY n.log_id HAVING count(*) = ${labels.length})`,
    )
  } else {
    for (const label of labels) {
      where.push(`l.id IN (SELECT n.log_id FROM ${schema}.labels n WHERE n.label = ${bind(label)})`)
    }
  }
  // The indexes are on minutes (see migrations/0001-tables.sql), so a time is compared with both.
  const minuteOf = (time: string) => `floor(${time}::double precision / 60000)`
  if (query.updatedBefore !== undefined) {
    const time = bind(query.updatedBefore)
    where.push(`l.updated_at < ${time} AND l.updated_minute <= ${minuteOf(time)}`)
  }
  if (query.updatedAfter !== undefined) {
    const time = bind(query.updatedAfter)
    where.push(`l.updated_at > ${time} AND l.updated_minute >= ${minuteOf(time)}`)
  }
  if (query.wakeBefore !== undefined) {
    // Not clock_timestamp(): no index is searched for what may change from row to row.
    const now = 'extract(epoch FROM statement_timestamp())::double precision * 1000'
    where.push(`l.wake_at <= ${query.wakeBefore === 'now' ? now : bind(query.wakeBefore)}`)
  }
  if (query.expiresBefore !== undefined) {
    const time = bind(query.expiresBefore)
    where.push(`l.expires_at <= ${time} AND l.expires_minute <= ${minuteOf(time)}`)
  }
  if (query.lease !== undefined) {
    const held = 'l.lease_owner IS NOT NULL AND l.lease_until > clock_timestamp()'
    where.push(query.lease === 'held' ? held : `NOT (${held})`)
  }
  if (query.cursor !== undefined) where.push(afterCursor(query, query.cursor, bind))
  return where
}

function labelFilters(query: HeadQuery): Buffer[] {
  const metadata = Object.entries(query.metadata ?? {})
  return [...[...new Set(query.tags)].map(tagLabel), ...metadata.map(([name, value]) => metadataLabel(name, value))]
}

function afterCursor(query: HeadQuery, cursor: string, bind: (value: unknown) => string): string {
  const { value, log } = parseCursor(cursor)
  const compare = query.direction === 'asc' ? '>' : '<'
  const time = bind(value)
  const names = [log.tenant, log.thread, log.branch].map(bind).join(', ')
  const column = query.order === 'updated' ? 'l.updated_at' : 'l.created_at'
  const start =
    query.order === 'updated'
      ? `l.updated_minute ${compare}= floor(${time}::double precision / 60000)`
      : `l.created_at ${compare}= ${time}`
  return `${start} AND (${column}, l.tenant, l.thread, l.branch) ${compare} (${time}, ${names})`
}

function orderBy(query: HeadQuery): string {
  const columns = query.order === 'updated' ? ['updated_minute', 'updated_at'] : ['created_at']
  const direction = query.direction === 'asc' ? 'ASC' : 'DESC'
  return `ORDER BY ${[...columns, 'tenant', 'thread', 'branch'].map((column) => `l.${column} ${direction}`).join(', ')}`
}

function conditions(where: readonly string[]): string {
  return where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`
}
