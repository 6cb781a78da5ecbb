// @ts-check
import { openStore } from '../backends.mjs'
import { openOfficial } from '../langgraph/savers.mjs'
import { compare, timed } from '../statistics.mjs'
import { makeOurs, makeTheirs, runOurs, runTheirs } from './loops.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

/**
 * An agent that calls hundreds of tools in one run, with a model that takes no time: what is left is the loop itself.
 * Side by side with LangGraph's agent and its official saver for the backend; where it has none, without any.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const calls = quick ? 100 : 300
  // A model call and a tool call each, and the last word.
  const steps = calls * 2 + 1
  for (const backend of backends) {
    await backend.prepare?.()
    const { hf } = await openStore(backend.url('agent'))
    const official = await openOfficial(backend, 'agent', progress)
    try {
      const ours = makeOurs(calls)
      const theirs = makeTheirs(calls, official?.saver)
      const found = []
      for (let round = 0; round <= rounds; round++) {
        progress(`${backend.name}: ${calls} tool calls, round ${round + 1} of ${rounds + 1}`)
        const our = await timed(() => runOurs(hf, ours, `agent ${round}`, calls))
        const their = await timed(() => runTheirs(theirs, `agent ${round}`, calls))
        // The first warms both up.
        if (round > 0) found.push({ ours: (steps / our) * 1000, floor: (steps / their) * 1000 })
      }
      const peer = official ? 'LangGraph' : 'LangGraph without a saver'
      const budget = official ? { budget: { atLeast: 10 } } : {}
      const what = `${calls} tool calls, steps per second, against ${peer}`
      report(compare({ backend: backend.name, what, unit: 'rate', ...budget }, found))
    } finally {
      await hf.close()
      await official?.close()
      await backend.cleanup?.()
    }
  }
}
