import type { Cell, Output } from '../../screen/output.js'
import type { StatsReport } from './stats.js'
import { paintStatus } from '../threads/threads.js'
import { formatBytes } from '../../screen/times.js'

type Field = readonly [name: string, value: Cell | undefined]

/** For people: what the index knows, what a look at the entries shows, and what processes have counted. */
export async function printStats(output: Output, report: StatsReport): Promise<void> {
  printThreads(output, report)
  printSample(output, report)
  if (report.processes) await printProcesses(output, report.processes)
  for (const warning of report.warnings) output.line(`\n${output.paint('yellow', 'warning')} ${warning}`)
}

function printThreads(output: Output, report: StatsReport): void {
  const { statuses, overdue, queue } = report
  const counts = Object.entries(statuses).map(
    ([status, count]): Field => [`  ${status}`, [`${count}${share(count, report.branches)}`, paintStatus(status)]],
  )
  output.fields([
    ['threads', `${report.threads} (${report.branches} branches)`],
    ...counts,
    ['entries', String(report.entries)],
    ['claimed now', String(report.claimed)],
    [
      'waiting for a worker',
      `${queue.due}${queue.more ? '+' : ''}${queue.due > 0 ? `, ${formatMs(queue.oldestMs)}` : ''}`,
    ],
    ['overdue', overdue > 0 ? [`${overdue}: no worker picks them up`, 'yellow'] : '0'],
  ])
}

function printSample(output: Output, { sample }: StatsReport): void {
  const { runs, resumes, bytes, tokens } = sample
  title(output, `from the entries of the ${sample.threads} branches that changed last`)
  const completed = `${runs.completed} completed${share(runs.completed, runs.started)}`
  output.fields([
    ['runs', `${runs.started} started, ${completed}, ${runs.failed} failed, ${runs.paused} paused`],
    ['resumes', resumed(resumes.attempts, resumes.succeeded)],
    ['takeovers', String(resumes.takeovers)],
    ['checkpoint size', `p50 ${formatBytes(bytes.p50)}, p95 ${formatBytes(bytes.p95)}, max ${formatBytes(bytes.max)}`],
    ['tokens', tokens.spent === 0 ? undefined : `${tokens.spent} spent, ${tokens.savedByResuming} saved by resuming`],
    ['unreadable', sample.unreadable > 0 ? [String(sample.unreadable), 'red'] : undefined],
  ])
}

/** Names of `holdfast.…` histograms, and how their values are written. */
const MEASURED: readonly (readonly [name: string, what: string, format: (value: number) => string])[] = [
  ['checkpoint.save.duration', 'save', formatMs],
  ['checkpoint.load.duration', 'load', formatMs],
  ['checkpoint.bytes', 'checkpoint', formatBytes],
  ['takeover.duration', 'takeover', formatMs],
  ['queue.duration', 'wait for a worker', formatMs],
]

async function printProcesses(output: Output, processes: NonNullable<StatsReport['processes']>): Promise<void> {
  const { counters, histograms, models, rates } = processes
  const of = (name: string) => counters[`holdfast.${name}`] ?? 0
  const some = (name: string): Cell | undefined => (of(name) > 0 ? grouped(of(name)) : undefined)
  const bad = (name: string): Cell | undefined => (of(name) > 0 ? [grouped(of(name)), 'yellow'] : undefined)
  const started = of('runs.started')
  const part = (name: string, what: string) => `${grouped(of(name))} ${what}${share(of(name), started)}`
  const runs = [
    `${grouped(started)} started`,
    part('runs.completed', 'completed'),
    part('runs.failed', 'failed'),
    part('runs.paused', 'paused'),
    ...(of('runs.cancelled') > 0 ? [part('runs.cancelled', 'cancelled')] : []),
  ]
  const saved = rates.tokensSaved === null ? '' : ` (${Math.round(rates.tokensSaved * 100)} %)`
  const spent = of('tokens.input') + of('tokens.output')
  const who = processes.processes === 1 ? '1 process' : `${processes.processes} processes`
  title(output, `as counted by ${who} in the last day`)
  output.fields([
    ['runs', runs.join(', ')],
    ['resumes', resumed(of('resume.attempts'), of('resume.succeeded'))],
    ['takeovers', grouped(of('takeovers'))],
    ['leases lost', bad('leases.lost')],
    ['conflicts', grouped(of('conflicts'))],
    ['retries', some('retries')],
    ['unknown effects', bad('effects.unknown')],
    [
      'tokens',
      spent === 0
        ? undefined
        : `${grouped(of('tokens.input'))} in (${grouped(of('tokens.cached'))} cached), ${grouped(of('tokens.output'))} out`,
    ],
    ['saved by resuming', of('tokens.saved') === 0 ? undefined : [`${grouped(of('tokens.saved'))}${saved}`, 'green']],
  ])
  const rows = MEASURED.flatMap(([name, what, format]) => {
    const found = histograms[`holdfast.${name}`]
    if (found === undefined || found.count === 0) return []
    const most = (value: number | null) => (value === null || !Number.isFinite(value) ? 'more' : `≤ ${format(value)}`)
    return [[what, grouped(found.count), most(found.p50), most(found.p99), format(found.mean)]]
  })
  if (rows.length > 0) {
    output.line()
    await output.table(['measured', 'times', 'p50', 'p99', 'mean'], rows)
  }
  const named = Object.entries(models).sort(([, a], [, b]) => b.input + b.output - a.input - a.output)
  if (named.length === 0) return
  output.line()
  await output.table(
    ['model', 'tokens in', 'cached', 'tokens out'],
    named.map(([name, one]) => [name, grouped(one.input), grouped(one.cached), grouped(one.output)]),
  )
}

function title(output: Output, text: string): void {
  output.line(`\n${output.paint('dim', text)}`)
}

function resumed(attempts: number, succeeded: number): string {
  return `${attempts} attempts, ${succeeded} succeeded${share(succeeded, attempts)}`
}

function share(part: number, of: number): string {
  // A run may pause several times: more than there were is no share of them.
  return of === 0 || part > of ? '' : ` (${Math.round((part / of) * 100)} %)`
}

function grouped(count: number): string {
  return count.toLocaleString('en')
}

function formatMs(ms: number): string {
  if (ms >= 10_000) return `${Math.round(ms / 1000)} s`
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`
  return ms >= 10 ? `${Math.round(ms)} ms` : `${Number(ms.toPrecision(2))} ms`
}
