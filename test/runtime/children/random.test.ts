import fc from 'fast-check'
import { afterEach, beforeEach, it, vi } from 'vitest'
import { randomly, rounds } from '../../support/scale.js'
import { familyHistory, playFamily } from './family-history.js'

beforeEach(() => {
  // Pauses between attempts are drawn by chance; a seed must give the same run each time.
  vi.spyOn(Math, 'random').mockImplementation(() => 0.5)
})
afterEach(() => {
  vi.restoreAllMocks()
})

it('random families of runs pay once each and come to their end, however their processes die and freeze', async () => {
  await fc.assert(fc.asyncProperty(familyHistory, playFamily), randomly(rounds(40, 3000)))
}, 600_000)
