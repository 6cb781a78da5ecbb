import type { DriverSetup } from '#src/testing/driver-suite.js'
import { runtimeSuite } from '#src/testing/runtime-suite.js'
import { openDriver } from 'holdfast/driver'
import { afterAll, describe, it } from 'vitest'
import { durableBackends } from './backends.js'

/** The runtime suite on the durable backend of this name. One file each, so that they run side by side. */
export async function runtimeOn(name: 'SQLite' | 'file' | 'Postgres' | 'Redis'): Promise<void> {
  const backend = (await durableBackends()).find((one) => one.name === name)
  if (backend === undefined) throw new Error(`There is no backend ${name}.`)
  const setup = async (): Promise<DriverSetup> => {
    // What survives a power loss is tested with the drivers; here it would only cost time.
    const url = `${await backend.fresh()}${name === 'file' ? '?fsync=off' : ''}`
    return { open: () => openDriver(url), cleanup: () => backend.cleanup() }
  }
  describe.skipIf(backend.missing)(name, () => {
    runtimeSuite(`the runtime on ${name}`, setup, { framework: { describe, it, afterAll } })
  })
}
