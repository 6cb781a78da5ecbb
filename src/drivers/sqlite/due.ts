import type { DueQuery } from '../../log/contract.js'
import type { Connection } from './connection.js'
import type { Row, SqlValue } from './engine.js'
import { HEAD_COLUMNS, type PackedHead, packHead } from './head-row.js'
import { type Instant, LEASE_RUNS, leaseRunsValues } from './lease.js'

/** Of those that are marked as due this many are compared by age: they are in no order of it. */
const WINDOW = 500

export interface PackedDue {
  readonly heads: PackedHead[]
  readonly more: boolean
  readonly nextMs: number | null
}

interface Candidate {
  readonly id: number
  readonly since: number
}

const IS_TAKEN = '(taken_seq = seq AND taken_boot = ? AND taken_until > ?)'
const DUE_ROWS = 'FROM logs INDEXED BY logs_due WHERE program = ?'

/** What is due of some programs, reserved for who asks. Takes the write lock only when there is something. */
export function takeDue(db: Connection, query: DueQuery, now: () => Instant): PackedDue {
  if (findDue(db, query, now()).length === 0) return { heads: [], more: false, nextMs: nextOf(db, query, now()) }
  return db.write(() => {
    const instant = now()
    const found = findDue(db, query, instant).sort((a, b) => a.since - b.since)
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

function findDue(db: Connection, query: DueQuery, now: Instant): Candidate[] {
  const free = `${LEASE_RUNS} IS NOT TRUE AND ${IS_TAKEN} IS NOT TRUE`
  const freeValues = [...leaseRunsValues(now), now.bootId, now.monotonic]
  const { tenant, values } = ofTenant(query)
  const candidates: Candidate[] = []
  for (const program of keysOf(query)) {
    const marked = `SELECT id, updated_at AS since ${DUE_ROWS} AND wake_at = 0 ${tenant} AND ${free} LIMIT ?`
    const dated = `SELECT id, wake_at AS since ${DUE_ROWS} AND wake_at <> 0 AND wake_at <= ? ${tenant} AND ${free}
      ORDER BY wake_at LIMIT ?`
    candidates.push(
      ...(db.all(marked, program, ...values, ...freeValues, Math.max(WINDOW, query.limit + 1)) as never as Candidate[]),
      ...(db.all(
        dated,
        program,
        wallOf(query, now),
        ...values,
        ...freeValues,
        query.limit + 1,
      ) as never as Candidate[]),
    )
  }
  return candidates
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
    const held = (until: string, condition: string) =>
      `SELECT min(${until}) AS at ${DUE_ROWS} AND wake_at <= ? ${tenant} AND ${condition}`
    const leased = db.get(held('lease_until', LEASE_RUNS), program, wall, ...values, ...leaseRunsValues(now))
    const taken = db.get(held('taken_until', IS_TAKEN), program, wall, ...values, now.bootId, now.monotonic)
    const sleeper = db.get(`SELECT min(wake_at) AS at ${DUE_ROWS} AND wake_at > ? ${tenant}`, program, wall, ...values)
    note(leased?.['at'], now.monotonic)
    note(taken?.['at'], now.monotonic)
    note(sleeper?.['at'], wall)
  }
  return next === Number.POSITIVE_INFINITY ? null : next
}

function ofTenant({ tenant }: DueQuery): { readonly tenant: string; readonly values: SqlValue[] } {
  return tenant === undefined ? { tenant: '', values: [] } : { tenant: 'AND tenant = ?', values: [tenant] }
}

function wallOf({ now: asked }: DueQuery, now: Instant): number {
  return asked === 'now' ? now.wall : asked
}

/** Programs' names as the column has them (migrations/0003-find-due.ts). */
function keysOf({ programs }: DueQuery): string[] {
  return [...new Set(programs.map((program) => JSON.stringify(program).split(']', 1)[0] as string))]
}
