import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import { describe, it } from 'vitest'

driverSuite(
  'memory',
  async () => {
    const clock = virtualClock()
    const store = createMemoryStore({ clock })
    return {
      open: () => openMemory({ store }),
      advance: (ms) => clock.advance(ms),
      cleanup: async () => store.threads.clear(),
    }
  },
  { framework: { describe, it } },
)
