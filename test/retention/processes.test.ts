import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { full } from '../support/scale.js'

const CHILD = fileURLToPath(new URL('./sweep-child.mjs', import.meta.url))
const LASTS_MS = full ? 60_000 : 2500
/** Threads that are not kept are gone after this, so that sweeps always find some, and some that are used just then. */
const TTL_MS = 20

interface Report {
  readonly runs: Readonly<Record<string, number>>
  readonly problems: readonly string[]
}

const backends = await durableBackends()

function start(url: string, role: 'write' | 'sweep', name: string) {
  const child = fork(CHILD, [url, role, name, String(TTL_MS)])
  const report = new Promise<Report>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Report))
    child.once('exit', (code) => reject(new Error(`${role} ${name} ended with ${code} and said nothing`)))
  })
  // It is read when all have been told to stop; until then nobody listens for a failure.
  report.catch(() => {})
  return { child, report }
}

describe.each(backends)('sweeps beside other processes on $name', ({ missing, fresh, cleanup }) => {
  const children: ChildProcess[] = []
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL')
    await cleanup()
  })

  it.skipIf(missing)(
    'lose nothing that is kept, leave no pointer to nothing, and nothing that nothing points to',
    async () => {
      const url = await fresh()
      await (await openHoldfast(url, { telemetry: false })).close()
      const started = (['write a', 'write b', 'sweep c', 'sweep d'] as const).map((what) => {
        const [role, name] = what.split(' ') as ['write' | 'sweep', string]
        const one = start(url, role, name)
        children.push(one.child)
        return one
      })
      // How long it lasts decides how much is tried, and nothing else.
      await delay(LASTS_MS)
      // One that met a problem has ended already, and its report says which.
      for (const { child } of started) if (child.connected) child.send('stop', () => {})
      const reports = await Promise.all(started.map(({ report }) => report))
      expect(reports.flatMap(({ problems }) => problems)).toEqual([])
      await using hf = await openHoldfast(url, { telemetry: false, retention: { ttlMs: TTL_MS, keepLast: 5 } })
      await hf.sweep({ graceMs: -1e12 })
      const { threads } = await hf.threads({ limit: 10_000 })
      for (const { thread, branch } of threads) {
        expect((await hf.verify(thread, { branch }))?.problems, `${String(thread)} ${branch}`).toEqual([])
      }
      for (const [thread, runs] of reports.flatMap((one) => Object.entries(one.runs))) {
        if (thread === 'sweeps') continue
        const log = await hf.log(thread)
        const { state } = log.fold.state as { readonly state: { readonly said: readonly string[] } }
        // What was said and what was answered, of every acknowledged run, and of no other.
        expect(state.said.length, thread).toBe(2 * runs)
        expect((await hf.inspect(thread).history({ limit: 100 })).length).toBe(Math.min(5, 2 * runs))
      }
      expect((await hf.collectBlobs({ graceMs: -1e12 })).removed).toBe(0)
    },
    180_000,
  )
})
