import { runtimeSuite } from '#src/testing/runtime-suite.js'
import { afterAll, describe, it } from 'vitest'
import { cachedPostgres, isMissing } from '../support/cached-postgres.js'

describe.skipIf(isMissing)('Postgres with a cache in Redis', () => {
  const setup = async () => {
    const store = await cachedPostgres()
    return { open: () => store.openDriver(), cleanup: () => store.close() }
  }
  runtimeSuite('the runtime on Postgres with a cache', setup, { framework: { describe, it, afterAll } })
})
