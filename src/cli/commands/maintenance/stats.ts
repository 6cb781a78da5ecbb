import type { Holdfast, ThreadSummary } from '../../../index.js'
import type { QueueAge } from '../../../types.js'
import { type Command, text } from '../../command.js'
import { Progress } from '../../screen/progress.js'
import { type RunSample, sampleRuns } from './sample-runs.js'
import { printStats } from './stats-print.js'
import { threadQuery } from '../threads/threads.js'
import { parseCount } from '../../screen/times.js'
import { listAll } from './verify.js'

/** Above this many takeovers per run, or below this many resumes that succeed, workers are dying or starving. */
const MOST_TAKEOVERS_PER_RUN = 0.2
const LEAST_RESUMES_SUCCEEDED = 0.9
/** Fewer than this say nothing. */
const ENOUGH = 10

/** Figures of all threads, of a sample of their entries, and of what processes have reported. */
export const run: Command = async (context, _args, options) => {
  const hf = await context.open()
  const { output } = context
  const sampled = parseCount(text(options, 'sample') ?? '200', '--sample', 100_000)
  const [all, newest, queue] = await Promise.all([listAll(hf), newestOf(hf, sampled), hf.queueAge()])
  const progress = new Progress(output, 'reading', newest.length)
  const sample = await sampleRuns(hf, newest, () => progress.step())
  progress.end()
  const processes = await readProcesses(hf)
  const warnings = judge(sample, processes)
  const report: StatsReport = {
    branches: all.length,
    threads: new Set(all.map(({ thread }) => JSON.stringify(thread))).size,
    statuses: countStatuses(all),
    entries: all.reduce((sum, { entries }) => sum + entries, 0),
    claimed: all.filter(({ claimedBy }) => claimedBy !== null).length,
    overdue: all.filter(
      ({ wakeAt, claimedBy }) => claimedBy === null && wakeAt && wakeAt.getTime() < Date.now() - 30_000,
    ).length,
    queue,
    sample: { ...sample, bytes: summarize(sample.bytes) },
    processes,
    warnings,
  }
  if (output.json) output.document(report)
  else await printStats(output, report)
}

async function newestOf(hf: Holdfast, most: number): Promise<readonly ThreadSummary[]> {
  const found: ThreadSummary[] = []
  let cursor: string | undefined
  do {
    const limit = Math.min(1000, most - found.length)
    const page = await hf.threads({ ...threadQuery({}), limit, ...(cursor ? { cursor } : {}) })
    found.push(...page.threads)
    cursor = page.cursor
  } while (cursor !== undefined && found.length < most)
  return found
}

/** What processes have left behind of their own counts, put together. Null when none has. */
async function readProcesses(hf: Holdfast) {
  const { mergeMetrics, quantileOf } = await import('../../../index.js')
  const all = await hf.metrics()
  if (all.length === 0) return null
  const { counters, histograms, models, processes } = mergeMetrics(all)
  const measured = Object.entries(histograms).map(([name, histogram]) => {
    const count = histogram.counts.reduce((sum, one) => sum + one, 0)
    const [p50, p99] = [quantileOf(histogram, 0.5) ?? null, quantileOf(histogram, 0.99) ?? null]
    return [name, { count, mean: count === 0 ? 0 : histogram.sum / count, p50, p99 }] as const
  })
  return { processes, counters, histograms: Object.fromEntries(measured), models, rates: ratesOf(counters) }
}

/** Parts of one, null where there is nothing to divide by. */
function ratesOf(counters: Readonly<Record<string, number>>) {
  const of = (name: string) => counters[`holdfast.${name}`] ?? 0
  const part = (some: number, all: number) => (all === 0 ? null : some / all)
  const started = of('runs.started')
  const spent = of('tokens.input') + of('tokens.output')
  return {
    completed: part(of('runs.completed'), started),
    failed: part(of('runs.failed'), started),
    paused: part(of('runs.paused'), started),
    resumed: part(of('resume.succeeded'), of('resume.attempts')),
    /** Of the tokens that would have been spent without resuming. */
    tokensSaved: part(of('tokens.saved'), spent + of('tokens.saved')),
  }
}

type Processes = NonNullable<Awaited<ReturnType<typeof readProcesses>>>

/** Says once what both sources know: processes have counted everything of a day, entries show the rest. */
function judge({ runs, resumes }: RunSample, processes: Processes | null): readonly string[] {
  const of = (name: string) => processes?.counters[`holdfast.${name}`] ?? 0
  const counted = { started: of('runs.started'), attempts: of('resume.attempts'), succeeded: of('resume.succeeded') }
  const sources = [
    { ...counted, takeovers: of('takeovers') },
    { ...resumes, started: runs.started },
  ]
  const dying = sources.find(
    ({ takeovers, started }) => takeovers >= ENOUGH / 2 && takeovers > started * MOST_TAKEOVERS_PER_RUN,
  )
  const failing = sources.find(
    ({ attempts, succeeded }) => attempts >= ENOUGH && succeeded < attempts * LEAST_RESUMES_SUCCEEDED,
  )
  const warnings: string[] = []
  if (dying) {
    warnings.push(
      `Unstable: ${dying.takeovers} takeovers in ${dying.started} runs. Workers die, are killed, or lose their leases: ` +
        'look at memory limits, deployments that do not wait for SIGTERM, event loops that block longer than the lease.',
    )
  }
  if (failing) {
    warnings.push(
      `Unstable: only ${failing.succeeded} of ${failing.attempts} resumes came to an end or a pause. ` +
        'Look at `holdfast threads --status failed` and --status active for what they fail at.',
    )
  }
  return warnings
}

function countStatuses(all: readonly ThreadSummary[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { status } of all) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

function summarize(sorted: readonly number[]) {
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0
  const total = sorted.reduce((sum, one) => sum + one, 0)
  return {
    entries: sorted.length,
    total,
    mean: sorted.length === 0 ? 0 : Math.round(total / sorted.length),
    p50: at(0.5),
    p95: at(0.95),
    max: sorted.at(-1) ?? 0,
  }
}

export interface StatsReport {
  readonly branches: number
  readonly threads: number
  readonly statuses: Readonly<Record<string, number>>
  readonly entries: number
  readonly claimed: number
  readonly overdue: number
  readonly queue: QueueAge
  readonly sample: Omit<RunSample, 'bytes'> & { readonly bytes: ReturnType<typeof summarize> }
  readonly processes: Processes | null
  readonly warnings: readonly string[]
}
