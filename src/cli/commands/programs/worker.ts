import type { Holdfast, WorkerEvent, WorkerOptions } from '../../../index.js'
import { type Command, type Options, text } from '../../command.js'
import { usageError } from '../../cli-error.js'
import { EXIT } from '../../exit-codes.js'
import { cannotListen, LAST_PORT } from '../../input/listen-address.js'
import { loadServed } from '../../input/load-served.js'
import { clean, type Output } from '../../screen/output.js'
import { describeSweep } from '../../screen/sweep-report.js'
import { describeEvent } from '../../screen/run-report.js'
import { paintStatus } from '../threads/threads.js'
import { briefDuration, parseCount, parseDuration } from '../../screen/times.js'

/** Runs whatever is due of a module's programs, until SIGTERM or Ctrl-C. */
export const run: Command = async (context, [file = ''], options) => {
  const makePrograms = await loadServed(context, file)
  const { output, signal } = context
  const settings = readWorkerOptions(options)
  const health = readHealth(text(options, 'health'))
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
  const served = health && (await serveHealth(hf, worker, health))
  if (served) output.note(`Health: http://${health?.host ?? 'localhost'}:${served.port}/live and /ready`)
  if (output.json) output.jsonLine({ type: 'ready', pid: process.pid, ...(served ? { healthPort: served.port } : {}) })
  await worker.done()
  await served?.close()
  output.note('Stopped: all threads are released.')
  return EXIT.ok
}

interface Address {
  readonly host?: string
  readonly port: number
}

/** `:8080` is every address of this machine, as in `docker run -p`; `127.0.0.1:8080` only that one. */
export function readHealth(given: string | undefined): Address | undefined {
  if (given === undefined) return undefined
  const [, host = '', port = ''] = /^(?:(\[[\da-f:]+\]|[\w.-]*):)?(\d{1,5})$/i.exec(given) ?? []
  if (port === '' || Number(port) > LAST_PORT) {
    throw usageError(`--health ${JSON.stringify(given)} is not an address.`, 'Write :8080 or 127.0.0.1:8080.')
  }
  return { port: Number(port), ...(host === '' ? {} : { host: host.replace(/^\[|\]$/g, '') }) }
}

async function serveHealth(hf: Holdfast, worker: ReturnType<Holdfast['worker']>, address: Address) {
  const server = await import('../../../server/index.js')
  try {
    return await server.serveHealth(hf, worker, address)
  } catch (error) {
    await worker.stop()
    throw cannotListen(error, address.host ?? '', address.port, '--health')
  }
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
      return `${log} released`
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
