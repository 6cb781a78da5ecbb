import fc from 'fast-check'
import { openDriver } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { full, randomly, runs } from '../support/scale.js'
import { type Chaos, chaos } from './simulation/chaos.js'
import { KNOWN } from './simulation/known.js'
import { type Place, simulate } from './simulation/simulate.js'
import { type ProgramSpec, programSpec } from './simulation/spec.js'

const scale = runs(800, 10)
const timeout = full ? 7_200_000 : 600_000

// A failure prints its seed and path: HOLDFAST_TEST_SEED=… HOLDFAST_TEST_PATH=… npx vitest run test/runtime/simulation
describe('a random program, crashed at random moments', () => {
  beforeEach(() => {
    // Pauses between attempts are drawn by chance; a seed must give the same run each time.
    vi.spyOn(Math, 'random').mockImplementation(() => 0.5)
  })
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it.each(KNOWN)('is not harmed by what was found before: $what', ({ spec, blows }) => compare(spec, blows, onMemory))

  it('ends on memory as if nothing had happened, and breaks no rule of its effects', { timeout }, async () => {
    const property = fc.asyncProperty(programSpec, chaos, (spec, blows) => compare(spec, blows, onMemory))
    await fc.assert(property, randomly(scale.memory))
  })
})

describe.each(await durableBackends())('on $name', ({ missing, fresh, cleanup }) => {
  afterAll(cleanup)

  it.skipIf(missing)('a random, crashed program ends as if nothing had happened', { timeout }, async () => {
    const url = await fresh()
    let threads = 0
    const place = async (): Promise<Opened> => {
      const clock = virtualClock()
      const driver = await openDriver(url)
      const thread = `t${threads++}`
      return { driver, clock, leasesByClock: false, thread, close: () => driver.close() }
    }
    const property = fc.asyncProperty(programSpec, chaos, (spec, blows) => compare(spec, blows, place))
    // Servers answer when they like: a smaller case may pass where the larger one failed.
    await fc.assert(property, { ...randomly(scale.server), endOnFailure: true })
  })
})

type Opened = Place & { close(): Promise<void> }

async function compare(spec: ProgramSpec, blows: Chaos, open: () => Promise<Opened>): Promise<void> {
  const { cut, calls: _, ...expected } = await end(spec, { ...blows, blows: [] }, open)
  const { cut: alsoCut, calls: __, ...crashed } = await end(spec, blows, open)
  if (!cut && !alsoCut) expect(withoutRace(spec, crashed)).toStrictEqual(withoutRace(spec, expected))
}

/**
 * Of several steps that fail side by side any may be the first: which one ended the run is a matter of luck. So is how
 * far one got by then that waited for somebody: a crash gives people the time to answer before the failure is found.
 */
function withoutRace(
  spec: ProgramSpec,
  { error, items, ...rest }: { readonly error: unknown; readonly items: unknown },
) {
  const failed = (error as { readonly code?: string } | undefined)?.code
  return { ...rest, failed, items: failed !== undefined && waitsForSomebody(spec) ? 'any' : items }
}

function waitsForSomebody(spec: ProgramSpec): boolean {
  return /"kind":"(receive|pause|sleep)"|"gate":"(before|after)"/.test(JSON.stringify(spec))
}

async function end(spec: ProgramSpec, blows: Chaos, open: () => Promise<Opened>) {
  const place = await open()
  try {
    return await simulate(spec, blows, place)
  } finally {
    await place.close()
  }
}

async function onMemory(): Promise<Opened> {
  const clock = virtualClock()
  const driver = await openDriver('memory:', { clock })
  return { driver, clock, leasesByClock: true, thread: 't', close: () => driver.close() }
}
