import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { charging } from '../support/children/charging-program.mjs'
import { freeze } from '../support/freeze.js'
import { until } from '../support/until.js'

const CHILD = fileURLToPath(new URL('../support/children/charging.mjs', import.meta.url))
const LEASE_MS = 700
const THREADS = Array.from({ length: 12 }, (_, i) => `order-${i}`)

for (const backend of await durableBackends()) {
  describe.skipIf(backend.missing)(`a worker on ${backend.name} that stood still between two steps`, () => {
    afterAll(() => backend.cleanup())

    it.each(['stopped', 'blocked'])(
      'starts no effect when it goes on after its threads were taken over: %s',
      { timeout: 600_000 },
      async (how) => {
        const url = await backend.fresh()
        const folder = await mkdtemp(join(tmpdir(), 'holdfast-frozen-'))
        const file = join(folder, 'charges')
        const child = spawn(process.execPath, [CHILD, url, file, String(LEASE_MS), how, ...THREADS], {
          stdio: ['pipe', 'pipe', 'inherit'],
        })
        const exited = once(child, 'exit')
        const lines: string[] = []
        createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
        await using hf = await openHoldfast(url)
        try {
          await until(() => lines.includes('between'))
          if (how === 'stopped') await freeze(child, url)
          const takeOver = (thread: string) =>
            until(async () => (await hf.thread(charging(file, 'second'), thread).run()).status === 'completed')
          await Promise.all(THREADS.map(takeOver))
          // It finds both at once when it wakes up: that it may go on, and that its timers are long due.
          child.stdin.write('go\n')
          child.kill('SIGCONT')
          await exited
          const charges = (await readFile(file, 'utf8')).trim().split('\n')
          expect(charges.sort()).toEqual(THREADS.map((thread) => `second ${thread}`).sort())
          expect(lines.filter((line) => line.startsWith('ended')).sort()).toEqual(
            THREADS.map((thread) => `ended ${thread} fenced`).sort(),
          )
        } finally {
          child.kill('SIGKILL')
          await rm(folder, { recursive: true, force: true })
        }
      },
    )
  })
}
