/** Numbers that follow from a seed: the same seed plays the same day again. */
export interface Dice {
  /** From 0 up to, but not including, 1. */
  next(): number
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number
  pick<Item>(items: readonly Item[]): Item
  shuffle<Item>(items: readonly Item[]): Item[]
}

/** Dice for one purpose: `parts` name it, so that one customer's rolls do not depend on another's. */
export function rollDice(seed: number, ...parts: readonly (string | number)[]): Dice {
  let state = hash(`${seed}/${parts.join('/')}`)
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1))
  const pick = <Item>(items: readonly Item[]) => items[between(0, items.length - 1)] as Item
  const shuffle = <Item>(items: readonly Item[]) =>
    items
      .map((item) => ({ item, at: next() }))
      .sort((a, b) => a.at - b.at)
      .map(({ item }) => item)
  return { next, between, pick, shuffle }
}

function hash(text: string): number {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  return value >>> 0
}
