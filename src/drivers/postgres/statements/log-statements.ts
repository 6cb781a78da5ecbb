import type { LogKey, StoredEntry, StoredHeader, Tail } from '../../../log/contract.js'
import { encodeArray } from '../values/binary-array.js'
import { parseHead } from '../values/head-row.js'
import type { Row, Statement } from '../connection/sessions.js'
import { toText } from '../values/text-form.js'

// Bytes are asked for in an encoding of our choice: how bytea is shown is a setting of the server.
const KEY = 'l.tenant = $1 AND l.thread = $2 AND l.branch = $3'
const HEADER = "e.seq, e.keyframe, encode(e.hash, 'hex'), encode(e.header, 'base64')"
const ENTRY = `${HEADER}, encode(e.body, 'base64')`

/** The statements that read or renew one log. Each is one statement, and so one snapshot. */
export interface LogStatements {
  head(log: LogKey): Statement
  /** The head first, with only its column set; then the entries, in any order. */
  tail(log: LogKey, upTo: number | undefined): Statement
  /** The newest of several logs: before each row of `tail` the place in the list, from 1. */
  tails(logs: readonly LogKey[]): Statement
  read(log: LogKey, from: number, limit: number): Statement
  headers(log: LogKey, before: number | undefined, limit: number): Statement
  renew(log: LogKey, incarnation: string, epoch: number, ms: number): Statement
  /** Of those that exist: the place in the list, from 1, incarnation and seq. */
  positions(logs: readonly LogKey[]): Statement
}

export function makeLogStatements(schema: string, nameOf: (operation: string) => string): LogStatements {
  const headText = `SELECT ${schema}.head_json(l, clock_timestamp()) FROM ${schema}.logs l WHERE ${KEY}`
  // Compared with the keyframe by itself: the greater of two columns is no condition for the index, and each read would
  // walk through the log from its first entry.
  const tailText = `SELECT ${schema}.head_json(l, clock_timestamp()), NULL::bigint, NULL::bigint, NULL::text, NULL::text, NULL::text
    FROM ${schema}.logs l WHERE ${KEY}
    UNION ALL
    SELECT NULL, ${ENTRY}
    FROM ${schema}.logs l
    JOIN ${schema}.entries last ON last.log_id = l.id AND last.seq = coalesce($4::bigint, l.seq)
    JOIN ${schema}.entries e ON e.log_id = l.id AND e.seq BETWEEN last.keyframe AND last.seq AND e.seq >= l.base_seq
    WHERE ${KEY}`
  // Each log by itself: no plan that was made while the tables were small walks through them when they are large.
  const named = `unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS n (tenant, thread, branch, i)
    CROSS JOIN LATERAL (
      SELECT l AS log FROM ${schema}.logs l
      WHERE l.tenant = n.tenant AND l.thread = n.thread AND l.branch = n.branch OFFSET 0
    ) AS l`
  const tailsText = `SELECT n.i, ${schema}.head_json(l.log, clock_timestamp()), NULL::bigint, NULL::bigint, NULL::text, NULL::text, NULL::text
    FROM ${named}
    UNION ALL
    SELECT n.i, NULL, ${ENTRY}
    FROM ${named}
    CROSS JOIN LATERAL (
      SELECT e.keyframe FROM ${schema}.entries e WHERE e.log_id = (l.log).id AND e.seq = (l.log).seq OFFSET 0
    ) AS last
    CROSS JOIN LATERAL (
      SELECT e.* FROM ${schema}.entries e
      WHERE e.log_id = (l.log).id AND e.seq BETWEEN greatest(last.keyframe, (l.log).base_seq) AND (l.log).seq OFFSET 0
    ) AS e`
  const readText = `SELECT ${ENTRY} FROM ${schema}.logs l JOIN ${schema}.entries e ON e.log_id = l.id
    WHERE ${KEY} AND e.seq >= $4 ORDER BY e.seq LIMIT $5`
  const headersText = `SELECT ${HEADER}, octet_length(e.body)
    FROM ${schema}.logs l JOIN ${schema}.entries e ON e.log_id = l.id
    WHERE ${KEY} AND e.seq < coalesce($4::bigint, l.seq + 1) ORDER BY e.seq DESC LIMIT $5`
  const renewText = `UPDATE ${schema}.logs l SET lease_until = clock_timestamp() + $5::double precision * interval '1 millisecond'
    WHERE ${KEY} AND l.incarnation = $6 AND l.epoch = $4 AND l.lease_owner IS NOT NULL RETURNING 1`
  const positionsText = `SELECT n.i, l.incarnation, l.seq
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS n (tenant, thread, branch, i)
    CROSS JOIN LATERAL (
      SELECT l.incarnation, l.seq FROM ${schema}.logs l
      WHERE l.tenant = n.tenant AND l.thread = n.thread AND l.branch = n.branch OFFSET 0
    ) AS l`
  return {
    head: (log) => ({ name: nameOf('head'), text: headText, values: keyValues(log) }),
    tail: (log, upTo) => ({ name: nameOf('tail'), text: tailText, values: [...keyValues(log), upTo ?? null] }),
    tails: (logs) => ({ name: nameOf('tails'), text: tailsText, values: keyArrays(logs) }),
    read: (log, from, limit) => ({ name: nameOf('read'), text: readText, values: [...keyValues(log), from, limit] }),
    headers: (log, before, limit) => ({
      name: nameOf('headers'),
      text: headersText,
      values: [...keyValues(log), before ?? null, limit],
    }),
    renew: (log, incarnation, epoch, ms) => ({
      name: nameOf('renew'),
      text: renewText,
      values: [...keyValues(log), epoch, ms, toText(incarnation)],
    }),
    positions: (logs) => ({ name: nameOf('positions'), text: positionsText, values: keyArrays(logs) }),
  }
}

export function keyValues({ tenant, thread, branch }: LogKey): unknown[] {
  return [tenant, thread, branch]
}

function keyArrays(logs: readonly LogKey[]): unknown[] {
  return (['tenant', 'thread', 'branch'] as const).map((part) =>
    encodeArray(
      'text',
      logs.map((log) => log[part]),
    ),
  )
}

export function readEntry([seq, keyframe, hash, header, body]: Row): StoredEntry {
  return {
    seq: Number(seq),
    keyframe: Number(keyframe),
    hash: hash as string,
    header: bytesOf(header),
    body: bytesOf(body),
  }
}

/** The rows of one log, in any order; undefined if there is none. */
export function readTail(rows: readonly Row[]): Tail | undefined {
  const head = rows.find(([json]) => json !== null)?.[0]
  if (!head) return undefined
  const entries = rows.filter(([json]) => json === null).map((row) => readEntry(row.slice(1)))
  return { head: parseHead(head), entries: entries.sort((a, b) => a.seq - b.seq) }
}

export function readHeader([seq, keyframe, hash, header, size]: Row): StoredHeader {
  return {
    seq: Number(seq),
    keyframe: Number(keyframe),
    hash: hash as string,
    header: bytesOf(header),
    size: Number(size),
  }
}

export function bytesOf(base64: string | null | undefined): Uint8Array {
  return Buffer.from(base64 ?? '', 'base64')
}
