import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import type { Driver } from '../log/contract.js'
import type { DriverSetup, SuiteFramework } from './driver-suite.js'
import { concurrencyTests } from './store-suite/concurrency-tests.js'
import { expiryTests } from './store-suite/expiry-tests.js'
import { filterTests } from './store-suite/filter-tests.js'
import { injectionTests } from './store-suite/injection-tests.js'
import { inputTests } from './store-suite/input-tests.js'
import { isolationTests } from './store-suite/isolation-tests.js'
import { itemTests } from './store-suite/item-tests.js'
import { pageTests } from './store-suite/page-tests.js'
import { seededRandom } from './store-suite/random.js'
import { repairTests } from './store-suite/repair-tests.js'
import { semanticTests } from './store-suite/semantic-tests.js'
import { stepTests } from './store-suite/step-tests.js'
import { holdfastOver, newTenant, type StoreTest } from './store-suite/store-context.js'
import { virtualClock } from './virtual-clock.js'

const GROUPS: readonly (readonly [string, readonly StoreTest[]])[] = [
  ['items', itemTests],
  ['bad input', inputTests],
  ['expiry', expiryTests],
  ['pages', pageTests],
  ['filters and order', filterTests],
  ['search by meaning', semanticTests],
  ['concurrent writers', concurrencyTests],
  ['isolation', isolationTests],
  ['injection', injectionTests],
  ['writes of a step', stepTests],
  ['repair', repairTests],
]

/** Which test framework runs the suite, and how many random rounds it makes. */
export interface StoreSuiteOptions {
  readonly framework: SuiteFramework
  /** How often random tests run. Default 100. */
  readonly rounds?: number
  /** Repeats a failure, with the seed that it printed. */
  readonly seed?: number
}

/** What the store promises, on any backend: the same setup as for `driverSuite`. Time is virtual throughout. */
export function storeSuite(name: string, setup: () => Promise<DriverSetup>, options: StoreSuiteOptions): void {
  const { framework } = options
  framework.describe(name, () => {
    for (const [group, tests] of GROUPS) {
      framework.describe(group, () => {
        for (const test of tests)
          framework.it(test.name, () => runTest(test, setup, options), test.timeoutMs ?? 120_000)
      })
    }
  })
}

async function runTest(test: StoreTest, setup: () => Promise<DriverSetup>, options: StoreSuiteOptions): Promise<void> {
  const { seed = randomInt(2 ** 31), rounds = 100 } = options
  const backend = await setup()
  const drivers: Driver[] = []
  const driver = async () => {
    const opened = await backend.open()
    drivers.push(opened)
    return opened
  }
  const clock = virtualClock()
  const tenant = newTenant()
  const errors: unknown[] = []
  try {
    const first = await driver()
    assert.ok(first.writeItems, `the ${first.name} driver keeps items`)
    await test.run({
      hf: holdfastOver(first, tenant, { clock }),
      tenant,
      clock,
      driver,
      open: async (more = {}, over) => holdfastOver(over ?? (await driver()), tenant, { clock, ...more }),
      random: seededRandom(seed),
      rounds,
    })
  } catch (error) {
    if (error instanceof Error) error.message += `\n(repeat it with the seed ${seed})`
    errors.push(error)
  }
  const closing = await Promise.allSettled(drivers.map((opened) => opened.close()))
  const [cleaning] = await Promise.allSettled([backend.cleanup()])
  for (const result of [...closing, cleaning]) if (result?.status === 'rejected') errors.push(result.reason)
  if (errors.length > 0) throw errors[0]
}
