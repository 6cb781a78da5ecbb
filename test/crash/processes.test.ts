import { afterAll, describe, it } from 'vitest'
import { crashRound, fenceRound, openRound, raceRound } from '../../scripts/torture/log-rounds.mjs'
import { durableBackends } from '../support/backends.js'
import { rounds } from '../support/scale.js'

const CRASHES: Readonly<Record<string, number>> = { SQLite: 50, file: 10, Postgres: 10, Redis: 10 }

for (const backend of await durableBackends()) {
  describe.skipIf(backend.missing)(`real processes on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    const crashes = rounds(CRASHES[backend.name] ?? 10)
    it(`keeps every acknowledged entry through ${crashes} SIGKILLs`, { timeout: 600_000 }, async () => {
      const url = await backend.fresh()
      let acknowledged = 0
      for (let round = 0; round < crashes; round++) {
        acknowledged += (await crashRound({ url, prefix: `r${round}` })).acknowledged
      }
      if (acknowledged === 0) throw new Error('No child acknowledged anything: the rounds proved nothing.')
      console.log(`${backend.name}: ${crashes} kills, ${acknowledged} acknowledged entries, all there`)
    })

    it('lets two processes append 1,000 times each to one thread, gap-free and linearizable', {
      timeout: 300_000,
    }, async () => {
      await raceRound({ url: await backend.fresh(), thread: 'raced', count: 1000 })
    })

    it('opens an empty store from twenty processes at once', { timeout: 120_000 }, async () => {
      await openRound({ url: await backend.fresh() })
    })

    it('fences a frozen worker whose thread was taken over', { timeout: 60_000 }, async () => {
      await fenceRound({ url: await backend.fresh(), thread: 'fenced' })
    })
  })
}
