import type { SearchItem, SearchOperation } from '@langchain/langgraph-checkpoint'
import type { Collection, Item } from '../../../index.js'
import { InvalidOptionError } from '../../../errors.js'
import type { Clause } from '../../../store/index.js'
import { fits, narrowing } from './store-filter.js'
import { bestScore } from './store-index.js'
import { type Kept, readField, readValue, readVectors } from './store-kept.js'
import { namespaceOfCollection, unescape } from './store-names.js'

/**
 * How many items a page has, and from how many namespaces pages are read at once: this many are in memory at a time.
 */
const PAGE = 100
const AT_ONCE = 8

/** Where a search looks, and what it looks for. */
export interface SearchPlan {
  /** The collections under the prefix. */
  readonly names: readonly string[]
  open(name: string): Collection<Kept>
  readonly filterFields: readonly string[]
  readonly vector: Float32Array | undefined
}

interface Candidate {
  readonly name: string
  readonly item: Item<Kept>
  readonly score: number | undefined
}

/**
 * What matches under a prefix: by score if there is one, then most recently written first. Every item that the backend
 * does not leave out is looked at, page by page, and no more than what may be returned is held.
 */
export async function searchItems(operation: SearchOperation, plan: SearchPlan): Promise<SearchItem[]> {
  const { filter, limit = 10, offset = 0 } = operation
  checkCount('limit', limit)
  checkCount('offset', offset)
  if (limit === 0) return []
  const best = new Best(offset + limit)
  const clauses = narrowing(filter, plan.filterFields)
  const waiting = plan.names.values()
  const walks = Array.from({ length: Math.min(AT_ONCE, plan.names.length) }, async () => {
    for (const name of waiting) {
      for await (const item of walk(plan.open(name), clauses)) {
        if (filter && !fits((field) => readField(item.value, field), filter)) continue
        best.add({ name, item, score: plan.vector && bestScore(plan.vector, readVectors(item.value)) })
      }
    }
  })
  await Promise.all(walks)
  return best.take().slice(offset).map(toSearchItem)
}

async function* walk(collection: Collection<Kept>, filter: readonly Clause[]): AsyncGenerator<Item<Kept>> {
  let cursor: string | undefined
  do {
    const page = await collection.search({ filter, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) })
    yield* page.items
    cursor = page.cursor
  } while (cursor !== undefined)
}

/** Keeps the first of what it is given, and never many more. */
class Best {
  readonly #count: number
  #kept: Candidate[] = []
  #last: Candidate | undefined

  constructor(count: number) {
    this.#count = count
  }

  add(candidate: Candidate): void {
    if (this.#last !== undefined && compare(candidate, this.#last) >= 0) return
    this.#kept.push(candidate)
    if (this.#kept.length < 2 * this.#count + PAGE) return
    this.#kept = this.take()
    this.#last = this.#kept.at(-1)
  }

  take(): Candidate[] {
    return this.#kept.sort(compare).slice(0, this.#count)
  }
}

// Names decide what nothing else does, so that pages are stable.
function compare(a: Candidate, b: Candidate): number {
  return (
    (b.score ?? -2) - (a.score ?? -2) ||
    b.item.updatedAt.getTime() - a.item.updatedAt.getTime() ||
    compareText(a.name, b.name) ||
    compareText(a.item.key, b.item.key)
  )
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function toSearchItem({ name, item: { key, value, createdAt, updatedAt }, score }: Candidate): SearchItem {
  return {
    namespace: namespaceOfCollection(name),
    key: unescape(key),
    value: readValue(value),
    createdAt,
    updatedAt,
    ...(score === undefined ? {} : { score }),
  }
}

export function checkCount(field: string, count: unknown): void {
  if (count === Number.POSITIVE_INFINITY || (Number.isSafeInteger(count) && (count as number) >= 0)) return
  throw new InvalidOptionError(field, 'must be a whole number, 0 or more', 'Pass how many.')
}
