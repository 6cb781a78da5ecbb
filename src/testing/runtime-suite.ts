import assert from 'node:assert/strict'
import type { Driver } from '../log/contract.js'
import type { DriverSetup, SuiteFramework } from './driver-suite.js'
import { newTenant } from './driver-suite/suite-context.js'
import { badInputTests } from './runtime-suite/programs/bad-input-tests.js'
import { keptResultTests } from './runtime-suite/runs/kept-result-tests.js'
import { busyTests } from './runtime-suite/runs/busy-tests.js'
import { cancelTests } from './runtime-suite/runs/cancel-tests.js'
import { childEndTests } from './runtime-suite/waits/child-end-tests.js'
import { childTests } from './runtime-suite/waits/child-tests.js'
import { clockTests } from './runtime-suite/runs/clock-tests.js'
import { dispatchTests } from './runtime-suite/workers/dispatch-tests.js'
import { effectCrashTests } from './runtime-suite/effects/effect-crash-tests.js'
import { effectTests } from './runtime-suite/effects/effect-tests.js'
import { failureTests } from './runtime-suite/runs/failure-tests.js'
import { fenceTests } from './runtime-suite/runs/fence-tests.js'
import { flowTests } from './runtime-suite/programs/flow-tests.js'
import { gateTests } from './runtime-suite/effects/gate-tests.js'
import { graphTests } from './runtime-suite/programs/graph-tests.js'
import { incompatibleTests } from './runtime-suite/programs/incompatible-tests.js'
import { inputTests } from './runtime-suite/runs/input-tests.js'
import { retentionSweepTests } from './runtime-suite/workers/retention-sweep-tests.js'
import { retentionTests } from './runtime-suite/workers/retention-tests.js'
import { queueTests } from './runtime-suite/workers/queue-tests.js'
import { recordTests } from './runtime-suite/runs/record-tests.js'
import { type RuntimeTest, runtimeContext } from './runtime-suite/runtime-context.js'
import { liveTests } from './runtime-suite/runs/live-tests.js'
import { newsTests } from './runtime-suite/workers/news-tests.js'
import { scheduleTests } from './runtime-suite/workers/schedule-tests.js'
import { stateTests } from './runtime-suite/programs/state-tests.js'
import { storeTests } from './runtime-suite/programs/store-tests.js'
import { streamTests } from './runtime-suite/runs/stream-tests.js'
import { subgraphTests } from './runtime-suite/programs/subgraph-tests.js'
import { transactionTests } from './runtime-suite/programs/transaction-tests.js'
import { turnTests } from './runtime-suite/workers/turn-tests.js'
import { waitTests } from './runtime-suite/waits/wait-tests.js'

const GROUPS: readonly (readonly [string, readonly RuntimeTest[]])[] = [
  ['state', stateTests],
  ['graphs', graphTests],
  ['subgraphs', subgraphTests],
  ['flows', flowTests],
  ['waiting', waitTests],
  ['child threads', [...childTests, ...childEndTests]],
  ['news', newsTests],
  ['live events', liveTests],
  ['clocks that are wrong', clockTests],
  ['store writes', storeTests],
  ['transactions', transactionTests],
  ['inputs', inputTests],
  ['failures', failureTests],
  ['programs that changed', incompatibleTests],
  ['busy threads', busyTests],
  ['cancellation', cancelTests],
  ['a result on record', keptResultTests],
  ['streams', streamTests],
  ['records', recordTests],
  ['effects', effectTests],
  ['effects and crashes', effectCrashTests],
  ['gates', gateTests],
  ['fencing', fenceTests],
  ['bad input', badInputTests],
  ['retention', [...retentionTests, ...retentionSweepTests]],
  ['schedules', scheduleTests],
  ['the queue', queueTests],
  ['another engine', dispatchTests],
  ['turns', turnTests],
]

/** Which test framework runs the suite. */
export interface RuntimeSuiteOptions {
  /** `afterAll` closes what the tests of this suite share. */
  readonly framework: SuiteFramework & { afterAll(close: () => Promise<void>): void }
}

/** What programs, runs and effects promise, on any backend: the same setup as for `driverSuite`, created once. */
export function runtimeSuite(
  name: string,
  setup: () => Promise<DriverSetup>,
  { framework }: RuntimeSuiteOptions,
): void {
  framework.describe(name, () => {
    const shared = new SharedBackend(setup)
    for (const [group, tests] of GROUPS) {
      framework.describe(group, () => {
        for (const test of tests) framework.it(test.name, () => runTest(test, shared), test.timeoutMs ?? 120_000)
      })
    }
    framework.afterAll(() => shared.close())
  })
}

/** Two drivers for all tests: opening some for each would take longer than the tests. */
class SharedBackend {
  readonly #setup: () => Promise<DriverSetup>
  readonly #drivers: Promise<Driver>[] = []
  #backend: Promise<DriverSetup> | undefined

  constructor(setup: () => Promise<DriverSetup>) {
    this.#setup = setup
  }

  driver(at: 0 | 1): Promise<Driver> {
    this.#backend ??= this.#setup()
    const backend = this.#backend
    this.#drivers[at] ??= backend.then((opened) => opened.open())
    return this.#drivers[at]
  }

  async close(): Promise<void> {
    for (const driver of this.#drivers) await (await driver)?.close()
    await (await this.#backend)?.cleanup()
  }
}

async function runTest(test: RuntimeTest, shared: SharedBackend): Promise<void> {
  const context = runtimeContext(newTenant(), await shared.driver(0), () => shared.driver(1))
  await test.run(context)
  const { threads } = await context.hf.threads({ limit: 100 })
  for (const { thread, branch } of threads) {
    const verified = await context.hf.verify(thread, { branch })
    assert.deepEqual(verified?.problems, [], 'every thread verifies when the test is over')
  }
}
