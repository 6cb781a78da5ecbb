/** How many names are suggested at most. */
const SUGGESTED = 3

/** The names that are like what was asked for, the likest first. */
export function findSimilarNames(wanted: string, names: Iterable<string>): readonly string[] {
  return likest([...new Set(names)].map((name) => [name, unlikeness(wanted, name)] as const))
}

/** Of names and how unlike they are, those that may have been meant. */
export function likest(names: Iterable<readonly [name: string, unlikeness: number]>): readonly string[] {
  return [...names]
    .filter(([, distance]) => distance < 0.5)
    .sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, SUGGESTED)
    .map(([name]) => name)
}

/** `; did you mean a or b?`, or the full stop where nothing is alike. */
export function didYouMean(similar: readonly string[]): string {
  if (similar.length === 0) return '.'
  const names = similar.length === 1 ? similar[0] : `${similar.slice(0, -1).join(', ')} or ${similar.at(-1)}`
  return `; did you mean ${names}?`
}

/** 0 for equal, 1 for nothing in common. */
export function unlikeness(a: string, b: string): number {
  const one = a.toLowerCase()
  const other = b.toLowerCase()
  if (one.length > 2 && other.length > 2 && (one.includes(other) || other.includes(one))) return 0.1
  const most = Math.max(one.length, other.length)
  return most === 0 ? 0 : editDistance(one.slice(0, 64), other.slice(0, 64)) / Math.min(most, 64)
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
