// @ts-check
import pg from 'pg'

/**
 * A prepared INSERT over one connection, one commit each. States are text: quicker to read than bytea.
 * @param {string} url
 * @param {string} schema
 * @returns {Promise<import('../backends.mjs').Floor>}
 */
export async function openPostgresFloor(url, schema) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE SCHEMA ${schema}`)
  await client.query(`CREATE TABLE ${schema}.entries (id bigint PRIMARY KEY, bytes bytea NOT NULL)`)
  await client.query(`CREATE TABLE ${schema}.states (name text PRIMARY KEY, json text NOT NULL)`)
  const insert = { name: 'insert', text: `INSERT INTO ${schema}.entries VALUES ($1, $2)` }
  const select = { name: 'select', text: `SELECT json FROM ${schema}.states WHERE name = $1` }
  let id = 0
  return {
    write: (bytes) => client.query({ ...insert, values: [id++, bytes] }),
    putState: (name, json) =>
      client.query(
        `INSERT INTO ${schema}.states VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET json = EXCLUDED.json`,
        [name, json],
      ),
    getState: async (name) => JSON.parse((await client.query({ ...select, values: [name] })).rows[0].json),
    close: () => client.end(),
  }
}

/** Drops every schema whose name begins like this. @param {string} url @param {string} start */
export async function dropSchemas(url, start) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('SET client_min_messages = warning')
  const { rows } = await client.query('SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)', [start])
  for (const { nspname } of rows) await client.query(`DROP SCHEMA ${client.escapeIdentifier(nspname)} CASCADE`)
  await client.end()
}
