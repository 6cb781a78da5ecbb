import type { LogKey } from '../../../log/contract.js'

/** By tenant, thread and branch, by UTF-8 byte: the order in which the server's functions lock rows. */
export function compareKeys(a: LogKey, b: LogKey): number {
  return compareBytes(a.tenant, b.tenant) || compareBytes(a.thread, b.thread) || compareBytes(a.branch, b.branch)
}

function compareBytes(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const unitA = a.charCodeAt(i)
    const unitB = b.charCodeAt(i)
    if (unitA !== unitB) return byteRank(unitA) - byteRank(unitB)
  }
  return a.length - b.length
}

// Code units order as UTF-8 does, except that surrogates (characters of four bytes) come behind U+E000 to U+FFFF.
function byteRank(unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}
