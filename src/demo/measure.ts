import { statSync } from 'node:fs'
import { isProcessMetrics, METRICS_COLLECTION, METRICS_SCOPE } from '../internal.js'
import { type Holdfast, mergeMetrics, openHoldfast, quantileOf } from '../index.js'
import type { Customer } from './shop/customers.js'
import type { DemoReport } from './report.js'

const SAVES = 'holdfast.checkpoint.save.duration'
const LOADS = 'holdfast.checkpoint.load.duration'
const AT_ONCE = 8

type Measured = Pick<
  DemoReport,
  'bytesPerTurn' | 'bytesMeasured' | 'saveMsP50' | 'saveMsP99' | 'loadMsP50' | 'loadMsP99' | 'cache'
>

/**
 * What is on the disk, and how long it took to get there. A SQLite file that is the demo's own is measured as it lies
 * there; on a server that others use as well, the bytes of the entries are added up.
 */
export async function measure(
  customers: readonly Customer[],
  turns: number,
  where: { readonly store: string; readonly tenant: string; readonly file: string | undefined; readonly since: number },
): Promise<Measured> {
  const opened = await openHoldfast(where.store)
  try {
    const hf = opened.tenant(where.tenant)
    const bytes = where.file === undefined ? await sumEntries(hf, customers) : sizeOf(where.file)
    return {
      bytesPerTurn: turns === 0 ? 0 : Math.round(bytes / turns),
      bytesMeasured: where.file === undefined ? 'entries' : 'file',
      ...(await readLatencies([hf, opened], where.since)),
    }
  } finally {
    await opened.close()
  }
}

function sizeOf(file: string): number {
  return ['', '-wal'].reduce((sum, ending) => sum + (statSync(file + ending, { throwIfNoEntry: false })?.size ?? 0), 0)
}

async function sumEntries(hf: Holdfast, customers: readonly Customer[]): Promise<number> {
  let sum = 0
  let next = 0
  const walk = async () => {
    for (let at = next++; at < customers.length; at = next++) {
      const view = hf.inspect((customers[at] as Customer).thread)
      for (let before: number | undefined; ; ) {
        const page = await view.history({ limit: 1000, all: true, ...(before === undefined ? {} : { before }) })
        for (const { bytes } of page) sum += bytes
        before = page.at(-1)?.seq
        if (page.length < 1000 || before === undefined) break
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, walk))
  return sum
}

/** What the processes of this run have left behind of their own measurements; nulls where there are none. */
async function readLatencies(stores: readonly Holdfast[], since: number) {
  const found = new Map<string, Parameters<typeof mergeMetrics>[0][number]>()
  for (const hf of stores) {
    const { items } = await hf.store
      .scope(METRICS_SCOPE)
      .collection<unknown>(METRICS_COLLECTION)
      .list({ limit: 10_000 })
    for (const { value } of items) {
      if (isProcessMetrics(value) && value.startedAt >= since) found.set(value.process, value)
    }
  }
  const { histograms, counters } = mergeMetrics([...found.values()])
  const count = (name: string) => counters[`holdfast.cache.${name}`] ?? 0
  const [hits, loads] = [count('hits'), count('hits') + count('misses')]
  const at = (name: string, part: number) => {
    const value = histograms[name] && quantileOf(histograms[name], part)
    return value === undefined || !Number.isFinite(value) ? null : value
  }
  return {
    saveMsP50: at(SAVES, 0.5),
    saveMsP99: at(SAVES, 0.99),
    loadMsP50: at(LOADS, 0.5),
    loadMsP99: at(LOADS, 0.99),
    cache: loads === 0 ? null : { hits, loads, outdated: count('outdated') },
  }
}
