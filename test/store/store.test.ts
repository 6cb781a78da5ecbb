import type { Driver } from '#src/log/contract.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import type { DriverSetup } from '#src/testing/driver-suite.js'
import { storeSuite } from '#src/testing/store-suite.js'
import { openDriver } from 'holdfast/driver'
import { afterAll, describe, it } from 'vitest'
import { type Backend, durableBackends } from '../support/backends.js'
import { full, rounds } from '../support/scale.js'

const framework = { describe, it }

async function memorySetup(wrap: (driver: Driver) => Driver = (driver) => driver): Promise<DriverSetup> {
  const store = createMemoryStore()
  return { open: async () => wrap(await openMemory({ store })), cleanup: async () => store.threads.clear() }
}

/** The way of file and Redis: items are applied after their entry landed. */
function apart(driver: Driver): Driver {
  const append: Driver['append'] = (batch) => {
    for (const { carried } of batch) if (carried) throw new TypeError('Items travel apart from entries here.')
    return driver.append(batch)
  }
  return { ...driver, append, capabilities: { ...driver.capabilities, storeAtomic: false } }
}

storeSuite('the store in memory', () => memorySetup(), { framework, rounds: rounds(10, 2000) })
storeSuite('the store in memory, with items apart from entries', () => memorySetup(apart), {
  framework,
  rounds: rounds(4, 600),
})

const backends = await durableBackends()
for (const backend of backends) {
  describe.skipIf(backend.missing)(backend.name, () => {
    storeSuite(`the store on ${backend.name}`, durableSetup(backend), { framework, rounds: rounds(2, 400) })
  })
}

afterAll(async () => {
  for (const backend of backends) await backend.cleanup()
})

/** One store for all tests, which work under tenants of their own: to set up a schema takes longer than most of them. */
function durableSetup(backend: Backend): () => Promise<DriverSetup> {
  let url: Promise<string> | undefined
  return async () => {
    // With fsync it is the same code but for one call, which the crash tests look at.
    url ??= backend.fresh().then((place) => (backend.name === 'file' && !full ? `${place}?fsync=off` : place))
    const place = await url
    return { open: () => openDriver(place), cleanup: async () => {} }
  }
}
