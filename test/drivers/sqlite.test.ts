import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import { afterAll, describe, it } from 'vitest'
import { full, rounds } from '../support/scale.js'

const framework = { describe, it, afterAll }

async function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'holdfast-sqlite-'))
}

driverSuite(
  'sqlite',
  async () => {
    const folder = await newFolder()
    const clock = virtualClock()
    return {
      open: () => openSqlite(join(folder, 'test.db'), { clock }),
      advance: (ms) => clock.advance(ms),
      cleanup: () => rm(folder, { recursive: true, force: true }),
    }
  },
  { framework, shared: true, rounds: rounds(40, 20_000) },
)

// The same code but for one pragma and the source of the time, so not in every run.
if (full) {
  driverSuite(
    'sqlite with synchronous NORMAL and the real clock',
    async () => {
      const folder = await newFolder()
      return {
        open: () => openSqlite(join(folder, 'test.db'), { synchronous: 'normal' }),
        cleanup: () => rm(folder, { recursive: true, force: true }),
      }
    },
    { framework, shared: true, rounds: 1000 },
  )
}
