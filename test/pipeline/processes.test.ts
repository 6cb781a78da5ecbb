import { afterAll, describe, expect, it } from 'vitest'
import { runPipelines } from '../../scripts/torture/pipeline-rounds.mjs'
import { durableBackends } from '../support/backends.js'
import { rounds } from '../support/scale.js'

const DOCUMENTS = rounds(40, 1000)

for (const backend of await durableBackends()) {
  if (backend.name !== 'SQLite' && backend.name !== 'Postgres') continue
  describe.skipIf(backend.missing)(`three processes on one pipeline on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    it('finish it though each is killed again and again: nothing twice, nothing lost', {
      timeout: 1_200_000,
    }, async () => {
      const result = await runPipelines({
        url: await backend.fresh(),
        documents: DOCUMENTS,
        chunks: 10,
        workers: 3,
        concurrency: 3,
        leaseMs: 1000,
        seed: 8847,
      })
      // Together they have more to write than each of them may before it is killed.
      expect(result.kills).toBeGreaterThan(0)
      console.log(`${backend.name}: ${result.chunks} chunks, ${result.kills} kills, ${result.embedded} embedded`)
    })
  })
}
