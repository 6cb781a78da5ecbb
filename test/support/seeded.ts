/** Random numbers that a seed repeats exactly. */
export interface Seeded {
  /** From 0 up to, not including, 1. */
  next(): number
  /** A whole number from 0 up to, not including, the limit. */
  below(limit: number): number
  pick<Item>(items: readonly Item[]): Item
  chance(probability: number): boolean
}

export function seeded(seed: number): Seeded {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    next,
    below,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
    chance: (probability) => next() < probability,
  }
}
