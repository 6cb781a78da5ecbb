import type { WorkerEvent, WorkerOptions } from '../../index.js'
import { type Command, type Options, text } from '../command.js'
import { EXIT } from '../exit-codes.js'
import { loadServed } from '../input/load-served.js'
import { clean, type Output } from '../screen/output.js'
import { describeSweep } from '../screen/sweep-report.js'
import { describeEvent } from '../screen/run-report.js'
import { paintStatus } from './threads.js'
import { briefDuration, parseCount, parseDuration } from '../screen/times.js'

/** Runs whatever is due of a module's programs, until SIGTERM or Ctrl-C. */
export const run: Command = async (context, [file = ''], options) => {
  const makePrograms = await loadServed(context, file)
  const { output, signal } = context
  const settings = readWorkerOptions(options)
  const hf = await context.open({ create: true, runs: true })
  const programs = await makePrograms(hf)
  const worker = hf.worker({
    ...settings,
    programs,
    // The command has its own way of being interrupted, which also ends everything else.
    handleSignals: false,
    onEvent: (event) => tell(output, event, options['events'] === true),
  })
  // Ctrl-C may have come while the store was opened.
  if (signal.aborted) void worker.stop()
  else signal.addEventListener('abort', () => void worker.stop(), { once: true })
  output.note(`Working on ${programs.map(({ plan }) => `${plan.name} ${plan.version}`).join(', ')}. Ctrl-C stops.`)
  output.note(hf.retention)
  if (output.json) output.jsonLine({ type: 'ready', pid: process.pid })
  await worker.done()
  output.note('Stopped: every thread is let go.')
  return EXIT.ok
}

/** The settings of a worker that its options name. */
export function readWorkerOptions(options: Options): Partial<WorkerOptions> {
  const duration = (name: string, option: string) => {
    const given = text(options, name)
    return given === undefined ? undefined : parseDuration(given, option)
  }
  const concurrency = text(options, 'concurrency')
  const lease = duration('lease', '--lease')
  const pollMs = duration('poll', '--poll')
  const graceMs = duration('grace', '--grace')
  const name = text(options, 'name')
  return {
    ...(concurrency === undefined ? {} : { concurrency: parseCount(concurrency, '--concurrency') }),
    ...(lease === undefined ? {} : { leaseMs: lease }),
    ...(pollMs === undefined ? {} : { pollMs }),
    ...(graceMs === undefined ? {} : { graceMs }),
    ...(name === undefined ? {} : { name }),
  }
}

function tell(output: Output, event: WorkerEvent, all: boolean): void {
  if (event.type === 'event' && !all) return
  if (output.json) {
    const { error } = event as { readonly error?: unknown }
    output.jsonLine(error instanceof Error ? { ...event, error: { name: error.name, message: error.message } } : event)
    return
  }
  const line = describe(output, event)
  if (line !== undefined) output.line(line)
}

function describe(output: Output, event: WorkerEvent): string | undefined {
  const log = clean(event.log ?? '')
  switch (event.type) {
    case 'taken':
      return `${log} resumed after ${briefDuration(event.idleMs)}`
    case 'ended':
      return `${log} ${output.paint(paintStatus(event.outcome.status), event.outcome.status)}`
    case 'stopped':
      return `${log} let go`
    case 'skipped':
      return `${log} ${output.paint('yellow', 'skipped')}: ${clean(event.reason)}`
    case 'error':
      return `${log} ${output.paint('red', 'error')}: ${clean(event.error instanceof Error ? event.error.message : String(event.error))}`
    case 'swept':
      return describeSweep(event.swept)
    case 'scheduled':
      return describeStarted(output, event)
    case 'event': {
      const line = describeEvent(output, event.event)
      return line === undefined ? undefined : `${log} ${line}`
    }
  }
}

function describeStarted(output: Output, event: WorkerEvent & { readonly type: 'scheduled' }): string {
  const { schedule, threads, skipped, error } = event
  const name = `schedule ${clean(schedule)}`
  if (error !== undefined) return `${name} ${output.paint('red', 'failed')}: ${clean(error)}`
  const missed = skipped === 0 ? '' : `, ${skipped} missed`
  return `${name} started ${threads.length}${missed}`
}
