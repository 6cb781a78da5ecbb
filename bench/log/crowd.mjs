// @ts-check
import { budgetOf } from '../budget.mjs'
import { compare, median, state } from '../statistics.mjs'
import { makeTurns } from '../turns.mjs'
import { inParallel, loopDelayDuring, loopDelayOfMachine, saveTurns, storedBytes, takeThread } from './session.mjs'

const IN_FLIGHT = 64
/** Distinct sessions; the others say the same, so that making them up is no part of what is measured. */
const SCRIPTS = 16

/**
 * Many sessions in one process. Opening and claiming each is part of the work; only its turns are counted. The floor
 * commits the same bytes one after another (on Redis: in pipelines of as many SETs as we have in flight).
 * @param {import('./suite.mjs').Bench} bench
 */
export async function measureCrowd({ backend, hf, floor, scale, progress }) {
  const { sessionTurns, crowdRounds } = scale
  const sessions = Math.min(scale.sessions, backend.sessions ?? scale.sessions)
  const scripts = Array.from({ length: SCRIPTS }, (_, i) => makeTurns(100 + i, sessionTurns))
  const bytes = (await Promise.all(scripts.map(storedBytes))).flat()
  const rates = []
  const delays = []
  const longest = []
  /** @type {{ p99: number, longest: number }[]} */
  const machine = []
  for (let round = 0; round <= crowdRounds; round++) {
    const isWarmup = round === 0
    progress(isWarmup ? 'many sessions, warming up' : `many sessions, round ${round} of ${crowdRounds}`)
    const names = Array.from({ length: isWarmup ? IN_FLIGHT * 2 : sessions }, (_, i) => `crowd-${round}-${i}`)
    const before = await floorRate(floor, bytes, isWarmup ? 100 : scale.floorMs)
    const began = performance.now()
    const delay = await loopDelayDuring(() =>
      inParallel([...names.entries()], IN_FLIGHT, async ([i, name]) => {
        await saveTurns(await takeThread(hf, name), scripts[i % SCRIPTS] ?? [])
      }),
    )
    const ours = (names.length * sessionTurns * 1000) / (performance.now() - began)
    if (isWarmup) continue
    const after = await floorRate(floor, bytes, scale.floorMs)
    rates.push({ ours, floor: (before + after) / 2 })
    delays.push(delay.p99)
    longest.push(delay.longest)
    machine.push(await loopDelayOfMachine(scale.floorMs))
  }
  const about = { backend: backend.name, unit: /** @type {const} */ ('time') }
  const of = (/** @type {'p99' | 'longest'} */ which) => median(machine.map((delay) => delay[which]))
  const [crowd, loop] = [`crowd@${backend.id}`, `loop.crowd@${backend.id}`]
  return [
    compare(
      {
        ...about,
        id: crowd,
        what: `${sessions} sessions × ${sessionTurns} turns, ${IN_FLIGHT} at a time`,
        unit: 'rate',
        ...budgetOf(crowd),
      },
      rates,
    ),
    state({ ...about, id: loop, what: 'loop delay meanwhile, p99', floor: of('p99'), ...budgetOf(loop) }, delays),
    state({ ...about, what: 'loop delay meanwhile, longest', floor: of('longest') }, longest),
  ]
}

/**
 * Writes per second.
 * @param {import('../backends.mjs').Floor} floor
 * @param {readonly Buffer[]} bytes
 * @param {number} ms
 */
async function floorRate(floor, bytes, ms) {
  const began = performance.now()
  let written = 0
  while (performance.now() - began < ms) {
    const some = Array.from(
      { length: IN_FLIGHT },
      (_, i) => /** @type {Buffer} */ (bytes[(written + i) % bytes.length]),
    )
    if (floor.writeTogether) await floor.writeTogether(some)
    else for (const one of some) await floor.write(one)
    written += some.length
  }
  return (written * 1000) / (performance.now() - began)
}
