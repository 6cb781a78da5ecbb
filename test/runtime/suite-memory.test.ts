import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import { runtimeSuite } from 'holdfast/testing'
import { afterAll, describe, it } from 'vitest'

const setup = async () => {
  const store = createMemoryStore()
  return { open: () => openMemory({ store }), cleanup: async () => store.threads.clear() }
}

runtimeSuite('the runtime in memory', setup, { framework: { describe, it, afterAll } })
