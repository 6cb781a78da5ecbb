import { openDriver } from 'holdfast/driver'
import { describe, it } from 'vitest'
import type { Backend } from '../support/backends.js'
import { everyBackend } from '../support/every-backend.js'
import { rounds } from '../support/scale.js'
import { playHistory } from '../support/thread-model.js'

// A failure names its seed. HOLDFAST_TEST_SEED=… plays that one alone.
const only = process.env['HOLDFAST_TEST_SEED']
const backends = await everyBackend()

/** Processes die here, the machine does not: waiting for the disk would prove nothing. */
async function unsynced(backend: Backend): Promise<string> {
  const setting = { SQLite: '?synchronous=normal', file: '?fsync=off' }[backend.name] ?? ''
  return `${await backend.fresh()}${setting}`
}

describe('random histories of runs, pauses, answers, forks, upgrades and crashes', () => {
  for (const backend of backends) {
    const count = backend.name === 'memory' ? rounds(60, 6000) : rounds(8, 100)
    it.skipIf(backend.missing)(
      `end as the model says, ${count} of them, on ${backend.name}`,
      { timeout: 600_000 },
      async () => {
        const seeds = only === undefined ? Array.from({ length: count }, (_, i) => i) : [Number(only)]
        let driver = await openDriver(await unsynced(backend))
        try {
          for (const seed of seeds) {
            // A store in memory keeps all it ever held: a new one now and then.
            if (backend.name === 'memory' && seed % 50 === 0) driver = await openDriver('memory:')
            await playHistory(seed, driver, `t${seed}`).catch((cause: unknown) => {
              throw new Error(`Seed ${seed}: ${(cause as Error).message}`, { cause })
            })
          }
        } finally {
          await driver.close()
          await backend.cleanup()
        }
      },
    )
  }
})
