// @ts-check
import { compare, median, state, timed } from '../statistics.mjs'
import { loopBudget } from '../backends.mjs'
import { makeTurns } from '../turns.mjs'
import { loopDelayDuring, loopDelayOfMachine, saveTurn, saveTurns, takeThread } from './session.mjs'

/** @typedef {import('holdfast').Claim} Claim */

const OLD = 1000
const YOUNG = 30

/**
 * Fills the long threads at full speed, all at once, and watches the event loop meanwhile: their keyframes of up to
 * two megabytes fall due together.
 * @param {import('./suite.mjs').Bench} bench
 */
export async function fillThreads({ backend, hf, scale, progress }) {
  progress(`filling ${scale.longThreads} threads with ${OLD} turns each`)
  const turns = makeTurns(2, OLD - Math.ceil((scale.rounds * scale.window) / 2))
  const names = Array.from({ length: scale.longThreads }, (_, i) => `long-${i}`)
  /** @type {Claim[]} */
  let threads = []
  const { p99, longest } = await loopDelayDuring(async () => {
    threads = await Promise.all(names.map((name) => takeThread(hf, name)))
    await Promise.all(threads.map((claim) => saveTurns(claim, turns)))
  })
  const machine = await loopDelayOfMachine(scale.floorMs)
  const about = { backend: backend.name, unit: /** @type {const} */ ('time') }
  return {
    threads,
    delay: state({ ...about, what: `loop delay, ${OLD} turns, p99`, floor: machine.p99, ...loopBudget(backend) }, [
      p99,
    ]),
    longest: state({ ...about, what: `loop delay, ${OLD} turns, longest`, floor: machine.longest }, [longest]),
  }
}

/**
 * A save around turn 1000 against a save around turn 30, in turns.
 * @param {import('./suite.mjs').Bench} bench
 * @param {readonly Claim[]} old
 */
export async function measureFlatness({ backend, hf, scale, progress }, old) {
  const start = makeTurns(3, YOUNG - Math.ceil(scale.window / 2))
  const window = makeTurns(4, scale.window)
  const rounds = []
  for (let round = 0; round < scale.rounds; round++) {
    progress(`turn ${OLD} against turn ${YOUNG}, round ${round + 1} of ${scale.rounds}`)
    const young = await Promise.all(old.map((_, i) => takeThread(hf, `young-${round}-${i}`)))
    await Promise.all(young.map((claim) => saveTurns(claim, start)))
    /** @type {{ ours: number[], floor: number[] }} */
    const times = { ours: [], floor: [] }
    for (const turn of window) {
      for (const [i, claim] of old.entries()) {
        times.ours.push(await timed(() => saveTurn(claim, turn)))
        times.floor.push(await timed(() => saveTurn(/** @type {Claim} */ (young[i]), turn)))
      }
    }
    rounds.push({ ours: median(times.ours), floor: median(times.floor) })
  }
  const what = `save at turn ${OLD} / turn ${YOUNG}, p50`
  return compare({ backend: backend.name, what, unit: 'time', budget: { atMost: 1.2 } }, rounds)
}
