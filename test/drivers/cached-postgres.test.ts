import { driverSuite } from '#src/testing/driver-suite.js'
import { afterAll, describe, it } from 'vitest'
import { cachedPostgres, isMissing } from '../support/cached-postgres.js'
import { full, rounds } from '../support/scale.js'

/** What a cache has a hand in. The rest is Postgres alone, and is run with it every time; here by `npm run test:full`. */
const CACHED = new Set(['append', 'forks', 'batches', 'reading', 'prune', 'erase', 'copies', 'opening and closing'])

describe.skipIf(isMissing)('with a cache in Redis', () => {
  const suite: string[] = []
  const framework = {
    describe(name: string, body: () => void) {
      const isGroup = suite.length > 0
      suite.push(name)
      if (full || !isGroup || CACHED.has(name)) describe(name, () => void body())
    },
    it,
    afterAll,
  }
  // One store for all: each test works under tenants of its own, and setting up a schema takes longer than a test.
  const store = isMissing ? undefined : cachedPostgres()
  const open = async () => {
    const made = await store
    if (made === undefined) throw new Error('There is no server.')
    return made.openDriver()
  }
  driverSuite('postgres and redis', async () => ({ open, async cleanup() {} }), {
    framework,
    shared: true,
    rounds: rounds(10, 1000),
  })
})
