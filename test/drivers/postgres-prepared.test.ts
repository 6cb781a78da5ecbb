import pg from 'pg'
import { sendPrepared } from '#src/drivers/postgres/connection/prepared-query.js'
import type { PgClientLike } from '#src/drivers/postgres/pg-client.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const url = process.env['HOLDFAST_TEST_POSTGRES_URL'] ?? ''

describe.skipIf(url === '')('a prepared statement on a client of pg', () => {
  const client = new pg.Client({ connectionString: url })
  const lent = client as unknown as PgClientLike

  beforeAll(() => client.connect())
  afterAll(() => client.end())

  it('carries every kind of value as pg itself does', async () => {
    const text = `SELECT $1::text, $2::bigint, $3::boolean, $4::double precision, $5::bytea, $6::text, $7::text, $8::bytea`
    const values = [
      'ä\u{1f600}"\\',
      9007199254740993n,
      true,
      -0.1,
      Buffer.from([0, 255]),
      null,
      undefined,
      new Uint8Array(0),
    ]
    const expected = await client.query({
      text,
      values,
      rowMode: 'array',
      types: { getTypeParser: () => (value: string) => value },
    })
    for (let i = 0; i < 2; i++) {
      expect(await sendPrepared(lent, { name: 'kinds', text, values })).toEqual(expected.rows)
    }
  })

  it('returns rows in their order, and none as none', async () => {
    const text = 'SELECT n FROM generate_series(1, $1::int) AS n'
    expect(await sendPrepared(lent, { name: 'series', text, values: [3] })).toEqual([['1'], ['2'], ['3']])
    expect(await sendPrepared(lent, { name: 'series', text, values: [0] })).toEqual([])
  })

  it('fails alone: what follows on the connection is answered', async () => {
    const divide = { name: 'divide', text: 'SELECT 1 / $1::int', values: [0] }
    const wrong = { name: 'wrong', text: 'SELECT nothing FROM nowhere WHERE 1 = $1', values: [1] }
    await expect(sendPrepared(lent, divide)).rejects.toMatchObject({ code: '22012' })
    await expect(sendPrepared(lent, wrong)).rejects.toMatchObject({ code: '42P01' })
    expect(await sendPrepared(lent, { ...divide, values: [1] })).toEqual([['1']])
    expect((await client.query('SELECT 2 AS two')).rows).toEqual([{ two: 2 }])
    await expect(sendPrepared(lent, wrong)).rejects.toMatchObject({ code: '42P01' })
  })

  it('shares what the server has parsed with other queries of pg', async () => {
    const statement = { name: 'shared', text: 'SELECT $1::int + 1', values: [1] }
    await client.query({ ...statement, values: [5] })
    expect(await sendPrepared(lent, statement)).toEqual([['2']])
    expect((await client.query({ ...statement, rowMode: 'array' })).rows).toEqual([[2]])
  })

  it('is heard of by whoever puts a callback in the place of its own', async () => {
    const limited = new pg.Client({ connectionString: url, query_timeout: 60_000 })
    await limited.connect()
    const statement = { name: 'limited', text: 'SELECT $1::int', values: [7] }
    expect(await sendPrepared(limited as unknown as PgClientLike, statement)).toEqual([['7']])
    await limited.end()
  })

  it('is left to pg when it has no name, or a value of another kind, or the client is another', () => {
    const statement = { name: 'left', text: 'SELECT $1', values: [1] }
    expect(sendPrepared(lent, { text: 'SELECT $1', values: [1] })).toBeUndefined()
    expect(sendPrepared(lent, { ...statement, values: [[1]] })).toBeUndefined()
    expect(sendPrepared(lent, { ...statement, values: [new Date()] })).toBeUndefined()
    expect(sendPrepared({ query: () => {} } as unknown as PgClientLike, statement)).toBeUndefined()
  })

  it('fails when the connection ends', async () => {
    const ended = new pg.Client({ connectionString: url })
    ended.on('error', () => {})
    await ended.connect()
    const { rows } = await ended.query('SELECT pg_backend_pid() AS pid')
    const waiting = sendPrepared(ended as unknown as PgClientLike, {
      name: 'sleep',
      text: 'SELECT pg_sleep($1)',
      values: [600],
    })
    const [outcome] = await Promise.allSettled([
      waiting,
      client.query('SELECT pg_terminate_backend($1)', [rows[0].pid]),
    ])
    expect(outcome.status).toBe('rejected')
  })
})
