import { afterAll, describe, it } from 'vitest'
import { crashRound, fenceRound, openRound, raceRound } from '../../scripts/torture/log-rounds.mjs'
import { durableBackends } from '../support/backends.js'
import { rounds } from '../support/scale.js'

const CRASHES: Readonly<Record<string, number>> = { SQLite: 1000, file: 200, Postgres: 200, Redis: 200 }
const APPENDS = rounds(80, 1000)

for (const backend of await durableBackends()) {
  describe.skipIf(backend.missing)(`real processes on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    const crashes = rounds(backend.name === 'SQLite' ? 4 : 2, CRASHES[backend.name])
    it(`keeps every acknowledged entry through ${crashes} SIGKILLs`, { timeout: 600_000 }, async () => {
      const url = await backend.fresh()
      let acknowledged = 0
      // Every other child has something acknowledged before it is killed, however slow the machine is.
      for (let round = 0; round < crashes; round++) {
        const after = round % 2 === 0 ? 'ack' : 'ready'
        acknowledged += (await crashRound({ url, prefix: `r${round}`, after })).acknowledged
      }
      console.log(`${backend.name}: ${crashes} kills, ${acknowledged} acknowledged entries, all there`)
    })

    it(`lets two processes append ${APPENDS} times each to one thread, gap-free and linearizable`, {
      timeout: 600_000,
    }, async () => {
      await raceRound({ url: await backend.fresh(), thread: 'raced', count: APPENDS })
    })

    it('opens an empty store from twenty processes at once', { timeout: 600_000 }, async () => {
      await openRound({ url: await backend.fresh() })
    })

    it('fences a frozen worker whose thread was taken over', { timeout: 600_000 }, async () => {
      await fenceRound({ url: await backend.fresh(), thread: 'fenced' })
    })
  })
}
