import type { DuePage, DueQuery } from '../../../log/contract.js'
import { encodeArray } from '../values/binary-array.js'
import { parseHead } from '../values/head-row.js'
import type { Row, Statement } from '../connection/sessions.js'
import { toText } from '../values/text-form.js'

/** Takes what is due (migrations/0017-prefer-warm.sql). */
export function makeDueStatement(schema: string, name: string, query: DueQuery): Statement {
  const { programs, tenant, now, limit, reserveMs, after, except = [], warm } = query
  const text = `SELECT d.head, d.turn, d.more, d.next_ms
    FROM ${schema}.take_due($1::text[], $2::double precision, $3, $4::integer, $5::double precision, $6, $7::text[], $8,
      $9::double precision) AS d`
  const passed = except.map(({ program, tenant: owner, key }) =>
    [labelText(program), owner, ...(key === undefined ? [] : [labelText(key)])].join('\n'),
  )
  return {
    name,
    text,
    values: [
      encodeArray('text', [...new Set(programs.map(labelText))]),
      now === 'now' ? null : now,
      tenant ?? null,
      limit,
      reserveMs,
      after ?? '',
      encodeArray('text', passed),
      warm === undefined ? null : toText(warm.owner),
      warm?.ms ?? 0,
    ],
  }
}

export function readDuePage(rows: readonly Row[]): DuePage {
  const taken = rows.filter(([head]) => head !== null).sort((a, b) => Number(a[1]) - Number(b[1]))
  const [, , more, next] = rows.find(([head]) => head === null) as Row
  return {
    heads: taken.map(([head]) => parseHead(head as never)),
    more: String(more).startsWith('t'),
    nextMs: next === null || next === undefined ? null : Math.max(0, Number(next)),
  }
}

/** The text of a label as the columns have it (migrations/0015-due.sql). */
function labelText(text: string): string {
  return JSON.stringify(text).split(']', 1)[0] as string
}
