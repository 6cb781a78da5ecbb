/** The maximum number of names to suggest. */
const SUGGESTED = 3

/** The names most like the one asked for, best match first. */
export function findSimilarNames(wanted: string, names: Iterable<string>): readonly string[] {
  return likest([...new Set(names)].map((name) => [name, unlikeness(wanted, name)] as const))
}

/** Given names and how different they are, those that may have been meant. */
export function likest(names: Iterable<readonly [name: string, unlikeness: number]>): readonly string[] {
  return [...names]
    .filter(([, distance]) => distance < 0.5)
    .sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, SUGGESTED)
    .map(([name]) => name)
}

/** `; did you mean a or b?`, or a period if nothing is similar. */
export function didYouMean(similar: readonly string[]): string {
  if (similar.length === 0) return '.'
  const names = similar.length === 1 ? similar[0] : `${similar.slice(0, -1).join(', ')} or ${similar.at(-1)}`
  return `; did you mean ${names}?`
}

/** 0 for equal, 1 for nothing in common. */
export function unlikeness(a: string, b: string): number {
  const one = a.toLowerCase()
  const other = b.toLowerCase()
  if (one === other) return a === b ? 0 : 0.05
  const most = Math.max(one.length, other.length)
  const least = Math.min(one.length, other.length)
  // `poolsize` is more like `poolSize` than like `pool`.
  if (least > 2 && (one.includes(other) || other.includes(one))) return 0.1 + (0.3 * (most - least)) / most
  return most === 0 ? 0 : editDistance(one.slice(0, 64), other.slice(0, 64)) / Math.min(most, 64)
}

/** Letters to add, remove, change, or swap with the next: a swap is the most common slip. */
function editDistance(a: string, b: string): number {
  const first = Array.from({ length: b.length + 1 }, (_, i) => i)
  const rows = [first]
  for (let i = 1; i <= a.length; i++) {
    const before = rows[i - 1] as number[]
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (before[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = swapped ? (rows[i - 2]?.[j - 2] as number) + 1 : change
      row.push(Math.min(change, swap, (before[j] as number) + 1, (row[j - 1] as number) + 1))
    }
    rows.push(row)
  }
  return rows.at(-1)?.[b.length] as number
}
