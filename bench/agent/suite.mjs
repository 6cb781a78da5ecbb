// @ts-check
import { budgetOf } from '../budget.mjs'
import { askForRound, startContender } from '../contender.mjs'
import { hasOfficial } from '../langgraph/savers.mjs'
import { compare } from '../statistics.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */
/** @typedef {import('./contender.mjs').Who} Who */

/**
 * Runs that come first, of each: what is compiled on first use is no part of what is measured. The loop alone until it
 * is as fast as in a process that runs all day; then with the store.
 */
const WARM_RUNS = 20
const WARM_RUNS_WITH_STORE = 8

/** @type {Record<Exclude<Who, 'ours'>, string>} */
const PEERS = {
  saver: 'LangGraph with its saver',
  delta: 'LangGraph with its DeltaChannel',
  bare: 'LangGraph without a saver',
}

/**
 * An agent that calls hundreds of tools in one run, with a model that takes no time: what is left is the loop itself.
 * Side by side with LangGraph's agent, each in a process of its own: without any saver (where nothing is kept either, on
 * memory, and where it has no saver for the backend), with its official saver, and with that and its beta DeltaChannel.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const calls = quick ? 50 : 300
  // A model call and a tool call each, and the last word.
  const steps = calls * 2 + 1
  for (const backend of backends) {
    await backend.prepare?.()
    const hasSaver = hasOfficial(backend)
    const peers = /** @type {(keyof typeof PEERS)[]} */ ([
      ...(hasSaver ? ['saver', 'delta'] : []),
      ...(backend.id === 'memory' || !hasSaver ? ['bare'] : []),
    ])
    /** @type {import('../contender.mjs').Contender[]} */
    const contenders = []
    try {
      /** @type {Record<string, number[]>} */
      const rates = {}
      for (const who of /** @type {const} */ (['ours', ...peers])) {
        progress(`${backend.name}: warming up ${who}`)
        const contender = await startContender(who, CONTENDER, { who, address: backend.address })
        contenders.push(contender)
        rates[who] = []
        for (let i = 0; i < (quick ? 1 : WARM_RUNS); i++) await contender.ask('warm', `alone ${i}`, calls)
        for (let i = 0; i < (quick ? 1 : WARM_RUNS_WITH_STORE); i++) await contender.ask('run', `warm-up ${i}`, calls)
      }
      // The first round does not count: while others warmed up, what was compiled for these was let go of.
      for (let round = -1; round < Math.min(rounds, 3); round++) {
        progress(`${backend.name}: ${calls} tool calls, round ${round + 1}`)
        // Each goes first as often as the others do.
        const order = contenders.map(
          (_, i) => /** @type {typeof contenders[0]} */ (contenders[(i + round + 1) % contenders.length]),
        )
        for (const contender of order) {
          const ms = await askForRound(contender, 'run', (i) => [`agent ${round} ${i}`, calls])
          if (round >= 0) rates[contender.name]?.push((steps * 1000) / ms)
        }
      }
      for (const peer of peers) {
        const key = `agent.${peer}@${backend.id}`
        const what = `${calls} tool calls, steps per second, against ${PEERS[peer]}`
        const found = (rates['ours'] ?? []).map((ours, i) => ({ ours, floor: rates[peer]?.[i] ?? NaN }))
        report(compare({ id: key, backend: backend.name, what, unit: 'rate', ...budgetOf(key) }, found))
      }
    } finally {
      for (const { close } of contenders) await close()
      await backend.cleanup?.()
    }
  }
}

const CONTENDER = new URL('contender.mjs', import.meta.url).href
