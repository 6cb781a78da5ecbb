import { type DuePlace, inDueOrder } from '../../../core/due-order.js'
import type { DueQuery, WarmQuery } from '../../../log/contract.js'
import type { Connection } from '../connection/connection.js'
import type { Row, SqlValue } from '../connection/engine.js'
import { HEAD_COLUMNS, type PackedHead, packHead } from '../rows/head-row.js'
import { type Instant, LEASE_RUNS, leaseRunsValues } from '../rows/lease.js'

/** Of those whose time has come this many are compared, so that tenants have their turns among them, too. */
const WINDOW = 200
/** Above every priority. */
const TOP = 2 ** 31

export interface PackedDue {
  readonly heads: PackedHead[]
  readonly more: boolean
  readonly nextMs: number | null
}

interface Candidate extends DuePlace {
  readonly id: number
}

const IS_TAKEN = '(taken_seq = seq AND taken_boot = ? AND taken_until > ?)'
const MARKED = 'FROM logs INDEXED BY logs_marked WHERE wake_at = 0 AND program = ?'
const DATED = 'FROM logs INDEXED BY logs_dated WHERE wake_at <> 0 AND program = ?'

/** When a row became due. */
const SINCE = 'CASE wake_at WHEN 0 THEN updated_at ELSE wake_at END'
/**
 * Left to whoever held it last: due for a moment, by the wall clock, and only since its lease ended, by the monotonic one.
 */
const IS_LEFT = `(lease_owner <> ? AND ${SINCE} > ? AND ${SINCE} < ? AND ${SINCE} + ? > lease_until)`

/** What is due for some programs, reserved for the caller. Takes the write lock only if there is something. */
export function takeDue(db: Connection, query: DueQuery, now: () => Instant): PackedDue {
  if (findDue(db, query, now()).length === 0) return { heads: [], more: false, nextMs: nextOf(db, query, now()) }
  return db.write(() => {
    const instant = now()
    const found = inDueOrder(findDue(db, query, instant), query.after)
    const taken = found.slice(0, query.limit)
    const until = instant.monotonic + query.reserveMs
    for (const { id } of taken) {
      db.run('UPDATE logs SET taken_seq = seq, taken_boot = ?, taken_until = ? WHERE id = ?', instant.bootId, until, id)
    }
    const heads = taken.map(({ id }) => db.get(`SELECT ${HEAD_COLUMNS} FROM logs WHERE id = ?`, id) as Row)
    const more = found.length > taken.length
    return { heads: heads.map((row) => packHead(row, instant)), more, nextMs: more ? null : nextOf(db, query, instant) }
  })
}

/** Enough of each program to know whose turn it is, and whether there is more. */
function findDue(db: Connection, query: DueQuery, now: Instant): Candidate[] {
  return keysOf(query).flatMap((program) => {
    const found: Candidate[] = []
    for (const priority of prioritiesOf(db, program)) {
      if (found.length > query.limit) break
      found.push(...findMarked(db, query, now, program, priority), ...findDated(db, query, now, program, priority))
    }
    return found
  })
}

/** The priorities of a program that have anything, highest first: one step in the index for each. */
function* prioritiesOf(db: Connection, program: string): Generator<number> {
  const below = (rows: string, top: number) =>
    db.get(`SELECT priority ${rows} AND priority < ? ORDER BY priority DESC LIMIT 1`, program, top)?.['priority']
  for (let top = TOP; ; ) {
    const next = [below(MARKED, top), below(DATED, top)].filter((found) => typeof found === 'number')
    if (next.length === 0) return
    top = Math.max(...next)
    yield top
  }
}

/** Of tenants by turns, beginning behind the one whose turn was last: one step in the index to each. */
function findMarked(db: Connection, query: DueQuery, now: Instant, program: string, priority: number): Candidate[] {
  const { condition, values } = isFree(query, now, program)
  const sql = `SELECT id, priority, tenant, updated_at AS since ${MARKED} AND priority = ? AND tenant = ? AND ${condition}
    ORDER BY updated_minute LIMIT ?`
  const full = new Set(query.except?.flatMap(({ tenant, key }) => (key === undefined ? [tenant] : [])))
  const isFull = (tenant: string) =>
    full.has(tenant as never) &&
    query.except?.some((group) => group.tenant === tenant && !group.key && keyOf(group.program) === program)
  const found: Candidate[] = []
  let tenants = 0
  for (const tenant of query.tenant === undefined ? tenantsOf(db, query, program, priority) : [query.tenant]) {
    if (isFull(tenant)) continue
    const rows = db.all(sql, program, priority, tenant, ...values, query.limit + 1) as never as Candidate[]
    found.push(...rows)
    if (rows.length > 0 && ++tenants > query.limit) break
  }
  return found
}

