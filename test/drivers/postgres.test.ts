import { isDeepStrictEqual } from 'node:util'
import type { Append, Driver } from 'holdfast/driver'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { afterAll, describe, it } from 'vitest'
import { dropSchema, newSchema } from '../support/postgres.js'
import { rounds } from '../support/scale.js'
import { postgresUrl } from '../support/servers.js'

const url = await postgresUrl()
const schema = newSchema()

/**
 * Says of an append that keeps the labels that it does, as the log layer would. Such an append, when it is alone, goes
 * by a shorter way; with this the suite tests that way, and through PgBouncer it tests the other.
 */
function knowingLabels(driver: Driver): Driver {
  const append: Driver['append'] = async (batch) => driver.append(await Promise.all(batch.map(markKept)))
  async function markKept(each: Append): Promise<Append> {
    const head = each.expect && each.entries.length > 0 ? await driver.head(each.log) : undefined
    if (head === undefined || head.seq !== each.expect?.seq) return each
    const { tags, metadata } = head.index
    const isKept = isDeepStrictEqual([tags, metadata], [each.index.tags, each.index.metadata])
    return { ...each, labelsChanged: !isKept }
  }
  return new Proxy(driver, {
    get: (target, name) => {
      if (name === 'append') return append
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

describe.skipIf(url === undefined)('with a pool of its own', () => {
  // One schema for all: each test works under tenants of its own, and setting up a schema takes longer than a test.
  driverSuite(
    'postgres',
    async () => ({
      open: async () => knowingLabels(await openPostgres(url as string, { schema, poolSize: 4 })),
      async cleanup() {},
    }),
    { framework: { describe, it, afterAll }, shared: true, rounds: rounds(40, 1000) },
  )
  afterAll(() => dropSchema(url as string, schema))
})
