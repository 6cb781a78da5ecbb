import fc from 'fast-check'
import { openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, describe, expect, it } from 'vitest'
import { randomly, rounds } from '../../support/scale.js'
import { graphSpec, operation, play } from './random-graphs.js'
import { backends, cleanUp, KeepingMemorySaver } from './support.js'

for (const backend of backends.filter(({ name }) => ['memory', 'SQLite'].includes(name))) {
  describe.skipIf(backend.missing)(`random graphs on ${backend.name}`, () => {
    it('do and keep the same with HoldfastSaver as with MemorySaver', async () => {
      await using hf = await openHoldfast(await backend.fresh())
      let tenants = 0
      const operations = fc.array(operation, { minLength: 1, maxLength: 8 })
      const durability = fc.constantFrom('sync' as const, 'async' as const, 'exit' as const)
      await fc.assert(
        fc.asyncProperty(graphSpec, operations, durability, async (spec, wanted, mode) => {
          const memory = new KeepingMemorySaver()
          const tenant = `run-${tenants++}`
          const expected = await play(spec, wanted, () => memory, mode)
          const got = await play(spec, wanted, () => new HoldfastSaver(hf, { tenant, openBranches: 3 }), mode)
          expect(got).toEqual(expected)
        }),
        randomly(rounds(backend.name === 'memory' ? 40 : 15)),
      )
    }, 600_000)
  })
}

afterAll(cleanUp)
