// @ts-check
import { budgetOf } from '../budget.mjs'
import { askForRound, startContender } from '../contender.mjs'
import { compare } from '../statistics.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

const SHORT = 600
const LONG = 3000
/** Flows that come first, of each: what is compiled on first use is no part of what is measured. */
const WARM_RUNS = 10

/**
 * A flow of hundreds and of thousands of steps on Postgres, beside DBOS on the same server, each in a process of its own;
 * and how soon an interrupted one goes on. Ours is timed from `run()` by a process that has not read the thread; theirs from the first line of the
 * workflow, without the queue through which it is resumed.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const backend = backends.find(({ id }) => id === 'postgres')
  if (backend === undefined) return progress('DBOS runs on Postgres, which is not measured')
  const times = Math.min(rounds, quick ? 1 : 3)
  /** @type {import('../contender.mjs').Contender[]} */
  const contenders = []
  try {
    for (const [name, module, part] of /** @type {const} */ ([
      ['holdfast', 'ours.mjs', 'flow'],
      ['DBOS', 'peer.mjs', 'dbos'],
    ])) {
      progress(`warming up ${name}`)
      const contender = await startContender(name, new URL(module, import.meta.url).href, { url: backend.url(part) })
      contenders.push(contender)
      for (let i = 0; i < (quick ? 1 : WARM_RUNS); i++) {
        await contender.ask('run', `warm-up ${i}`, quick ? 50 : SHORT)
        if (!quick) await contender.ask('resume', `warm-up ${i} resumed`, SHORT)
      }
    }
    for (const [id, steps] of /** @type {const} */ ([
      ['dbos.600', SHORT],
      ['dbos.3000', LONG],
    ])) {
      const count = quick ? steps / 20 : steps
      const found = []
      // The first round does not count: while the other warmed up, what was compiled for this was let go of.
      for (let round = -1; round < times; round++) {
        progress(`${count} steps beside DBOS, round ${round + 1} of ${times}`)
        const name = `${id} ${round}`
        /** @type {number[]} */
        const took = []
        for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) {
          const contender = /** @type {typeof contenders[0]} */ (contenders[which])
          took[which] = await askForRound(contender, 'run', (i) => [`${name} ${i}`, count])
        }
        if (round < 0) continue
        const [ours = NaN, theirs = NaN] = took
        found.push({ ours: (count * 1000) / ours, floor: (count * 1000) / theirs })
      }
      const what = `flow of ${count} steps, steps per second, against DBOS`
      report(compare({ id, backend: backend.name, what, unit: 'rate', ...budgetOf(id) }, found))
    }
    const count = quick ? LONG / 20 : LONG
    const found = []
    // Each writes all of its steps first.
    for (let round = 0; round < times; round++) {
      progress(`resuming after ${count} steps beside DBOS, round ${round + 1}`)
      const took = []
      for (const { ask } of contenders) took.push((await ask('resume', `resume ${round}`, count)).value)
      const [ours = NaN, theirs = NaN] = took
      // How much sooner.
      found.push({ ours: 1 / ours, floor: 1 / theirs })
    }
    report(resumeLine(backend.name, count, found))
  } finally {
    for (const { close } of contenders) await close()
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
