import { afterAll, describe, it } from 'vitest'
import { openDriver } from 'holdfast/driver'
import { durableBackends } from '../support/backends.js'
import { runModel } from '../support/log-model.js'
import { randomly, rounds } from '../support/scale.js'

const MEMORY = { name: 'memory', missing: false, fresh: async () => 'memory:', cleanup: async () => {} }

const backends = [MEMORY, ...(await durableBackends())]

describe('the log against a simple model: appends, races, claims, forks, tags, prunes, crashes, lost acknowledgements', () => {
  for (const backend of backends) {
    afterAll(() => backend.cleanup())
    // Thousands where a history costs a millisecond, about a hundred where it costs a server's round trips.
    const histories = backend === MEMORY ? rounds(600, 60_000) : rounds(40, 2000)
    it.skipIf(backend.missing)(
      `agrees on ${backend.name} over ${histories} random histories`,
      { timeout: 900_000 },
      async () => {
        const url = await backend.fresh()
        await runModel(() => openDriver(url), randomly(histories), backend === MEMORY ? 40 : 20)
      },
    )
  }
})
