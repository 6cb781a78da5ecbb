import type { BranchInfo, CheckpointItem } from '../../src/client/index.js'

/** How one row of the fork tree is drawn. */
export interface LaneRow {
  /** Where its own dot is. */
  readonly lane: number
  /** Lanes whose line goes through it, from above and to below. */
  readonly lines: readonly { readonly lane: number; readonly above: boolean; readonly below: boolean }[]
  /** Lanes of branches that were forked from it. */
  readonly joins: readonly number[]
}

/** More side by side can't be told apart: what is further to the right shares the last one. */
const MOST_LANES = 12

/** All branches, each before its forks. */
export function flatten(branches: readonly BranchInfo[]): readonly BranchInfo[] {
  return branches.flatMap((branch) => [branch, ...flatten(branch.forks)])
}

/**
 * Gives each branch a lane from its newest checkpoint down to where it was forked, and the lane to another when it ends
 * there. The first branch keeps the first lane.
 */
export function layLanes(checkpoints: readonly CheckpointItem[], branches: readonly BranchInfo[]): readonly LaneRow[] {
  const places = new Map(checkpoints.map(({ id }, i) => [id, i]))
  const spans = new Map<string, { first: number; last: number; own: number; join: number | undefined }>()
  for (const [i, { branch, parent }] of checkpoints.entries()) {
    const known = spans.get(branch)
    const isForeign = parent !== undefined && checkpoints[places.get(parent) ?? -1]?.branch !== branch
    const join = isForeign && parent !== undefined ? places.get(parent) : undefined
    const down = isForeign ? (join ?? checkpoints.length) : i
    if (known === undefined) spans.set(branch, { first: i, last: Math.max(i, down), own: i, join })
    else Object.assign(known, { last: Math.max(known.last, down, i), own: i, join: join ?? known.join })
  }
  const order = [...spans.keys()].sort((a, b) => {
    const root = branches[0]?.name
    if (a === root || b === root) return a === root ? -1 : 1
    return (spans.get(a)?.first ?? 0) - (spans.get(b)?.first ?? 0)
  })
  const free: number[] = []
  const lanes = new Map<string, number>()
  for (const name of order) {
    const span = spans.get(name)
    if (!span) continue
    let lane = free.findIndex((until) => until < span.first)
    if (lane === -1) lane = free.length
    free[lane] = span.last
    lanes.set(name, Math.min(lane, MOST_LANES - 1))
  }
  const rows = checkpoints.map(({ branch }) => ({
    lane: lanes.get(branch) ?? 0,
    lines: new Map<number, { above: boolean; below: boolean }>(),
    joins: new Set<number>(),
  }))
  for (const [name, span] of spans) {
    const lane = lanes.get(name) ?? 0
    for (let i = span.first; i <= Math.min(span.last, rows.length - 1); i++) {
      const row = rows[i]
      if (!row) continue
      if (i === span.join) {
        row.joins.add(lane)
        continue
      }
      const line = row.lines.get(lane) ?? { above: false, below: false }
      line.above ||= i > span.first
      line.below ||= i < span.last
      row.lines.set(lane, line)
    }
  }
  return rows.map(({ lane, lines, joins }) => ({
    lane,
    lines: [...lines].map(([at, line]) => ({ lane: at, ...line })),
    joins: [...joins].filter((at) => at !== lane),
  }))
}
