import { deltaChannelHistoryTests, validate } from '@langchain/langgraph-checkpoint-validation'
import { type Holdfast, openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { durableBackends } from '../../support/backends.js'

// The published suite expects vitest's functions to be global.
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it })

const durable = await durableBackends()
const backends = [{ name: 'memory', missing: false, fresh: async () => 'memory:', cleanup: async () => {} }, ...durable]

for (const backend of backends) {
  describe.skipIf(backend.missing)(`the published suite for savers on ${backend.name}`, () => {
    // One store for all, as in production; each saver of the suite gets a tenant, which nothing crosses.
    let hf: Holdfast
    let savers = 0
    beforeAll(async () => {
      hf = await openHoldfast(await backend.fresh())
    })
    afterAll(() => hf.close())
    const initializer = {
      checkpointerName: 'HoldfastSaver',
      createCheckpointer: () => new HoldfastSaver(hf, { tenant: `saver-${savers++}` }),
    }
    validate(initializer)
    deltaChannelHistoryTests(initializer)
  })
}

afterAll(async () => {
  for (const backend of durable) await backend.cleanup()
})
