import type { Holdfast } from '../../../index.js'
import { threadName } from '../saver/names.js'

/** Allowed for clocks of other processes, and for clocks that were set back. */
const CLOCK_SLACK_MS = 3_600_000

/**
 * The namespaces of a thread that lie in one, that one included, and were written to since a moment. A subgraph that a node
 * calls by itself is no part of the graph that LangGraph could name; what it saved is found this way.
 */
export async function namespacesBelow(
  hf: Holdfast,
  thread: string,
  own: string,
  since: Date,
): Promise<readonly string[]> {
  const found = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await hf.threads({
      thread: threadName(thread),
      order: 'updated',
      direction: 'desc',
      limit: 100,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const { metadata, updatedAt } of page.threads) {
      if (updatedAt.getTime() < since.getTime() - CLOCK_SLACK_MS) return [...found].sort()
      const ns = String(metadata['ns'] ?? '')
      if (ns === own || ns.startsWith(`${own}|`)) found.add(ns)
    }
    cursor = page.cursor
  } while (cursor !== undefined)
  return [...found].sort()
}
