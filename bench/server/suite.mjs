// @ts-check
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { flow, openHoldfast } from 'holdfast'
import { HoldfastClient } from 'holdfast/client'
import { createServer, listen } from 'holdfast/server'
import { compare, median, state, timed } from '../statistics.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

const TOKEN = 'token-of-the-benchmark'
const STREAMS = 1000

/** One step, and one message to whoever listens. */
const echo = flow({ name: 'echo', version: '1.0.0' }, async (ctx, /** @type {number} */ input) =>
  ctx.step('echo', async (step) => {
    step.emit({ at: performance.now() })
    return input
  }),
)

/**
 * What HTTP adds: the same programs and reads through a socket, against a call in this process.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const count = quick ? 30 : 200
  for (const backend of backends) {
    await backend.prepare?.()
    const hf = await openHoldfast(backend.url('server'))
    const server = createServer(hf, {
      programs: [echo],
      tokens: [{ token: TOKEN }],
      limits: { streamsPerPrincipal: STREAMS },
      worker: { pollMs: 20 },
    })
    const listening = await listen(server, { port: 0 })
    const client = new HoldfastClient({ baseUrl: listening.url, token: TOKEN })
    try {
      progress(`${backend.name}: requests`)
      for (const line of await measureRequests(backend.name, hf, client, count, rounds)) report(line)
      progress(`${backend.name}: streams`)
      report(await measureLatency(backend.name, hf, client, count, rounds))
      if (backend.name === backends[0]?.name) {
        progress(`${backend.name}: ${STREAMS} open streams`)
        report(await measureMemory(backend.name, server, listening.port))
      }
    } finally {
      await listening.close()
      await hf.close()
      await backend.cleanup?.()
    }
  }
}

/**
 * @param {string} backend
 * @param {import('holdfast').Holdfast} hf
 * @param {HoldfastClient} client
 * @param {number} count
 * @param {number} rounds
 */
async function measureRequests(backend, hf, client, count, rounds) {
  /** @type {Record<'reads' | 'runs', { ours: number, floor: number }[]>} */
  const rates = { reads: [], runs: [] }
  await hf.thread(echo, 'read').run({ input: 1 })
  const view = hf.inspect('read')
  for (let round = 0; round <= rounds; round++) {
    const reads = await timed(() => repeat(count, () => client.thread('read').state()))
    const readsHere = await timed(() =>
      repeat(count, async () => view.look((await view.history({ limit: 1, all: true }))[0]?.id ?? '').facts()),
    )
    const runs = await timed(() => repeat(count, (i) => client.thread(`http-${round}-${i}`).run({ input: i })))
    const runsHere = await timed(() => repeat(count, (i) => hf.thread(echo, `here-${round}-${i}`).run({ input: i })))
    if (round === 0) continue
    rates.reads.push({ ours: (count * 1000) / reads, floor: (count * 1000) / readsHere })
    rates.runs.push({ ours: (count * 1000) / runs, floor: (count * 1000) / runsHere })
  }
  return [
    compare({ backend, what: 'states read, one after another, against in process', unit: 'rate' }, rates.reads),
    compare({ backend, what: 'runs of one step, one after another, against in process', unit: 'rate' }, rates.runs),
  ]
}

/**
 * From a word that is said until its reader has it.
 * @param {string} backend
 * @param {import('holdfast').Holdfast} hf
 * @param {HoldfastClient} client
 * @param {number} count
 * @param {number} rounds
 */
async function measureLatency(backend, hf, client, count, rounds) {
  /** @type {{ ours: number, floor: number }[]} */
  const delays = []
  for (let round = 0; round < rounds; round++) {
    /** @type {number[]} */
    const ours = []
    /** @type {number[]} */
    const here = []
    await repeat(Math.ceil(count / 10), async (i) => {
      for await (const event of client.thread(`said-${round}-${i}`).stream({ input: i })) note(ours, event)
      for await (const event of hf.thread(echo, `said-here-${round}-${i}`).stream({ input: i })) note(here, event)
    })
    delays.push({ ours: median(ours), floor: Math.max(0.001, median(here)) })
  }
  return compare({ backend, what: 'from a word said until it is read, against in process', unit: 'time' }, delays)
}

/** @param {number[]} delays @param {{ readonly type: string, readonly value?: unknown }} event */
function note(delays, event) {
  if (event.type !== 'custom') return
  delays.push(performance.now() - /** @type {{ at: number }} */ (event.value).at)
}

/**
 * What idle streams take of the server's memory; their readers are another process.
 * @param {string} backend
 * @param {import('holdfast/server').HoldfastServer} server
 * @param {number} port
 */
async function measureMemory(backend, server, port) {
  globalThis.gc?.()
  const before = process.memoryUsage.rss()
  const readers = spawn(
    process.execPath,
    [fileURLToPath(new URL('readers.mjs', import.meta.url)), `${port}`, TOKEN, `${STREAMS}`],
    {
      stdio: 'ignore',
    },
  )
  try {
    while (server.openStreams < STREAMS) await new Promise((resolve) => setTimeout(resolve, 20))
    const after = process.memoryUsage.rss()
    return state({ backend, what: `memory of ${STREAMS} open streams`, unit: 'bytes' }, [Math.max(0, after - before)])
  } finally {
    readers.kill()
    await once(readers, 'exit')
  }
}

/** @param {number} count @param {(i: number) => Promise<unknown>} work */
async function repeat(count, work) {
  for (let i = 0; i < count; i++) await work(i)
}
