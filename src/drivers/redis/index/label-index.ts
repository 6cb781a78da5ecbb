import { createHash } from 'node:crypto'
import type { HeadQuery, MetadataValue } from '../../../log/contract.js'
import { countRows, EARLIEST, type Plan, planQuery, planStatus, planWalk, type Range, toBytes } from './index-walk.js'
import { sortable } from '../rows/rows.js'
import { checkLost, type Store } from '../store.js'

const TOKEN_DIGITS = 12

/** How many logs one call looks at, so that it does not keep others waiting. */
const LOGS_AT_ONCE = 250
/** In how many buckets at a time: all calls of a flush must end in time, also if many processes ask at once. */
const BUCKETS_AT_ONCE = 4

/** All logs of a bucket, and those of them whose labels have rows: with an expiry, and without. */
const ALL: Range = { prefix: 'c\0' }
const LABELED: readonly Range[] = [
  { prefix: 'e\0', to: EARLIEST },
  { prefix: 'e\0', from: sortable(1e299) },
]

/** The narrowest part of the index that holds every log the query can mean. */
export async function choosePlan(store: Store, query: HeadQuery): Promise<Plan> {
  const plain = planQuery(query)
  if (query.wakeBefore !== undefined || query.expiresBefore !== undefined) return plain
  const byLabel = labelTokens(query).map((token) => planLabel(query, token))
  if (byLabel.length === 0 && plain.order !== 'none') return plain
  const byStatus = query.status === undefined ? [] : [planStatus(query, query.status)]
  const plans = [planWalk(query), ...byStatus, ...byLabel]
  let counted = await countPlans(store, plans)
  if (byLabel.length > 0 && counted.lacking.length > 0) {
    await indexLabels(store, counted.lacking)
    counted = await countPlans(store, plans)
  }
  const usable = counted.lacking.length === 0 ? counted.plans : counted.plans.slice(0, 1 + byStatus.length)
  return cheapest(usable, query.limit)
}

interface CountedPlan {
  readonly plan: Plan
  readonly rows: number
}

/**
 * A range in the order of the query is left when the page is full; of any other, all heads are read for every page. If
 * those are few among many, that is still less than it takes to meet a page of them on the way through the others; and
 * all pages together never read more heads than there are.
 */
function cheapest(plans: readonly CountedPlan[], limit: number): Plan {
  const fewest = (some: readonly CountedPlan[]) =>
    some.reduce<CountedPlan | undefined>(
      (best, one) => (best === undefined || one.rows < best.rows ? one : best),
      undefined,
    )
  const walked = fewest(plans.filter(({ plan }) => plan.order !== 'none')) as CountedPlan
  const gathered = fewest(plans.filter(({ plan }) => plan.order === 'none'))
  if (gathered === undefined || gathered.rows ** 2 > limit * walked.rows) return walked.plan
  return gathered.plan
}

function planLabel({ tenant, order }: HeadQuery, token: string): Plan {
  if (tenant === undefined) return { ranges: [{ prefix: `l\0${token}\0` }], namesTenant: 'first', order: 'none' }
  const prefix = toBytes(`l\0${token}\0${tenant}\0`)
  return { ranges: [{ prefix }], namesTenant: false, order: order === 'updated' ? 'none' : 'exact' }
}

/** One for each label that is asked for, as include/label-members.lua makes them. */
function labelTokens({ tags = [], metadata = {} }: HeadQuery): string[] {
  const labels = [
    ...tags.map((tag) => `t${tag}`),
    ...Object.entries(metadata).map(([name, value]) => `m${name}\0${valueText(value)}`),
  ]
  return [...new Set(labels)].map((label) => createHash('sha1').update(label).digest('hex').slice(0, TOKEN_DIGITS))
}

function valueText(value: MetadataValue): string {
  if (typeof value === 'number') return `n${sortable(value)}`
  return typeof value === 'string' ? `s${value}` : `b${value}`
}

/** How many rows each plan has, and which buckets have logs whose labels have no rows. */
async function countPlans(store: Store, plans: readonly Plan[]) {
  const ranges = plans.flatMap((plan) => plan.ranges)
  const counts = await countRows(store, [ALL, ...LABELED, ...ranges])
  const lacking = counts.flatMap(([all, dated = 0, undated = 0], bucket) => (dated + undated === all ? [] : [bucket]))
  let at = 1 + LABELED.length
  const counted = plans.map((plan): CountedPlan => {
    let rows = 0
    for (const _ of plan.ranges) {
      for (const bucket of counts) rows += bucket[at] as number
      at += 1
    }
    return { plan, rows }
  })
  return { plans: counted, lacking }
}

/**
 * Gives logs that an older version wrote the rows of their labels. Older versions may go on writing: whoever asks by label
 * finds out that logs lack rows again. Some may still lack them afterwards, since a server that is full takes no rows.
 */
async function indexLabels(store: Store, buckets: readonly number[]): Promise<void> {
  const { scripts, keys, marker, connection } = store
  let open = buckets.map((bucket) => ({ bucket, after: '' as string | Buffer }))
  while (open.length > 0) {
    const some = open.slice(0, BUCKETS_AT_ONCE)
    const calls = some.map(({ bucket, after }) => ({
      script: scripts['index-labels'],
      keys: [keys.index(bucket)],
      args: [marker, after, String(LOGS_AT_ONCE)],
      binary: true,
    }))
    const outcomes = await connection.flush(calls, false)
    const next = []
    for (const [i, outcome] of outcomes.entries()) {
      if ('error' in outcome) return
      const after = checkLost(store, outcome.reply) as Buffer
      if (after.length > 0) next.push({ bucket: (some[i] as (typeof some)[number]).bucket, after })
    }
    open = [...next, ...open.slice(BUCKETS_AT_ONCE)]
  }
}
