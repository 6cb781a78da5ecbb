import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Message, openHoldfast, tenantUsage } from 'holdfast'
import { type ModelServer, startModelServer } from 'holdfast/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { full } from '../support/scale.js'
import { callsIn, resultsIn } from './agent-setup.js'
import { drive, makeAgent, readLedger, reply, THREAD } from './crash-session.mjs'

// A session of 20 turns is killed with SIGKILL right after each of its appends in turn, once per append, and taken up
// again each time. `npm test` kills a spread of the appends; `npm run test:full` kills all of them on SQLite and a third
// of them on files.
const SPREAD = 6
const CHILD = fileURLToPath(new URL('./crash-child.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'holdfast-agent-'))
let server: ModelServer
let count = 0

beforeAll(async () => {
  server = await startModelServer({ reply, keep: 1 })
})

afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Place {
  readonly url: string
  readonly ledger: string
  readonly modelUrl: string
}

function place(scheme: string, modelUrl: string): Place {
  const name = join(folder, `${count++}`)
  return { url: `${scheme}:${name}.store`, ledger: `${name}.ledger`, modelUrl }
}

/** The number of appends of a session that ends well; undefined of one that was killed. */
function runChild({ url, ledger, modelUrl }: Place, nth: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [CHILD, url, modelUrl, ledger, String(nth)], (error, stdout, stderr) => {
      if (error?.signal === 'SIGKILL') resolve(undefined)
      else if (error) reject(new Error(`${error.message}\n${stderr}`))
      else resolve(Number(stdout))
    })
  })
}

/** What was said and done, without ids and times. */
function transcript(messages: readonly Message[]): unknown {
  return messages.map(({ role, parts, finish, usage }) => ({ role, parts, finish, usage }))
}

const models = (messages: readonly Message[]) => messages.filter(({ role }) => role === 'assistant').length

describe.each(['sqlite', 'file'])('a session of 20 turns that is killed after an append (%s)', (scheme) => {
  it('repeats nothing that was recorded and ends like one that was not', async () => {
    const whole = place(scheme, server.url)
    const appends = (await runChild(whole, 0)) as number
    const expected = await readThread(whole)
    expect(appends).toBeGreaterThan(60)
    expect(models(expected.messages)).toBe(36)

    const every = Array.from({ length: appends }, (_, i) => i + 1)
    const wanted = scheme === 'sqlite' ? (full ? appends : SPREAD) : full ? Math.ceil(appends / 3) : 2
    const share = (nth: number) => Math.floor((nth * wanted) / appends)
    const left = every.filter((nth) => share(nth) > share(nth - 1))
    const work = async () => {
      // One server each, so that the requests of two sessions are not counted together.
      const own = await startModelServer({ reply, keep: 1 })
      try {
        for (let nth = left.shift(); nth !== undefined; nth = left.shift()) {
          // Results that land together share an append: a session may end with a few fewer than another.
          if (!(await killAndResume(own, nth, expected))) expect(nth).toBeGreaterThan(appends * 0.9)
        }
      } finally {
        await own.close()
      }
    }
    await Promise.all([work(), work()])
  }, 3_600_000)

  /** False if it ended before. */
  async function killAndResume(own: ModelServer, nth: number, expected: Awaited<ReturnType<typeof readThread>>) {
    const where = place(scheme, own.url)
    own.clear()
    const ended = await runChild(where, nth)
    if (ended !== undefined) {
      expect(ended).toBeLessThan(nth)
      return false
    }
    // What it sent before it died is counted by now.
    for (let i = 0; i < 10; i++) await new Promise(setImmediate)
    const asked = own.counters.requests
    const killed = await readThread(where)
    const hf = await openHoldfast(where.url)
    try {
      const outcome = await drive(hf, makeAgent(where.modelUrl, where.ledger, 'second'), where.ledger)
      const { messages } = outcome.state as { messages: readonly Message[] }
      expect(transcript(messages), `append ${nth}`).toEqual(transcript(expected.messages))
      // Every recorded model call was made once: only the others were made after the crash, and at most one twice.
      expect(own.counters.requests - asked, `append ${nth}`).toBe(models(expected.messages) - models(killed.messages))
      expect(asked - models(killed.messages)).toBeLessThanOrEqual(1)
      const again = readLedger(where.ledger).filter((line: string) => line.startsWith('second'))
      for (const line of again) expect(killed.done, `append ${nth}`).not.toContain(line.split(' ')[2])
      // What must happen once did, recorded or not.
      const once = readLedger(where.ledger).filter((line: string) => / (charge|refund) /.test(line))
      expect(new Set(once.map((line: string) => line.split(' ')[2])).size, `append ${nth}`).toBe(once.length)
      expect(await tenantUsage(hf)).toEqual(expected.usage)
      return true
    } finally {
      await hf.close()
    }
  }
})

/** What a thread holds, and the calls whose results are recorded, also those of a step that is not closed yet. */
async function readThread({ url }: Place) {
  const hf = await openHoldfast(url)
  try {
    const log = await hf.log(THREAD)
    const { state, steps = {} } = log.fold.state as {
      state?: { messages: readonly Message[] }
      steps?: Record<string, { status: string; result?: { messages?: readonly Message[] } }>
    }
    const messages = state?.messages ?? []
    const open = Object.values(steps).flatMap(({ result }) => result?.messages ?? [])
    const done = [...messages, ...open].flatMap((message) => resultsIn(message))
    expect(messages.flatMap((message) => callsIn(message)).length).toBeGreaterThanOrEqual(done.length)
    return { messages, done, usage: await tenantUsage(hf) }
  } finally {
    await hf.close()
  }
}
