import { checkWhole, describeGiven } from '../../core/wording/choices.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { OptionNames } from '../../core/wording/option-names.js'
import type { ItemStore } from '../../log/items/item-store.js'
import type { ParsedOptions } from '../collection-options.js'
import type { Order } from './cursor.js'
import { parseField } from './field.js'
import { parseFilter } from './filter.js'
import type { ListQuery, SearchQuery } from '../item.js'
import { type FoundPage, type SearchPlan, searchNearest, searchOrdered } from './search.js'
import { checkKey } from '../space.js'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 10_000

// A misspelled filter would find everything.
export const LIST_QUERY: OptionNames<ListQuery> = { prefix: true, limit: true, cursor: true }
export const SEARCH_QUERY: OptionNames<SearchQuery> = {
  ...LIST_QUERY,
  filter: true,
  orderBy: true,
  direction: true,
  query: true,
  minScore: true,
}

/** Which collection is searched. */
type Place = Pick<SearchPlan, 'tenant' | 'space'>
type Searchable = Pick<ParsedOptions, 'index' | 'embed'>

/** Checks what a user asks for, and finds it: in an order, or by meaning. */
export async function searchItems(
  items: ItemStore,
  place: Place,
  options: Searchable,
  query: SearchQuery,
): Promise<FoundPage> {
  const plan = planSearch(place, options, query)
  if (query.query !== undefined) return findNearest(items, plan, options, query)
  return searchOrdered(items, plan, orderOf(query), query.cursor)
}

function planSearch(
  place: Place,
  { index }: Searchable,
  { prefix, filter, limit = DEFAULT_LIMIT }: SearchQuery,
): SearchPlan {
  checkWhole('limit', limit, MAX_LIMIT, 'Ask for pages and follow the cursor.')
  return {
    ...place,
    prefix: prefix === undefined || prefix === '' ? undefined : checkKey(prefix),
    conditions: parseFilter(filter),
    index,
    limit,
  }
}

function orderOf({ orderBy, direction = 'asc' }: SearchQuery): Order {
  if (direction !== 'asc' && direction !== 'desc') {
    throw new InvalidOptionError(
      'direction',
      `must be 'asc' or 'desc', not ${describeGiven(direction)}`,
      'Leave it out for asc.',
    )
  }
  return {
    field: orderBy === undefined ? undefined : parseField('orderBy', orderBy),
    descending: direction === 'desc',
  }
}

async function findNearest(
  items: ItemStore,
  plan: SearchPlan,
  { embed }: Searchable,
  { query, minScore = -1, orderBy, direction, cursor }: SearchQuery,
): Promise<FoundPage> {
  if (embed === undefined)
    throw new InvalidOptionError('query', 'needs embed', 'Give the collection an embed function.')
  if (typeof query !== 'string' || query === '')
    throw new InvalidOptionError(
      'query',
      `must be a non-empty string, not ${describeGiven(query)}`,
      'Pass what to look for.',
    )
  if (orderBy !== undefined || direction !== undefined || cursor !== undefined) {
    throw new InvalidOptionError(
      'query',
      'has an order of its own, in one page',
      'Leave out orderBy, direction and cursor.',
    )
  }
  if (typeof minScore !== 'number' || Number.isNaN(minScore)) {
    throw new InvalidOptionError(
      'minScore',
      `must be a number from -1 to 1, not ${describeGiven(minScore)}`,
      'Pass for example 0.7.',
    )
  }
  const [vector] = await embed.embed([query])
  return searchNearest(items, plan, vector as Float32Array, minScore)
}
