/**
 * The first `count` of the items in the order of `compare`, sorted. Holds a few times `count` items at once, so one
 * page of a hundred thousand costs a walk and not a sort.
 */
export function takeSmallest<Item>(
  items: Iterable<Item>,
  count: number,
  compare: (a: Item, b: Item) => number,
): Item[] {
  if (count <= 0) return []
  let best: Item[] = []
  let last: Item | undefined
  for (const item of items) {
    if (last !== undefined && compare(item, last) >= 0) continue
    best.push(item)
    if (best.length < 4 * count + 64) continue
    best = best.sort(compare).slice(0, count)
    last = best.at(-1)
  }
  return best.sort(compare).slice(0, count)
}
