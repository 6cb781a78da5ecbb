import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFile } from '#src/drivers/file/open-file.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import { describe, it } from 'vitest'
import { full, rounds } from '../support/scale.js'

// With fsync it is the same code but for one call, which others test (crash, power loss), so not in every run.
for (const fsync of full ? [true, false] : [false]) {
  driverSuite(
    fsync ? 'file' : 'file without fsync',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'holdfast-file-'))
      const clock = virtualClock()
      return {
        open: () => openFile(folder, { clock, fsync }),
        advance: (ms) => clock.advance(ms),
        cleanup: () => rm(folder, { recursive: true }),
      }
    },
    { framework: { describe, it }, rounds: rounds(20, 2000) },
  )
}
