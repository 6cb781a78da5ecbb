// @ts-check
import { openStore } from '../backends.mjs'
import { budgetOf } from '../budget.mjs'
import { openOfficial } from '../langgraph/savers.mjs'
import { compare, timed } from '../statistics.mjs'
import { makeOurs, runOurs } from './ours.mjs'
import { makeTheirs, runTheirs } from './theirs.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

/**
 * Runs that come first, of each: what is compiled on first use is no part of what is measured. Both loops once without
 * a store, until they are as fast as in a process that runs all day; then with the store of each backend.
 */
const WARM_RUNS = 20
const WARM_RUNS_EACH = 4

/**
 * An agent that calls hundreds of tools in one run, with a model that takes no time: what is left is the loop itself.
 * Side by side with LangGraph's agent: without any saver (where nothing is kept either, on memory, and where it has no
 * saver for the backend), with its official saver, and with that and its beta DeltaChannel.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const calls = quick ? 50 : 300
  // A model call and a tool call each, and the last word.
  const steps = calls * 2 + 1
  progress('warming up')
  if (!quick) await warmUp(calls)
  for (const backend of backends) {
    await backend.prepare?.()
    const { hf } = await openStore(backend.url('agent'))
    const [saver, delta] = [await openOfficial(backend, 'agent'), await openOfficial(backend, 'agent_delta')]
    /** @type {{ id: string, peer: string, keeping: import('./theirs.mjs').Keeping }[]} */
    const peers = [
      ...(saver ? [{ id: 'saver', peer: 'LangGraph with its saver', keeping: { saver: saver.saver } }] : []),
      ...(delta
        ? [{ id: 'delta', peer: 'LangGraph with its DeltaChannel', keeping: { saver: delta.saver, delta: true } }]
        : []),
      ...(backend.id === 'memory' || !saver ? [{ id: 'bare', peer: 'LangGraph without a saver', keeping: {} }] : []),
    ]
    try {
      const contenders = [
        { name: 'ours', run: oursFor(hf) },
        ...peers.map(({ id, keeping }) => ({ name: id, run: theirsWith(keeping) })),
      ]
      /** @type {Record<string, number[]>} */
      const rates = Object.fromEntries(contenders.map(({ name }) => [name, []]))
      progress(`${backend.name}: warming up`)
      for (let i = 0; i < (quick ? 1 : WARM_RUNS_EACH); i++) {
        for (const { run: once } of contenders) await once(`warm-up ${i}`, quick ? 20 : calls)
      }
      for (let round = 0; round < Math.min(rounds, 3); round++) {
        progress(`${backend.name}: ${calls} tool calls, round ${round + 1}`)
        // Each goes first as often as the others do.
        const order = contenders.map(
          (_, i) => /** @type {typeof contenders[0]} */ (contenders[(i + round) % contenders.length]),
        )
        for (const { name, run: once } of order) {
          rates[name]?.push((steps * 1000) / (await timed(() => once(`agent ${round}`, calls))))
        }
      }
      for (const { id, peer } of peers) {
        const key = `agent.${id}@${backend.id}`
        const what = `${calls} tool calls, steps per second, against ${peer}`
        const found = (rates['ours'] ?? []).map((ours, i) => ({ ours, floor: rates[id]?.[i] ?? NaN }))
        report(compare({ id: key, backend: backend.name, what, unit: 'rate', ...budgetOf(key) }, found))
      }
    } finally {
      await hf.close()
      await saver?.close()
      await delta?.close()
      await backend.cleanup?.()
    }
  }
}

/** @param {number} calls */
async function warmUp(calls) {
  const { hf } = await openStore('memory:')
  const both = [oursFor(hf), theirsWith({})]
  for (let i = 0; i < WARM_RUNS; i++) for (const once of both) await once(`warm-up ${i}`, calls)
  await hf.close()
}

/** @param {import('holdfast').Holdfast} hf */
function oursFor(hf) {
  return (/** @type {string} */ thread, /** @type {number} */ calls) => runOurs(hf, makeOurs(calls), thread, calls)
}

/** @param {import('./theirs.mjs').Keeping} keeping */
function theirsWith(keeping) {
  return (/** @type {string} */ thread, /** @type {number} */ calls) =>
    runTheirs(makeTheirs(calls, keeping), thread, calls)
}
