import assert from 'node:assert/strict'
import type { Driver } from '../log/contract.js'
import { appendTests } from './driver-suite/appends/append-tests.js'
import { batchTests } from './driver-suite/appends/batch-tests.js'
import { blobTests } from './driver-suite/removal/blob-tests.js'
import { copyTests } from './driver-suite/appends/copy-tests.js'
import { dueOrderTests } from './driver-suite/index/due-order-tests.js'
import { dueTests } from './driver-suite/index/due-tests.js'
import { eraseTests } from './driver-suite/removal/erase-tests.js'
import { forkTests } from './driver-suite/appends/fork-tests.js'
import { idTests } from './driver-suite/id-tests.js'
import { indexFilterTests } from './driver-suite/index/index-filter-tests.js'
import { indexTests } from './driver-suite/index/index-tests.js'
import { itemApplyTests } from './driver-suite/items/item-apply-tests.js'
import { itemCarriedTests } from './driver-suite/items/item-carried-tests.js'
import { itemExpiryTests } from './driver-suite/items/item-expiry-tests.js'
import { itemScanTests } from './driver-suite/items/item-scan-tests.js'
import { itemTests } from './driver-suite/items/item-tests.js'
import { labelTests } from './driver-suite/index/label-tests.js'
import { leaseTests } from './driver-suite/appends/lease-tests.js'
import { lifecycleTests } from './driver-suite/lifecycle-tests.js'
import { newsTests } from './driver-suite/news-tests.js'
import { maintenanceRaceTests } from './driver-suite/removal/maintenance-race-tests.js'
import { pageTests } from './driver-suite/index/page-tests.js'
import { pruneTests } from './driver-suite/removal/prune-tests.js'
import { raceTests } from './driver-suite/appends/race-tests.js'
import { readTests } from './driver-suite/read-tests.js'
import { reindexTests } from './driver-suite/index/reindex-tests.js'
import { renewTests } from './driver-suite/appends/renew-tests.js'
import { logKey, newTenant, type SuiteContext, type SuiteTest } from './driver-suite/suite-context.js'
import { tenantTests } from './driver-suite/tenant-tests.js'
import { transactTests } from './driver-suite/appends/transact-tests.js'
import { transactRaceTests } from './driver-suite/appends/transact-race-tests.js'

const GROUPS: readonly (readonly [string, readonly SuiteTest[]])[] = [
  ['append', appendTests],
  ['forks', forkTests],
  ['reindex', reindexTests],
  ['batches', batchTests],
  ['races', raceTests],
  ['races of maintenance', maintenanceRaceTests],
  ['leases', leaseTests],
  ['renew', renewTests],
  ['reading', readTests],
  ['prune', pruneTests],
  ['erase', eraseTests],
  ['blobs', blobTests],
  ['the index', [...indexTests, ...indexFilterTests]],
  ['what is due', [...dueTests, ...dueOrderTests]],
  ['labels', labelTests],
  ['pages', pageTests],
  ['tenants', tenantTests],
  ['ids', idTests],
  ['items', itemTests],
  ['expiry of items', itemExpiryTests],
  ['scans of items', itemScanTests],
  ['items that appends carry', itemCarriedTests],
  ['items that are applied', itemApplyTests],
  ['copies', copyTests],
  ['transactions', transactTests],
  ['races of transactions', transactRaceTests],
  ['news', newsTests],
  ['opening and closing', lifecycleTests],
]

/** A store for one test. Different tests may share a server: each works under its own tenants. */
export interface DriverSetup {
  /** A driver for the same store at each call; several are open at once. */
  open(): Promise<Driver>
  /** Advances the store's clock. Default: really waits. */
  advance?(ms: number): Promise<void>
  /** Called once when the test is over and its drivers are closed. */
  cleanup(): Promise<void>
}

/** What a running test may report. The contexts of vitest and node:test both offer it. */
export interface TestContext {
  skip?(reason: string): void
}

/** The part of a test framework that the suite needs: vitest's and node:test's both match with little glue. */
export interface SuiteFramework {
  describe(name: string, body: () => void): void
  it(name: string, body: (context?: TestContext) => Promise<void> | void, timeoutMs?: number): void
  /** Shows a test that is left out. Without it a skipped test is not mentioned. */
  skip?(name: string): void
  /** Runs when all tests of the group are over. Without it tests share nothing. */
  afterAll?(body: () => Promise<void>): void
}

