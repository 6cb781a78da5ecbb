// @ts-check
import { randomUUID } from 'node:crypto'

/**
 * A table of the user's own in the database of a store, without a unique key, so that a repeated insert would show.
 * Undefined where the store can't commit a user's SQL with an entry.
 * @param {import('holdfast').Holdfast} hf @param {string} url
 */
export async function makeUserRows(hf, url) {
  if (!hf.capabilities.transactions) return undefined
  const table = `torture_${randomUUID().slice(0, 8)}`
  /** @param {string} sql @returns {Promise<readonly Record<string, unknown>[]>} */
  const query = async (sql) => {
    const claim = await (await hf.log(`table ${table}`)).claim({ owner: 'torture', ms: 30_000, force: true })
    const { result } = await claim.transact(
      async (session) => (await session.query(sql)).rows,
      () => [{ kind: 'note', index: { status: 'completed' } }],
    )
    return result
  }
  await query(`CREATE TABLE ${table} (id text NOT NULL)`)
  return {
    table,
    mark: url.startsWith('postgres') ? '$1' : '?',
    /** How often each id is there. @returns {Promise<Map<string, number>>} */
    async counts() {
      const rows = await query(`SELECT id, count(*) AS n FROM ${table} GROUP BY id`)
      return new Map(rows.map(({ id, n }) => [String(id), Number(n)]))
    },
    drop: async () => void (await query(`DROP TABLE ${table}`)),
  }
}
