// @ts-check
import { quantile, state, timed } from '../statistics.mjs'
import { makeFact } from './items.mjs'

const PER_SCOPE = 100
const DIMS = 256

/** Vectors that cost nothing to make: what is measured is finding them. */
const embed = {
  dims: DIMS,
  fields: ['text'],
  /** @param {readonly string[]} texts */
  embed: async (texts) =>
    texts.map((text) =>
      Array.from({ length: DIMS }, (_, i) => ((text.charCodeAt(i % text.length) * (i + 7)) % 101) - 50),
    ),
}

/**
 * Searches within one scope while the tenant has many: 100 items in each of 1,000 scopes.
 * @param {import('./suite.mjs').Bench} bench
 */
export async function measureSearch({ backend, hf, scale, progress }) {
  const { store } = hf.tenant('searched')
  /** @param {number} scope */
  const facts = (scope) =>
    store
      .scope({ user: `user-${scope}` })
      .collection('facts', /** @type {import('holdfast').CollectionOptions} */ ({ index: ['city'], embed }))
  const items = Array.from({ length: PER_SCOPE }, (_, i) => ({
    put: `fact-${i}`,
    value: /** @type {any} */ (makeFact(i)),
  }))
  const filling = await timed(async () => {
    for (let scope = 0; scope < scale.scopes; scope++) {
      if (scope % 10 === 0) progress(`filling, scope ${scope} of ${scale.scopes}`)
      await facts(scope).batch(items)
    }
  })
  const total = scale.scopes * PER_SCOPE
  /** @type {[string, import('holdfast').SearchQuery][]} */
  const kinds = [
    ['exact, indexed', { filter: { city: 'city-3' } }],
    ['range, ordered by a field', { filter: { importance: { gte: 50 } }, orderBy: 'at', direction: 'desc', limit: 10 }],
    ['list of all', { limit: PER_SCOPE }],
    [`by meaning, ${DIMS} dims`, { query: 'window seats', limit: 5 }],
  ]
  const lines = [
    state({ backend: backend.name, what: `fill ${total.toLocaleString('en-US')} items, 100 a batch`, unit: 'rate' }, [
      (total * 1000) / filling,
    ]),
  ]
  for (const [name, query] of kinds) {
    const p50 = []
    for (let round = 0; round <= scale.rounds; round++) {
      progress(`search ${name}, round ${round} of ${scale.rounds}`)
      const times = []
      for (let i = 0; i < scale.searches; i++) {
        const scope = (i * 7919 + round * 104_729) % scale.scopes
        times.push(await timed(() => facts(scope).search(query)))
      }
      if (round > 0) p50.push(quantile(times, 0.5))
    }
    lines.push(
      state(
        { backend: backend.name, what: `search 100 of ${total.toLocaleString('en-US')}: ${name}`, unit: 'time' },
        p50,
      ),
    )
  }
  return lines
}
