import { type Driver, type DuePage, type DueQuery, type Head, PROGRAM_LABEL } from '../contract.js'

/** What is due on a driver that has no index of it: by a walk over the heads, and reserved for nobody. */
export async function dueHeads(driver: Driver, query: DueQuery): Promise<DuePage> {
  const { programs, tenant, now, limit } = query
  const heads: Head[] = []
  for (const program of new Set(programs)) {
    const page = await driver.heads({
      wakeBefore: now,
      lease: 'free',
      metadata: { [PROGRAM_LABEL]: program },
      order: 'updated',
      direction: 'asc',
      limit: limit + 1,
      ...(tenant === undefined ? {} : { tenant }),
    })
    heads.push(...page.heads)
  }
  heads.sort((a, b) => a.index.updatedAt - b.index.updatedAt)
  return { heads: heads.slice(0, limit), more: heads.length > limit, nextMs: null }
}
