import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../../support/backends.js'

const script = fileURLToPath(new URL('../../support/children/events.mjs', import.meta.url))

function start(...args: string[]): ChildProcess {
  return spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
}

interface Told {
  readonly id: string
  readonly type: string
}

/** Reads in a process of its own that is killed after so many events, or ends with the thread. */
async function readSome(url: string, after: string | undefined, most: number): Promise<Told[]> {
  const child = start('read', url, 't', ...(after === undefined ? [] : [after]))
  const exited = once(child, 'exit')
  const events: Told[] = []
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    // What the dead process printed and we did not take is as lost as what it did not print.
    if (events.length < most) events.push(JSON.parse(line))
    if (events.length === most) child.kill('SIGKILL')
  }
  await exited
  return events
}

for (const backend of await durableBackends()) {
  describe.skipIf(backend.missing)(`events over processes on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    it('are complete and told once, though readers and the runner are killed', { timeout: 600_000 }, async () => {
      const url = await backend.fresh()
      const first = start('run', url, 't', '12')
      const killed = once(first, 'exit')
      const told = await readSome(url, undefined, 20)
      first.kill('SIGKILL')
      await killed
      const second = start('run', url, 't')
      const ended = once(second, 'exit')
      // Cut in the middle of an entry's events, then to the end.
      told.push(...(await readSome(url, told.at(-1)?.id, 11)))
      told.push(...(await readSome(url, told.at(-1)?.id, Number.POSITIVE_INFINITY)))
      expect((await ended)[0]).toBe(0)
      const hf = await openHoldfast(url)
      const expected = []
      for await (const event of hf.inspect('t').events()) expected.push(JSON.parse(JSON.stringify(event)))
      await hf.close()
      expect(told).toEqual(expected)
      expect(told.filter(({ type }) => type === 'step').length).toBeGreaterThanOrEqual(30)
      expect(told.at(-1)).toMatchObject({ type: 'checkpoint' })
    })
  })
}
