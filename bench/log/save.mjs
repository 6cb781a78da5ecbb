// @ts-check
import { alternate, compare, quantile } from '../statistics.mjs'
import { makeTurns } from '../turns.mjs'
import { saveTurn, storedBytes, takeThread } from './session.mjs'

/**
 * One thread that saves one turn after another, against the floor writing the very same bytes.
 * @param {import('./suite.mjs').Bench} bench
 */
export async function measureSave({ backend, hf, floor, scale, progress }) {
  const turns = makeTurns(1, scale.saves)
  const bytes = await storedBytes(turns)
  const p50 = []
  const p99 = []
  for (let round = 0; round <= scale.rounds; round++) {
    progress(round === 0 ? 'save, warming up' : `save, round ${round} of ${scale.rounds}`)
    const claim = await takeThread(hf, `save-${round}`)
    const times = await alternate(
      turns.length,
      (i) => saveTurn(claim, /** @type {import('../turns.mjs').Turn} */ (turns[i])),
      (i) => floor.write(/** @type {Buffer} */ (bytes[i])),
    )
    if (round === 0) continue
    p50.push({ ours: quantile(times.ours, 0.5), floor: quantile(times.floor, 0.5) })
    p99.push({ ours: quantile(times.ours, 0.99), floor: quantile(times.floor, 0.99) })
  }
  return [
    compare({ backend: backend.name, what: 'save of a young thread, p50', unit: 'time' }, p50),
    compare({ backend: backend.name, what: 'save of a young thread, p99', unit: 'time' }, p99),
  ]
}
