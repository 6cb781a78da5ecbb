// @ts-check
import { alternate, compare, timed } from '../statistics.mjs'

/**
 * What a preference or a remembered fact looks like: some 300 bytes.
 * @param {number} i
 */
export function makeFact(i) {
  return {
    kind: ['preference', 'fact', 'order', 'address'][i % 4],
    text: `Fact ${i}: prefers window seats, vegetarian food and replies in short sentences, on weekdays before noon.`,
    importance: (i * 37) % 100,
    city: `city-${i % 10}`,
    source: { thread: `thread-${i % 13}`, turn: i % 30 },
    at: new Date(1_700_000_000_000 + i * 1000),
  }
}

/**
 * Puts and gets one after another, against the floor writing and reading the same JSON.
 * @param {import('./suite.mjs').Bench} bench
 */
export async function measureItems({ backend, hf, floor, scale, progress }) {
  /** @type {Record<'put' | 'get' | 'batch', { ours: number, floor: number }[]>} */
  const rates = { put: [], get: [], batch: [] }
  for (let round = 0; round <= scale.rounds; round++) {
    progress(round === 0 ? 'items, warming up' : `items, round ${round} of ${scale.rounds}`)
    const collection = hf.store.scope({ user: `user-${round}` }).collection('facts')
    const facts = Array.from({ length: scale.items }, (_, i) => makeFact(i))
    const json = facts.map((fact) => JSON.stringify(fact))
    const puts = await alternate(
      facts.length,
      (i) => collection.put(`fact-${i}`, /** @type {any} */ (facts[i])),
      (i) => floor.write(Buffer.from(/** @type {string} */ (json[i]))),
    )
    for (const [i, text] of json.entries()) await floor.putState(`fact-${round}-${i}`, text)
    const gets = await alternate(
      facts.length,
      (i) => collection.get(`fact-${i}`),
      (i) => floor.getState(`fact-${round}-${i}`),
    )
    const changes = facts.map((fact, i) => ({ put: `fact-${i}`, value: /** @type {any} */ (fact) }))
    const batch = await timed(() => collection.batch(changes))
    if (round === 0) continue
    rates.put.push({ ours: rate(puts.ours), floor: rate(puts.floor) })
    rates.get.push({ ours: rate(gets.ours), floor: rate(gets.floor) })
    rates.batch.push({ ours: rate([batch], facts.length), floor: rate(puts.floor) })
  }
  return [
    compare({ backend: backend.name, what: 'puts, one after another', unit: 'rate' }, rates.put),
    compare({ backend: backend.name, what: 'gets, one after another', unit: 'rate' }, rates.get),
    compare({ backend: backend.name, what: `puts in batches of ${scale.items}`, unit: 'rate' }, rates.batch),
  ]
}

/** @param {readonly number[]} times in milliseconds @param {number} [count] */
function rate(times, count = times.length) {
  return (count * 1000) / times.reduce((sum, time) => sum + time, 0)
}
