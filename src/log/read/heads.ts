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

/** All are read anyway: where no more than this are due, one walk finds them. */
const SOME = 10_000
/** Of this many of each program, those whose turn it is are picked. */
const WINDOW = 1000

/** What is due on a driver that has no index of it: by a walk over the heads, and reserved for nobody. */
export async function dueHeads(driver: Driver, query: DueQuery): Promise<DuePage> {
  const { limit, after, except = [] } = query
  const found = (await allDue(driver, query)) ?? (await oldestDue(driver, query))
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

/** All that is due; undefined if that is too much to be picked from. */
async function allDue(driver: Driver, query: DueQuery): Promise<readonly Head[] | undefined> {
  const programs: ReadonlySet<unknown> = new Set(query.programs)
  const { heads, cursor } = await driver.heads({ ...due(query), limit: SOME })
  if (cursor !== undefined) return undefined
  return heads.filter(({ index }) => programs.has(index.metadata[PROGRAM_LABEL]))
}

/** What has been due for longest, of each program. */
async function oldestDue(driver: Driver, query: DueQuery): Promise<readonly Head[]> {
  const found: Head[] = []
  for (const program of new Set(query.programs)) {
    const limit = Math.max(WINDOW, query.limit + 1)
    const page = await driver.heads({ ...due(query), metadata: { [PROGRAM_LABEL]: program }, limit })
    found.push(...page.heads)
  }
  return found
}

function due({ now, tenant }: DueQuery): Omit<HeadQuery, 'limit'> {
  const ofTenant = tenant === undefined ? {} : { tenant }
  return { wakeBefore: now, lease: 'free', order: 'updated', direction: 'asc', ...ofTenant }
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