function* tenantsOf(db: Connection, { after = '' as never }: DueQuery, program: string, priority: number) {
  const next = (above: string) =>
    db.get(`SELECT tenant ${MARKED} AND priority = ? AND tenant > ? ORDER BY tenant LIMIT 1`, program, priority, above)
  for (let at = next(after); at; at = next(at['tenant'] as string)) yield at['tenant'] as string
  if (after === '') return
  for (let at = next(''); at && (at['tenant'] as string) <= after; at = next(at['tenant'] as string)) {
    yield at['tenant'] as string
  }
}

function findDated(db: Connection, query: DueQuery, now: Instant, program: string, priority: number): Candidate[] {
  const { condition, values } = isFree(query, now, program)
  const { tenant, values: tenants } = ofTenant(query)
  const full = (query.except ?? []).filter((group) => group.key === undefined && keyOf(group.program) === program)
  const sql = `SELECT id, priority, tenant, wake_at AS since ${DATED} AND priority = ? AND wake_at <= ? ${tenant}
    AND ${condition} ${full.length > 0 ? 'AND tenant NOT IN (SELECT value FROM json_each(?))' : ''} ORDER BY wake_at LIMIT ?`
  const most = Math.max(WINDOW, query.limit + 1)
  const excepted = full.length > 0 ? [JSON.stringify(full.map((group) => group.tenant))] : []
  return db.all(
    sql,
    program,
    priority,
    wallOf(query, now),
    ...tenants,
    ...values,
    ...excepted,
    most,
  ) as never as Candidate[]
}

function isFree(query: DueQuery, now: Instant, program: string): { readonly condition: string; values: SqlValue[] } {
  const left = query.warm === undefined ? [] : leftValues(query.warm, query, now)
  const keys = (query.except ?? []).filter((group) => group.key !== undefined && keyOf(group.program) === program)
  // As one value, since a statement can hold only so many conditions.
  const isPassed = '(tenant || char(10) || limit_key) IN (SELECT value FROM json_each(?))'
  return {
    condition: `${LEASE_RUNS} IS NOT TRUE AND ${IS_TAKEN} IS NOT TRUE ${left.length > 0 ? `AND ${IS_LEFT} IS NOT TRUE` : ''}
      ${keys.length > 0 ? `AND ${isPassed} IS NOT TRUE` : ''}`,
    values: [
      ...leaseRunsValues(now),
      now.bootId,
      now.monotonic,
      ...left,
      ...(keys.length > 0 ? [JSON.stringify(keys.map(({ tenant, key }) => `${tenant}\n${keyOf(key as string)}`))] : []),
    ],
  }
}

function leftValues({ owner, ms }: WarmQuery, query: DueQuery, now: Instant): SqlValue[] {
  const wall = wallOf(query, now)
  return [JSON.stringify(owner), wall - ms, wall + ms, now.monotonic - wall]
}

/** When the first of those is free that are held now, or the first wakes. */
function nextOf(db: Connection, query: DueQuery, now: Instant): number | null {
  const { tenant, values } = ofTenant(query)
  const wall = wallOf(query, now)
  let next = Number.POSITIVE_INFINITY
  const note = (at: SqlValue | undefined, from: number) => {
    if (typeof at === 'number') next = Math.min(next, Math.max(0, at - from))
  }
  for (const program of keysOf(query)) {
    for (const rows of [`${MARKED} ${tenant}`, `${DATED} AND wake_at <= ? ${tenant}`]) {
      const given = rows.startsWith(MARKED) ? [program, ...values] : [program, wall, ...values]
      const held = (until: string, condition: string) => `SELECT min(${until}) AS at ${rows} AND ${condition}`
      note(db.get(held('lease_until', LEASE_RUNS), ...given, ...leaseRunsValues(now))?.['at'], now.monotonic)
      note(db.get(held('taken_until', IS_TAKEN), ...given, now.bootId, now.monotonic)?.['at'], now.monotonic)
      const { warm } = query
      if (warm === undefined) continue
      note(db.get(held(SINCE, IS_LEFT), ...given, ...leftValues(warm, query, now))?.['at'], wall - warm.ms)
    }
    const sleeper = `SELECT wake_at AS at ${DATED} AND priority = ? AND wake_at > ? ${tenant} ORDER BY wake_at LIMIT 1`
    for (const priority of prioritiesOf(db, program)) {
      note(db.get(sleeper, program, priority, wall, ...values)?.['at'], wall)
    }
  }
  return next === Number.POSITIVE_INFINITY ? null : next
}

function ofTenant({ tenant }: DueQuery): { readonly tenant: string; readonly values: SqlValue[] } {
  return tenant === undefined ? { tenant: '', values: [] } : { tenant: 'AND tenant = ?', values: [tenant] }
}

function wallOf({ now: asked }: DueQuery, now: Instant): number {
  return asked === 'now' ? now.wall : asked
}

function keysOf({ programs }: DueQuery): string[] {
  return [...new Set(programs.map(keyOf))]
}

/** A label's text as the column has it (migrations/0003-find-due.ts). */
function keyOf(text: string): string {
  return JSON.stringify(text).split(']', 1)[0] as string
}
