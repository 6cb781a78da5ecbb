// @ts-check
import { flow } from 'holdfast'
import { openStore } from '../backends.mjs'
import { budgetOf } from '../budget.mjs'
import { compare, timed } from '../statistics.mjs'
import { PAYLOAD } from './payload.mjs'
import { openPeer } from './peer.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

const SHORT = 600
const LONG = 3000

/**
 * A flow of hundreds and of thousands of steps on Postgres, beside DBOS on the same server; and how soon an interrupted
 * one goes on. Ours is timed from `run()` by a process that has not read the thread; theirs from the first line of the
 * workflow, without the queue through which it is resumed.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const backend = backends.find(({ id }) => id === 'postgres')
  if (backend === undefined) return progress('DBOS runs on Postgres, which is not measured')
  const peer = await openPeer(backend.url('dbos'))
  const url = backend.url('flow')
  const { hf } = await openStore(url)
  const times = Math.min(rounds, quick ? 1 : 3)
  try {
    // As much of each as is measured, so that what is compiled on first use is no part of it.
    progress('warming up')
    await oursOf(hf, 'warm-up', quick ? 50 : LONG)
    await peer.run('warm-up', quick ? 50 : LONG)
    for (const [id, steps] of /** @type {const} */ ([
      ['dbos.600', SHORT],
      ['dbos.3000', LONG],
    ])) {
      const count = quick ? steps / 20 : steps
      const found = []
      for (let round = 0; round < times; round++) {
        progress(`${count} steps beside DBOS, round ${round + 1} of ${times}`)
        const name = `${id} ${round}`
        const both = [() => oursOf(hf, name, count), () => peer.run(name, count)]
        /** @type {number[]} */
        const took = []
        for (const which of round % 2 === 0 ? [0, 1] : [1, 0])
          took[which] = await timed(/** @type {() => unknown} */ (both[which]))
        const [ours = NaN, theirs = NaN] = took
        found.push({ ours: (count * 1000) / ours, floor: (count * 1000) / theirs })
      }
      const what = `flow of ${count} steps, steps per second, against DBOS`
      report(compare({ id, backend: backend.name, what, unit: 'rate', ...budgetOf(id) }, found))
    }
    const count = quick ? LONG / 20 : LONG
    const found = []
    // Each writes all of its steps first.
    for (let round = 0; round < Math.min(times, 2); round++) {
      progress(`resuming after ${count} steps beside DBOS, round ${round + 1}`)
      const ours = await resumeOurs(url, `resume ${round}`, count)
      const theirs = await peer.resume(`resume ${round}`, count)
      // How much sooner.
      found.push({ ours: 1 / ours, floor: 1 / theirs })
    }
    report(resumeLine(backend.name, count, found))
  } finally {
    await hf.close()
    await peer.close()
    await backend.cleanup?.()
  }
}

/** @param {string} backend @param {number} count @param {readonly { ours: number, floor: number }[]} found @returns {Line} */
function resumeLine(backend, count, found) {
  const id = 'dbos.resume'
  const line = compare(
    { id, backend, what: `resuming after ${count} steps, against DBOS`, unit: 'time', ...budgetOf(id) },
    found,
  )
  // Compared as speeds, so that more is better; shown as the times they are.
  return { ...line, ours: 1 / line.ours, floor: 1 / /** @type {number} */ (line.floor) }
}

/** @param {{ onLast?: () => unknown }} [options] */
function makeSteps({ onLast } = {}) {
  return flow({ name: 'steps', version: '1.0.0' }, async (ctx, /** @type {number} */ count) => {
    for (let key = 0; key < count; key++) await ctx.step('turn', { key }, () => PAYLOAD)
    await ctx.step('last', async () => {
      await onLast?.()
      return null
    })
    return count
  })
}

/** @param {import('holdfast').Holdfast} hf @param {string} id @param {number} count */
async function oursOf(hf, id, count) {
  const { status } = await hf.thread(makeSteps(), id).run({ input: count })
  if (status !== 'completed') throw new Error(`Our flow ended as ${status}.`)
}

/** @param {string} url @param {string} id @param {number} count */
async function resumeOurs(url, id, count) {
  const first = await openStore(url)
  const stop = new AbortController()
  const interrupted = makeSteps({ onLast: () => stop.abort() })
  await first.hf
    .thread(interrupted, id)
    .run({ input: count, signal: stop.signal })
    .catch(() => {})
  await first.hf.close()
  const { hf } = await openStore(url)
  try {
    let startedAt = 0
    const again = makeSteps({
      onLast: () => {
        startedAt = performance.now()
      },
    })
    const began = performance.now()
    const { status } = await hf.thread(again, id).run()
    if (status !== 'completed' || startedAt === 0) throw new Error(`Our resumed flow ended as ${status}.`)
    return startedAt - began
  } finally {
    await hf.close()
  }
}
