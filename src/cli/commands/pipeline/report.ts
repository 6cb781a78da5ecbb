import type { OpenPipeline, PipelineProgress, PipelineReport } from '../../../pipeline/index.js'
import { type Command, type Options, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { loadPipeline } from '../../input/load-programs.js'
import { clean, type Output } from '../../screen/output.js'
import { briefDuration } from '../../screen/times.js'

const WIDTH = 24
const MOST_SHOWN = 20
const CODES = {
  completed: EXIT.ok,
  paused: EXIT.paused,
  cancelled: EXIT.failed,
  stopped: EXIT.interrupted,
} as const satisfies Record<PipelineReport['status'], number>

/** The pipeline of a module, on the store. */
export async function openFrom(
  context: CommandContext,
  file: string,
  options: Options,
  create: boolean,
): Promise<{ readonly name: string; readonly pipeline: OpenPipeline }> {
  const declared = await loadPipeline(context, file, text(options, 'pipeline'))
  const hf = await context.open({ create, runs: create })
  const { openPipeline } = await import('../../../pipeline/index.js')
  return { name: declared.plan.name, pipeline: openPipeline(hf, declared) }
}

/** A line that is redrawn, on a terminal. */
export function drawProgress(output: Output): (progress: PipelineProgress) => void {
  let shownAt = 0
  return (progress) => {
    const now = Date.now()
    if (!output.terminal || now - shownAt < 80) return
    shownAt = now
    const { found, successful, skipped, elsewhere, failed, chunks, chunksPerSecond, isScanned, remainingMs } = progress
    const ended = successful + skipped + elsewhere + failed
    const filled = isScanned && found > 0 ? Math.round((ended / found) * WIDTH) : 0
    const bar = isScanned ? `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ` : ''
    const left = remainingMs === undefined ? '' : `, ${briefDuration(remainingMs)} left`
    const wrong = failed > 0 ? `, ${output.paint('red', `${failed} failed`)}` : ''
    const documents = `${ended}/${found}${isScanned ? '' : '+'} documents`
    output.live(`${bar}${documents}, ${chunks} chunks, ${Math.round(chunksPerSecond)}/s${left}${wrong}`)
  }
}

/** What a run did, and the exit code that says whether all is well. */
export function printReport(output: Output, name: string, report: PipelineReport): number {
  if (output.terminal) output.live('')
  const code = report.failed > 0 ? EXIT.failed : CODES[report.status]
  if (output.json) {
    output.document({ pipeline: name, ...report })
    return code
  }
  const { successful, resumed, skipped, elsewhere, failed, removed, expired, chunks, tokens, ms } = report
  output.fields([
    ['pipeline', name],
    ['status', [report.status, report.status === 'completed' ? 'green' : 'yellow']],
    ['successful', `${successful}${resumed > 0 ? `, ${resumed} of them resumed` : ''}`],
    ['skipped', String(skipped)],
    ['by others', elsewhere > 0 ? String(elsewhere) : undefined],
    ['failed', failed > 0 ? [String(failed), 'red'] : '0'],
    ['removed', removed > 0 ? String(removed) : undefined],
    ['expired', expired > 0 ? `${expired} histories` : undefined],
    ['chunks', String(chunks)],
    ['tokens', tokens > 0 ? String(tokens) : undefined],
    ['took', briefDuration(ms)],
  ])
  for (const { document, error } of report.failures.slice(0, MOST_SHOWN)) {
    output.line(`${output.paint('red', 'failed')} ${clean(document)}: ${clean(error.message)}`)
  }
  if (failed > MOST_SHOWN) output.note(`… and ${failed - MOST_SHOWN} more; --json lists all.`)
  for (const [word, names] of [
    ['empty', report.empty],
    ['duplicate id', report.duplicates],
    ['gone from the source', report.missing],
  ] as const) {
    if (names.length > 0)
      output.note(`${word}: ${names.slice(0, 10).map(clean).join(', ')}${names.length > 10 ? ', …' : ''}`)
  }
  if (report.missing.length > 0) output.note('Pass --remove-missing to remove their rows.')
  return code
}

/** A command that changes whether a pipeline may run. */
export function control(word: 'pause' | 'resume' | 'cancel'): Command {
  return async (context, [file = ''], options) => {
    const { name, pipeline } = await openFrom(context, file, options, false)
    const by = text(options, 'by')
    await pipeline[word](by === undefined ? {} : { by })
    const { status } = await pipeline.status()
    if (context.output.json) context.output.document({ pipeline: name, status })
    else context.output.line(`${name} ${status}`)
  }
}
