import { driverSuite } from '#src/testing/driver-suite.js'
import { describe } from 'vitest'
import { cachedPostgres, isMissing } from '../support/cached-postgres.js'
import { groupsOf } from '../support/groups.js'
import { rounds } from '../support/scale.js'

/** What a cache has a hand in. */
const CACHED = ['append', 'forks', 'batches', 'reading', 'prune', 'erase', 'copies', 'opening and closing']

describe.skipIf(isMissing)('with a cache in Redis', () => {
  // One store for all: each test works under tenants of its own, and setting up a schema takes longer than a test.
  const store = isMissing ? undefined : cachedPostgres()
  const open = async () => {
    const made = await store
    if (made === undefined) throw new Error('There is no server.')
    return made.openDriver()
  }
  driverSuite('postgres and redis', async () => ({ open, async cleanup() {} }), {
    framework: groupsOf(CACHED),
    shared: true,
    rounds: rounds(10, 1000),
  })
})
