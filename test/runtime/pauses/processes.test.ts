import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../../support/backends.js'
import { rounds } from '../../support/scale.js'

const script = fileURLToPath(new URL('../../support/children/pausing.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'holdfast-pausing-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function start(...args: string[]): ChildProcess {
  return spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
}

/** What a process said that did its part and ended by itself. */
async function play(...args: string[]) {
  const child = start(...args)
  const [output, [code]] = await Promise.all([text(child.stdout as NodeJS.ReadableStream), once(child, 'exit')])
  expect(code).toBe(0)
  return JSON.parse(output)
}

/** A process that answers what it is told to, line by line. */
function racer(url: string, by: string) {
  const child = start('race', url, by)
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value as string)
  return {
    ready: next(),
    answer: (told: object) => {
      child.stdin?.write(`${JSON.stringify(told)}\n`)
      return next()
    },
    end: async () => {
      child.stdin?.end()
      await once(child, 'exit')
    },
  }
}

for (const backend of await durableBackends()) {
  describe.skipIf(backend.missing)(`pauses over processes on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    it('one asks and ends, one without the program answers, one goes on; what was done before is done once', async () => {
      const url = await backend.fresh()
      const file = join(folder, backend.name)
      const asked = await play('start', url, 'order', file)
      expect(asked).toMatchObject({ status: 'paused', pauses: [{ question: { pay: { amount: 40 } } }] })
      const { pauses, wrong } = await play('answer', url, 'order', '{"approved":true,"amount":12}')
      expect(pauses).toMatchObject([{ id: asked.pauses[0].id, thread: 'order', schema: { required: ['approved'] } }])
      expect(wrong).toEqual({ code: 'invalid-value', path: '$.approved' })
      expect(await play('resume', url, 'order', file)).toMatchObject({ status: 'completed', output: 12 })
      expect(readFileSync(file, 'utf8')).toBe('quote order\npay order 12\n')
    })

    const count = rounds(10, 250)
    it(`two answer at once, ${count} times: one wins, the other hears who`, { timeout: 600_000 }, async () => {
      const url = await backend.fresh()
      const { pausing } = await import('../../support/children/pausing-program.mjs')
      const program = pausing(join(folder, `${backend.name}-race`))
      const hf = await openHoldfast(url)
      const racers = [racer(url, 'ann'), racer(url, 'bob')]
      await Promise.all(racers.map(({ ready }) => ready))
      const wins: Record<string, number> = {}
      for (let i = 0; i < count; i++) {
        const thread = hf.thread(program, `t${i}`)
        const { pauses } = (await thread.run({ input: { amount: 1 } })) as never as { pauses: { id: string }[] }
        const told = await Promise.all(
          racers.map(({ answer }, n) =>
            answer({ thread: `t${i}`, pause: pauses[0].id, value: { approved: true, amount: n + 1 } }),
          ),
        )
        const winners = told.filter(({ won }) => won)
        expect(winners).toHaveLength(1)
        const { won } = winners[0]
        wins[won] = (wins[won] ?? 0) + 1
        expect(told.find(({ lost }) => lost)).toMatchObject({
          code: 'pause-closed',
          data: { reason: 'answered', by: won, pause: pauses[0].id },
        })
        // The edited amount is the winner's, and only it was paid.
        expect(await thread.run()).toMatchObject({ status: 'completed', output: won === 'ann' ? 1 : 2 })
      }
      console.log(`${backend.name}: ${JSON.stringify(wins)}`)
      await Promise.all(racers.map(({ end }) => end()))
      await hf.close()
    })
  })
}
