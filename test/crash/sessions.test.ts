import { afterAll, describe, expect, it } from 'vitest'
import { runSessions } from '../../scripts/torture/session-rounds.mjs'
import { durableBackends } from '../support/backends.js'
import { rounds } from '../support/scale.js'

const SESSIONS = rounds(12, 1000)

for (const [i, backend] of (await durableBackends()).entries()) {
  describe.skipIf(backend.missing)(`sessions of killed workers on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    it(`completes ${SESSIONS} of them, with every effect once`, { timeout: 3_600_000 }, async () => {
      const result = await runSessions({
        url: await backend.fresh(),
        sessions: SESSIONS,
        seed: i + 1,
        killEveryMs: 500,
        leaseMs: 700,
      })
      // Where nothing was killed and no reply was lost, nothing was proven.
      expect(result.kills).toBeGreaterThan(0)
      expect(result.faults['lostAfter']).toBeGreaterThan(0)
      const { sessions, kills, answered, effects, calls, rows, ranMs } = result
      console.log(backend.name, { sessions, kills, answered, effects, calls, rows, ranMs })
    })
  })
}
