// @ts-check
import { compare, median, state, timed } from '../statistics.mjs'
import { budgetOf } from '../budget.mjs'
import { makeTurns } from '../turns.mjs'
import { loopDelayDuring, loopDelayOfMachine, saveTurn, saveTurns, storedBytes, takeThread } from './session.mjs'

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
  const id = `loop.long@${backend.id}`
  return {
    threads,
    delay: state({ ...about, id, what: `loop delay, ${OLD} turns, p99`, floor: machine.p99, ...budgetOf(id) }, [p99]),
    longest: state({ ...about, what: `loop delay, ${OLD} turns, longest`, floor: machine.longest }, [longest]),
  }
}

/**
 * A save around turn 1000 against the floor writing the same bytes, and against a save around turn 30: all three in
 * turns.
 * @param {import('./suite.mjs').Bench} bench
 * @param {readonly Claim[]} old
 */
export async function measureLongSave({ backend, hf, floor, scale, progress }, old) {
  const start = makeTurns(3, YOUNG - Math.ceil(scale.window / 2))
  const window = makeTurns(4, scale.window)
  const bytes = await storedBytes(window)
  const againstYoung = []
  const againstFloor = []
  for (let round = 0; round < scale.rounds; round++) {
    progress(`turn ${OLD} against turn ${YOUNG}, round ${round + 1} of ${scale.rounds}`)
    const young = await Promise.all(old.map((_, i) => takeThread(hf, `young-${round}-${i}`)))
    await Promise.all(young.map((claim) => saveTurns(claim, start)))
    /** @type {Record<'old' | 'young' | 'floor', number[]>} */
    const times = { old: [], young: [], floor: [] }
    for (const [n, turn] of window.entries()) {
      for (const [i, claim] of old.entries()) {
        times.old.push(await timed(() => saveTurn(claim, turn)))
        times.floor.push(await timed(() => floor.write(/** @type {Buffer} */ (bytes[n]))))
        times.young.push(await timed(() => saveTurn(/** @type {Claim} */ (young[i]), turn)))
      }
    }
    const ours = median(times.old)
    againstYoung.push({ ours, floor: median(times.young) })
    againstFloor.push({ ours, floor: median(times.floor) })
  }
  const about = { backend: backend.name, unit: /** @type {const} */ ('time') }
  const [flat, save] = [`flat@${backend.id}`, `save@${backend.id}`]
  return [
    compare({ ...about, id: save, what: `save at turn ${OLD} / the floor, p50`, ...budgetOf(save) }, againstFloor),
    compare({ ...about, id: flat, what: `save at turn ${OLD} / turn ${YOUNG}, p50`, ...budgetOf(flat) }, againstYoung),
  ]
}
