import type { BulkRun } from '../../../types.js'
import { usageError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { EXIT, exitCodeOf } from '../../exit-codes.js'
import { findThread } from '../../input/find-thread.js'
import { chooseProgram, loadPrograms } from '../../input/load-programs.js'
import { clean } from '../../screen/output.js'
import { Progress } from '../../screen/progress.js'
import { readContext } from './run.js'
import { reportOutcome } from '../../screen/run-report.js'
import { formatThreadId } from '../../input/thread-id.js'
import { threadQuery } from '../threads/threads.js'
import { parseCount } from '../../screen/times.js'

/** Goes on with one thread where it stopped, or with all threads of a program that the filters let through. */
export const run: Command = async (context, [file = '', id], options) => {
  const all = options['all'] === true
  if ((id === undefined) === !all) throw usageError('Name a thread, or pass --all.', 'See `holdfast resume --help`.')
  const programs = await loadPrograms(context, file)
  const hf = await context.open({ runs: true })
  const { output, signal } = context
  const given = { ...(await readContext(context, options)), signal }
  if (id !== undefined) {
    const summary = await findThread(hf, id, text(options, 'branch'))
    const program = chooseProgram(programs, undefined, summary)
    const outcome = await hf.thread(program, summary.thread, { branch: summary.branch }).run(given)
    reportOutcome(context, outcome)
    return exitCodeOf(outcome)
  }
  const program = chooseProgram(programs, text(options, 'program'))
  const concurrency = parseCount(text(options, 'concurrency') ?? '16', '--concurrency')
  const { program: _, ...filters } = options
  let progress: Progress | undefined
  const runs = await hf.resume(program, threadQuery(filters), {
    ...given,
    concurrency,
    onRun: (run, total) => {
      progress ??= new Progress(output, 'resuming', total)
      if (!wasLeft(run, signal)) progress.step()
    },
  })
  progress?.end()
  // Those that Ctrl-C stopped, or kept from beginning, have not failed.
  const ended = runs.filter((run) => !wasLeft(run, signal))
  const left = runs.length - ended.length
  const results = ended.map(({ thread, branch, outcome, error }) => ({
    thread: formatThreadId(thread),
    branch,
    status: outcome?.status ?? 'error',
    error: error instanceof Error ? error.message : outcome?.status === 'failed' ? outcome.error.message : undefined,
  }))
  if (output.json) output.document({ resumed: results, ...(left > 0 ? { left } : {}) })
  else if (runs.length === 0) output.note('No thread fits.')
  else if (results.length > 0) {
    await output.table(
      ['thread', 'branch', 'status', 'error'],
      results.map(({ thread, branch, status, error }) => [thread, branch, status, clean(error ?? '')]),
      { whole: ['thread', 'branch', 'status'] },
    )
  }
  if (left > 0) {
    output.note(
      `Interrupted: ${left} of ${runs.length} threads are left. Run the same command again to continue with them.`,
    )
  }
  if (signal.aborted) return EXIT.interrupted
  return results.some(({ status }) => status === 'error' || status === 'failed') ? EXIT.failed : EXIT.ok
}

function wasLeft({ error }: BulkRun, signal: AbortSignal): boolean {
  return signal.aborted && error instanceof Error && error.name === 'AbortError'
}
