import fc from 'fast-check'
import { openDriver } from 'holdfast/driver'
import { virtualClock } from 'holdfast/testing'
import { afterAll, afterEach, beforeEach, describe, it, vi } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { full, randomly, rounds } from '../support/scale.js'
import { compare, onMemory, type Opened, playOnce } from './simulation/compare.js'
import { KNOWN } from './simulation/known.js'
import { historiesOf } from './simulation/play.js'

const crashes = { memory: rounds(40, 6000), server: rounds(2, 100) }
const changes = { memory: rounds(40, 6000), server: rounds(2, 100) }
const deliveries = rounds(1, 80)
const timeout = full ? 7_200_000 : 600_000

beforeEach(() => {
  // Pauses between attempts are drawn by chance; a seed must give the same run each time.
  vi.spyOn(Math, 'random').mockImplementation(() => 0.5)
})
afterEach(() => {
  vi.restoreAllMocks()
})

// A failure prints its seed and path: HOLDFAST_TEST_SEED=… HOLDFAST_TEST_PATH=… npx vitest run test/runtime/simulation
describe('a random program, crashed at random moments', () => {
  for (const { what, spec, blows } of KNOWN) {
    it(`is not harmed by what was found before: ${what}`, async () => {
      if (blows.edits === undefined) await compare(spec, blows, onMemory)
      else await playOnce(spec, blows, onMemory)
    })
  }

  it('ends on memory as if nothing had happened, and breaks no rule', { timeout }, async () => {
    await fc.assert(historiesOf('crashes'), randomly(crashes.memory))
  })

  it('breaks no rule on memory when it changes while its run is under way', { timeout }, async () => {
    await fc.assert(historiesOf('changes'), randomly(changes.memory))
  })

  it('takes each of more than a hundred messages once, however often they are sent', { timeout }, async () => {
    await fc.assert(historiesOf('deliveries'), randomly(deliveries))
  })
})

describe.each(await durableBackends())('on $name', ({ missing, fresh, cleanup }) => {
  afterAll(cleanup)

  it.skipIf(missing)('a random, crashed program ends as if nothing had happened', { timeout }, async () => {
    // Servers answer when they like: a smaller case may pass where the larger one failed.
    const settings = { ...randomly(crashes.server), endOnFailure: true }
    await fc.assert(historiesOf('crashes', await placesOn(fresh)), settings)
  })

  it.skipIf(missing)('a random program that changes under its run breaks no rule', { timeout }, async () => {
    const settings = { ...randomly(changes.server), endOnFailure: true }
    await fc.assert(historiesOf('changes', await placesOn(fresh)), settings)
  })
})

async function placesOn(fresh: () => Promise<string>): Promise<() => Promise<Opened>> {
  const url = await fresh()
  let threads = 0
  return async () => {
    const clock = virtualClock()
    const driver = await openDriver(url)
    const thread = `t${threads++}`
    return { driver, clock, leasesByClock: false, thread, close: () => driver.close() }
  }
}
