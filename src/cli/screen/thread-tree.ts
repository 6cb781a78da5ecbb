import type { Holdfast, ThreadSummary } from '../../index.js'
import { formatThreadId } from '../input/thread-id.js'

/** A thread and those that its runs began. */
export interface ThreadTree {
  readonly summary: ThreadSummary
  readonly children: readonly ThreadTree[]
}

/** Set on threads whose runs have begun others. */
const CHILDREN = 'holdfast.children'

/** The threads that runs of this one began, oldest first, with those below them. */
export async function treeOf(hf: Holdfast, summary: ThreadSummary): Promise<ThreadTree> {
  if (!(CHILDREN in summary.metadata)) return { summary, children: [] }
  const children: ThreadTree[] = []
  let cursor: string | undefined
  do {
    const page = await hf.threads({
      parent: summary.thread,
      errors: true,
      order: 'created',
      direction: 'asc',
      limit: 500,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const child of page.threads) children.push(await treeOf(hf, child))
    cursor = page.cursor
  } while (cursor !== undefined)
  return { summary, children }
}

/** Each thread with the rails that lead to it, the parent first. */
export function drawTree({ summary, children }: ThreadTree): readonly (readonly [string, ThreadSummary])[] {
  const rows: (readonly [string, ThreadSummary])[] = [[formatThreadId(summary.thread), summary]]
  for (const [i, child] of children.entries()) {
    const isLast = i === children.length - 1
    for (const [j, [label, one]] of drawTree(child).entries()) {
      const rail = j === 0 ? (isLast ? '└─ ' : '├─ ') : isLast ? '   ' : '│  '
      rows.push([`${rail}${label}`, one])
    }
  }
  return rows
}