export interface DriverSuiteOptions {
  readonly framework: SuiteFramework
  /** Tests that this driver can't pass, by their full names, each with its reason. */
  readonly skips?: readonly { readonly skip: string; readonly reason: string }[]
  /** Rounds of the longest race; the others scale with it. Default 1000. */
  readonly rounds?: number
  /**
   * Tests share one store, each under its own tenants, and pass drivers that they left open on to the next: for stores
   * where opening takes longer than a test. Default: each test has its own store.
   */
  readonly shared?: boolean
}

/** Every promise of the driver contract as a test. A driver that passes is ready for Holdfast. */
export function driverSuite(name: string, setup: () => Promise<DriverSetup>, options: DriverSuiteOptions): void {
  const { framework, skips = [], rounds = 1000, shared = false } = options
  const lender = new Lender(setup)
  const isLent = shared && framework.afterAll !== undefined
  const stores = isLent ? () => lender.lend() : setup
  const reasons = new Map(skips.map(({ skip, reason }) => [skip, reason]))

  framework.describe(name, () => {
    framework.afterAll?.(() => lender.close())
    framework.it('skips only tests that exist, and gives a reason for each', () => checkSkips(skips))
    for (const [group, tests] of GROUPS) {
      framework.describe(group, () => {
        for (const test of tests) {
          const reason = reasons.get(test.name)
          if (reason !== undefined) framework.skip?.(`${test.name} (skipped: ${reason})`)
          else
            framework.it(
              test.name,
              (context) => runTest(test, stores, isLent, rounds, context),
              test.timeoutMs ?? 120_000,
            )
        }
      })
    }
  })
}

/** One store for many tests, and the drivers that they left open. */
class Lender {
  readonly #setup: () => Promise<DriverSetup>
  #store: Promise<DriverSetup> | undefined
  readonly #idle: Driver[] = []

  constructor(setup: () => Promise<DriverSetup>) {
    this.#setup = setup
  }

  async lend(): Promise<DriverSetup> {
    this.#store ??= this.#setup()
    const store = await this.#store
    const taken: Driver[] = []
    return {
      ...store,
      open: async () => {
        const driver = this.#idle.pop() ?? (await store.open())
        taken.push(driver)
        return driver
      },
      cleanup: async () => {
        for (const driver of taken) if (await isOpen(driver)) this.#idle.push(driver)
      },
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((driver) => driver.close()))
    await (await this.#store)?.cleanup()
  }
}

function isOpen(driver: Driver): Promise<boolean> {
  return driver.head(logKey(newTenant())).then(
    () => true,
    () => false,
  )
}

function checkSkips(skips: readonly { readonly skip: string; readonly reason: string }[]): void {
  const names = GROUPS.flatMap(([, tests]) => tests.map((test) => test.name))
  assert.deepEqual(
    names.filter((name, i) => names.indexOf(name) !== i),
    [],
    'no two tests have the same name',
  )
  for (const { skip, reason } of skips) {
    assert.ok(names.includes(skip), `the suite has no test "${skip}": correct or remove this skip`)
    assert.ok(reason.trim().length > 0, `the skip of "${skip}" gives no reason`)
  }
}

async function runTest(
  test: SuiteTest,
  setup: () => Promise<DriverSetup>,
  isLent: boolean,
  rounds: number,
  framework: TestContext | undefined,
): Promise<void> {
  let exempt: string | undefined
  const store = await setup()
  const drivers: Driver[] = []
  const open = async () => {
    const driver = await store.open()
    drivers.push(driver)
    return driver
  }
  const errors: unknown[] = []
  try {
    const context: SuiteContext = {
      driver: await open(),
      open,
      advance: (ms) => store.advance?.(ms) ?? wait(ms),
      tenant: newTenant(),
      rounds,
    }
    exempt = test.exempt?.(context.driver)
    if (exempt === undefined) await test.run(context)
  } catch (error) {
    errors.push(error)
  }
  // The test's own failure is the one to show: closing often fails only because of it.
  const mustClose = errors.length > 0 || !isLent
  const closing = await Promise.allSettled(mustClose ? drivers.map((driver) => driver.close()) : [])
  const [cleaning] = await Promise.allSettled([store.cleanup()])
  for (const result of [...closing, cleaning]) {
    if (result?.status === 'rejected') errors.push(result.reason)
  }
  if (errors.length > 0) throw errors[0]
  // Last, because it ends the test: one that did not apply must not count as passed.
  if (exempt !== undefined) framework?.skip?.(exempt)
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
