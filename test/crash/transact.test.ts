import { openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { transactRound } from '../../scripts/torture/log-rounds.mjs'
import { durableBackends } from '../support/backends.js'
import { rounds } from '../support/scale.js'
import { makeUserTable } from '../support/user-table.js'

for (const backend of await durableBackends()) {
  if (backend.name !== 'SQLite' && backend.name !== 'Postgres') continue
  describe.skipIf(backend.missing)(`transactions of real processes on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    const kills = rounds(6, 300)
    it(`holds as many rows as records through ${kills} SIGKILLs`, { timeout: 600_000 }, async () => {
      const url = await backend.fresh()
      await (await openHoldfast(url)).close()
      const table = await makeUserTable(backend, url)
      const round = { url, thread: 'orders', table: table.name, readIds: () => table.ids() }
      let recorded = 0
      // Every other one is killed only after it has recorded something, however slow the machine is.
      for (let i = 0; i < kills; i++) {
        recorded = (await transactRound({ ...round, after: i % 2 === 0 ? 'ack' : 'ready' })).recorded
      }
      expect(recorded).toBeGreaterThanOrEqual(kills / 2)
      // Both statements of each transaction, once.
      expect(await table.run(`SELECT id FROM ${table.name} WHERE n <> 1`)).toEqual([])
      console.log(`${backend.name}: ${kills} kills, ${recorded} rows and as many records`)
      await table.run(`DROP TABLE ${table.name}`)
    })
  })
}
