import type { Holdfast, ThreadSummary } from '../index.js'
import { type Command, text } from './command.js'
import type { Cell, Output } from './output.js'
import { Progress } from './progress.js'
import { type RunSample, sampleRuns } from './sample-runs.js'
import { paintStatus, threadQuery } from './threads.js'
import { formatBytes, parseCount } from './times.js'
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
  const [all, newest] = await Promise.all([listAll(hf), newestOf(hf, sampled)])
  const progress = new Progress(output, 'reading', newest.length)
  const sample = await sampleRuns(hf, newest, () => progress.step())
  progress.end()
  const processes = await readProcesses(hf)
  const warnings = judge(sample)
  const report = {
    branches: all.length,
    threads: new Set(all.map(({ thread }) => JSON.stringify(thread))).size,
    statuses: countStatuses(all),
    entries: all.reduce((sum, { entries }) => sum + entries, 0),
    claimed: all.filter(({ claimedBy }) => claimedBy !== null).length,
    overdue: all.filter(
      ({ wakeAt, claimedBy }) => claimedBy === null && wakeAt && wakeAt.getTime() < Date.now() - 30_000,
    ).length,
    sample: { ...sample, bytes: summarize(sample.bytes) },
    processes,
    warnings,
  }
  if (output.json) output.document(report)
  else print(output, report)
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
  const { mergeMetrics, quantileOf } = await import('../index.js')
  const all = await hf.metrics()
  if (all.length === 0) return null
  const { counters, histograms, models, processes } = mergeMetrics(all)
  const latencies = Object.entries(histograms).map(([name, histogram]) => {
    const count = histogram.counts.reduce((sum, one) => sum + one, 0)
    const [p50, p99] = [quantileOf(histogram, 0.5) ?? null, quantileOf(histogram, 0.99) ?? null]
    return [name, { count, mean: count === 0 ? 0 : histogram.sum / count, p50, p99 }] as const
  })
  return { processes, counters, histograms: Object.fromEntries(latencies), models }
}

function judge({ runs, resumes }: RunSample): readonly string[] {
  const warnings: string[] = []
  const begun = runs.started
  if (resumes.takeovers >= ENOUGH / 2 && resumes.takeovers > begun * MOST_TAKEOVERS_PER_RUN) {
    warnings.push(
      `Unstable: ${resumes.takeovers} takeovers in ${begun} runs. Workers die, are killed, or lose their leases: ` +
        'look at memory limits, deployments that do not wait for SIGTERM, event loops that block longer than the lease.',
    )
  }
  if (resumes.attempts >= ENOUGH && resumes.succeeded < resumes.attempts * LEAST_RESUMES_SUCCEEDED) {
    warnings.push(
      `Unstable: only ${resumes.succeeded} of ${resumes.attempts} resumes came to an end or a pause. ` +
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

interface Report {
  readonly branches: number
  readonly threads: number
  readonly statuses: Readonly<Record<string, number>>
  readonly entries: number
  readonly claimed: number
  readonly overdue: number
  readonly sample: Omit<RunSample, 'bytes'> & { readonly bytes: ReturnType<typeof summarize> }
  readonly processes: Awaited<ReturnType<typeof readProcesses>>
  readonly warnings: readonly string[]
}

function print(output: Output, report: Report): void {
  const { sample, processes } = report
  const { runs, resumes, bytes, tokens } = sample
  const share = (part: number, of: number) => (of === 0 ? '' : ` (${Math.round((part / of) * 100)} %)`)
  const counts = Object.entries(report.statuses).map(([status, count]): readonly [string, Cell] => [
    `  ${status}`,
    [`${count}${share(count, report.branches)}`, paintStatus(status)],
  ])
  output.fields([
    ['threads', `${report.threads} (${report.branches} branches)`],
    ...counts,
    ['entries', String(report.entries)],
    ['claimed now', String(report.claimed)],
    ['overdue', report.overdue > 0 ? [`${report.overdue}: no worker takes them up`, 'yellow'] : '0'],
  ])
  output.line(`\n${output.paint('dim', `from the entries of the ${sample.threads} branches that changed last`)}`)
  output.fields([
    [
      'runs',
      `${runs.started} started, ${runs.completed} completed${share(runs.completed, runs.started)}, ${runs.failed} failed, ${runs.paused} paused`,
    ],
    [
      'resumes',
      `${resumes.attempts} attempts, ${resumes.succeeded} succeeded${share(resumes.succeeded, resumes.attempts)}`,
    ],
    ['takeovers', String(resumes.takeovers)],
    ['checkpoint size', `p50 ${formatBytes(bytes.p50)}, p95 ${formatBytes(bytes.p95)}, max ${formatBytes(bytes.max)}`],
    ['tokens', tokens.spent === 0 ? undefined : `${tokens.spent} spent, ${tokens.savedByResuming} saved by resuming`],
    ['unreadable', sample.unreadable > 0 ? [String(sample.unreadable), 'red'] : undefined],
  ])
  if (processes) {
    output.line(`\n${output.paint('dim', `as counted by ${processes.processes} processes`)}`)
    output.fields([
      ...Object.entries(processes.counters).map(([name, count]) => [name, String(count)] as const),
      ...Object.entries(processes.histograms).map(
        ([name, { count, p50, p99 }]) => [name, `${count}, p50 up to ${p50}, p99 up to ${p99}`] as const,
      ),
    ])
  }
  for (const warning of report.warnings) output.line(`\n${output.paint('yellow', 'warning')} ${warning}`)
}
