import { afterAll, describe, expect, it } from 'vitest'
import { fleetRound } from '../../scripts/torture/fleet-round.mjs'
import { durableBackends } from '../support/backends.js'
import { rounds } from '../support/scale.js'

const SESSIONS = rounds(3, 200)

// Files have no index of what is due: three workers that walk over all threads are for `npm run torture`.
for (const backend of (await durableBackends()).filter(({ name }) => name !== 'file')) {
  describe.skipIf(backend.missing)(`the demo's conversations on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    it('are all answered, and nothing is returned twice, while one worker after the other is killed', {
      timeout: 3_600_000,
    }, async () => {
      const { kills, turns, effects, takeovers, seconds } = await fleetRound({
        url: await backend.fresh(),
        sessions: SESSIONS,
        // With this seed the first customers have 15 or 16 things to say. Each is answered after 40 ms at the soonest, by
        // which the first kill is long due.
        seed: 401,
        killEveryMs: 300,
        leaseMs: 700,
      })
      expect(kills).toBeGreaterThan(0)
      console.log(backend.name, { kills, turns, effects, takeovers, seconds })
    })
  })
}
