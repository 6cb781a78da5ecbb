/** `npm run test:full` multiplies the random rounds; `npm test` keeps them within minutes on two cores. */
export const full = process.env['HOLDFAST_TEST_FULL'] === '1'

const FULL_FACTOR = 20

/** How often a random test or a crash round repeats. */
export function rounds(quick: number, inFull: number = quick * FULL_FACTOR): number {
  return full ? inFull : quick
}

/** What `npm test` draws its random histories from: it judges a change, so the same code passes or fails each time. */
const QUICK_SEED = 8847

/**
 * Settings for `fc.assert` or `test.prop`: the count, and the seed. `npm run test:full` draws another seed each time, as
 * does HOLDFAST_TEST_SEED=random. To reproduce a failure, pass its seed and path as fast-check printed them:
 * HOLDFAST_TEST_SEED=… HOLDFAST_TEST_PATH=… npm test -- test/log -t 'name of the test'
 */
export function randomly(numRuns: number): { numRuns: number; seed?: number; path?: string } {
  const seed = process.env['HOLDFAST_TEST_SEED'] ?? (full ? 'random' : String(QUICK_SEED))
  const path = process.env['HOLDFAST_TEST_PATH']
  return {
    numRuns,
    ...(seed === 'random' ? {} : { seed: Number(seed) }),
    ...(path ? { path } : {}),
  }
}
