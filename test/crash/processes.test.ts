import { afterAll, describe, it } from 'vitest'
import { crashRound, fenceRound, openRound, raceRound } from '../../scripts/torture/log-rounds.mjs'
import { durableBackends } from '../support/backends.js'
import { rounds } from '../support/scale.js'

const CRASHES: Readonly<Record<string, number>> = { SQLite: 1000, file: 200, Postgres: 200, Redis: 200 }
const APPENDS = rounds(300, 1000)

for (const backend of await durableBackends()) {
  describe.skipIf(backend.missing)(`real processes on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    const crashes = rounds(backend.name === 'SQLite' ? 10 : 5, CRASHES[backend.name])
    it(`keeps every acknowledged entry through ${crashes} SIGKILLs`, { timeout: 600_000 }, async () => {
      const url = await backend.fresh()
      let acknowledged = 0
      for (let round = 0; round < crashes; round++) {
        acknowledged += (await crashRound({ url, prefix: `r${round}` })).acknowledged
      }
      if (acknowledged === 0) throw new Error('No child acknowledged anything: the rounds proved nothing.')
      console.log(`${backend.name}: ${crashes} kills, ${acknowledged} acknowledged entries, all there`)
    })

    it(`lets two processes append ${APPENDS} times each to one thread, gap-free and linearizable`, {
      timeout: 300_000,
    }, async () => {
      await raceRound({ url: await backend.fresh(), thread: 'raced', count: APPENDS })
    })

    it('opens an empty store from twenty processes at once', { timeout: 120_000 }, async () => {
      await openRound({ url: await backend.fresh() })
    })

    it('fences a frozen worker whose thread was taken over', { timeout: 60_000 }, async () => {
      await fenceRound({ url: await backend.fresh(), thread: 'fenced' })
    })
  })
}
