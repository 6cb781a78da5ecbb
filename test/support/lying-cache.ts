import type { LogKey, RecentTail, StoredEntry } from 'holdfast/driver'
import type { TailCache } from '#src/cache/tail-cache.js'
import { type Seeded, seeded } from './seeded.js'

/** How a cache may be wrong, each as often as the others. */
const WAYS = [
  'right',
  'right',
  'nothing',
  'older',
  'another life',
  'another thread',
  'damaged',
  'cut',
  'forged',
] as const

/**
 * A cache that forgets nothing and tells what it likes: the newest, any older state, that of a thread that was erased, that
 * of another thread, or bytes that nobody wrote. `told` counts what it told, by what it was.
 */
export function lyingCache(seed: number): { readonly cache: TailCache; readonly told: Map<string, number> } {
  const random = seeded(seed)
  const tails = new Map<string, RecentTail[]>()
  const told = new Map<string, number>()
  const pastOf = (log: LogKey): RecentTail[] => {
    const name = JSON.stringify(log)
    const past = tails.get(name) ?? []
    tails.set(name, past)
    return past
  }
  const cache: TailCache = {
    describe: () => 'a lying one',
    async get(log, from) {
      const past = pastOf(log)
      const newest = past.at(-1)
      const way = random.pick(WAYS)
      const tail = newest && choose(random, way, past, newest, [...tails.values()].flat())
      if (tail === undefined) return undefined
      told.set(way, (told.get(way) ?? 0) + 1)
      const at = tail.entries.findIndex(({ seq }) => seq === from)
      return at > 0 ? { ...tail, entries: tail.entries.slice(at) } : tail
    },
    async put(log, { incarnation, after, entries }) {
      const past = pastOf(log)
      const newest = past.at(-1)
      const joins = newest?.incarnation === incarnation && newest.entries.at(-1)?.hash === after?.hash
      if (after === null) past.push({ incarnation, entries })
      else if (joins) past.push({ incarnation, entries: [...newest.entries, ...entries] })
      return random.chance(0.5)
    },
    forget() {},
    bar: async () => true,
    unbar() {},
    scrub: async () => ({ complete: true, note: '' }),
    async close() {},
  }
  return { cache, told }
}

function choose(
  random: Seeded,
  way: (typeof WAYS)[number],
  past: readonly RecentTail[],
  newest: RecentTail,
  all: readonly RecentTail[],
): RecentTail | undefined {
  const { incarnation, entries } = newest
  const at = random.below(entries.length)
  const change = (make: (entry: StoredEntry) => StoredEntry): RecentTail => ({
    incarnation,
    entries: entries.map((entry, i) => (i === at ? make(entry) : entry)),
  })
  switch (way) {
    case 'right':
      return newest
    case 'nothing':
      return undefined
    case 'older':
      return random.pick(past)
    case 'another life':
      return random.pick(past.filter((one) => one.incarnation !== incarnation))
    case 'another thread':
      return random.pick(all)
    case 'damaged':
      return change((entry) => ({ ...entry, body: flip(random, entry.body) }))
    case 'cut':
      return { incarnation, entries: entries.slice(at, at + random.below(3)) }
    case 'forged':
      return change((entry) => ({ ...entry, hash: random.pick(entries).hash, seq: entry.seq + random.below(2) }))
  }
}

function flip(random: Seeded, bytes: Uint8Array): Uint8Array {
  const changed = Uint8Array.from(bytes)
  const at = random.below(changed.length)
  changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8))
  return changed
}
