import { runtimeSuite } from '#src/testing/runtime-suite.js'
import { describe } from 'vitest'
import { cachedPostgres, isMissing } from '../support/cached-postgres.js'
import { groupsOf } from '../support/groups.js'

/** Where a thread is read that another process, or an older state of it, may have left in the cache. */
const CACHED = [
  'state',
  'flows',
  'child threads',
  'transactions',
  'inputs',
  'programs that changed',
  'busy threads',
  'cancellation',
  'a result on record',
  'effects and crashes',
  'fencing',
  'retention',
  'turns',
]

describe.skipIf(isMissing)('Postgres with a cache in Redis', () => {
  const setup = async () => {
    const store = await cachedPostgres()
    return { open: () => store.openDriver(), cleanup: () => store.close() }
  }
  runtimeSuite('the runtime on Postgres with a cache', setup, { framework: groupsOf(CACHED) })
})
