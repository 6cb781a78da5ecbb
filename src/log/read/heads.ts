import { inDueOrder } from '../../core/due-order.js'
import {
  type Driver,
  type DuePage,
  type DueQuery,
  type Head,
  type HeadPage,
  type HeadQuery,
  LIMIT_LABEL,
  PRIORITY_LABEL,
  PROGRAM_LABEL,
} from '../contract.js'

/** All are read anyway: of this many those whose turn it is are picked. */
const WINDOW = 1000

/** What is due on a driver that has no index of it: by a walk over the heads, and reserved for nobody. */
export async function dueHeads(driver: Driver, query: DueQuery): Promise<DuePage> {
  const { programs, tenant, now, limit, after, except = [] } = query
  const found: Head[] = []
  for (const program of new Set(programs)) {
    const page = await driver.heads({
      wakeBefore: now,
      lease: 'free',
      metadata: { [PROGRAM_LABEL]: program },
      order: 'updated',
      direction: 'asc',
      limit: Math.max(WINDOW, limit + 1),
      ...(tenant === undefined ? {} : { tenant }),
    })
    found.push(...page.heads)
  }
  const isPassedOver = ({ log, index: { metadata } }: Head) =>
    except.some(
      (group) =>
        group.program === metadata[PROGRAM_LABEL] &&
        group.tenant === log.tenant &&
        (group.key === undefined || group.key === metadata[LIMIT_LABEL]),
    )
  const places = found
    .filter((head) => except.length === 0 || !isPassedOver(head))
    .map((head) => ({
      head,
      priority: Number(head.index.metadata[PRIORITY_LABEL] ?? 0),
      tenant: head.log.tenant,
      since: head.index.updatedAt,
    }))
  const heads = inDueOrder(places, after).map(({ head }) => head)
  return { heads: heads.slice(0, limit), more: heads.length > limit, nextMs: null }
}

/** All heads that a query finds, read page by page. */
export async function* allHeads(
  list: (query: HeadQuery) => Promise<HeadPage>,
  query: HeadQuery,
): AsyncGenerator<Head, void> {
  for (let cursor: string | undefined; ; ) {
    const page = await list(cursor === undefined ? query : { ...query, cursor })
    yield* page.heads
    cursor = page.cursor
    if (cursor === undefined) return
  }
}
