import { isDeepStrictEqual } from 'node:util'
import { type PathPart, renderPath, type Value } from '../../codec/value.js'

/** One place where two states differ. What is missing on one side is left out. */
export interface Difference {
  /** For people: `$.messages[3].text`. */
  readonly path: string
  readonly keys: readonly PathPart[]
  readonly before?: Value
  readonly after?: Value
}

/** Where two values differ, as deep as possible. Each item added to the end of a list is a separate difference. */
export function diffValues(before: Value | undefined, after: Value | undefined, limit = 10_000): readonly Difference[] {
  const found: Difference[] = []
  compare(before, after, [], found, limit)
  return found
}

function compare(
  before: Value | undefined,
  after: Value | undefined,
  keys: readonly PathPart[],
  found: Difference[],
  limit: number,
): void {
  if (found.length >= limit || before === after) return
  const both = isContainer(before) && isContainer(after) && Array.isArray(before) === Array.isArray(after)
  if (!both) {
    if (isDeepStrictEqual(before, after)) return
    found.push({
      path: renderPath(keys),
      keys,
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    })
    return
  }
  if (Array.isArray(before)) {
    const length = Math.max(before.length, (after as readonly Value[]).length)
    for (let i = 0; i < length; i++) compare(before[i], (after as readonly Value[])[i], [...keys, i], found, limit)
    return
  }
  const old = before as Readonly<Record<string, Value>>
  const next = after as Readonly<Record<string, Value>>
  for (const key of new Set([...Object.keys(old), ...Object.keys(next)])) {
    compare(own(old, key), own(next, key), [...keys, key], found, limit)
  }
}

function own(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

function isContainer(value: Value | undefined): boolean {
  return typeof value === 'object' && value !== null && !(value instanceof Date) && !(value instanceof Uint8Array)
}
