import type { CheckpointFacts, Outcome, RunEvent, Waiting } from '../../index.js'
import type { CommandContext } from '../context.js'
import { brief, clean, cleanLines, type Output, shellQuote, toJson } from './output.js'
import { formatThreadId } from '../input/thread-id.js'
import { paintStatus } from '../commands/threads/threads.js'
import { ago, briefDuration } from './times.js'
import { listQuestion } from './view-question.js'

export function describeRun(run: NonNullable<CheckpointFacts['run']>): string {
  const steps = run.count > 0 ? `, ${run.count} super-steps` : ''
  return `${run.number} ${run.status}${steps}, began ${ago(new Date(run.startedAt))} (${run.id})`
}

export function describeWait(wait: Waiting): string {
  if (wait.kind === 'sleep') return `${wait.step}: until ${new Date(wait.until).toISOString()}`
  if (wait.kind === 'child') return `${wait.step}: thread ${formatThreadId(wait.thread)} (${wait.program})`
  const until = wait.until === undefined ? '' : ` until ${new Date(wait.until).toISOString()}`
  return `${wait.step}: signal "${wait.name}"${until}`
}

/** How a run ended, for a person; with --json the outcome itself. */
export function reportOutcome({ output, where: flags }: CommandContext, outcome: Outcome<unknown, unknown>): void {
  if (output.json) {
    output.document({ id: formatThreadId(outcome.thread), ...outcome })
    return
  }
  const id = formatThreadId(outcome.thread)
  const where = outcome.branch === 'main' ? id : `${id} (${outcome.branch})`
  const words = `${shellQuote(id)}${outcome.branch === 'main' ? '' : ` --branch ${shellQuote(outcome.branch)}`}`
  output.note(
    `${output.paint(paintStatus(outcome.status), outcome.status)} ${clean(where)} ${outcome.checkpoint ?? ''}`,
  )
  if (outcome.message) output.note(clean(outcome.message))
  if (outcome.input === 'queued') output.note('The input is recorded and waits for its turn.')
  if (outcome.input === 'refused') output.note('The input was not taken: give it again when this is over.')
  switch (outcome.status) {
    case 'completed':
      output.line(describeOutput(output, outcome.output))
      break
    case 'limited':
      output.note(clean(`${outcome.reason} It takes new input.`))
      output.line(describeOutput(output, outcome.output))
      break
    case 'paused':
      for (const pause of outcome.pauses)
        output.line(`${pause.id}\t${pause.kind}\t${clean(listQuestion(pause.question))}`)
      for (const wait of outcome.waiting) output.line(`waits\t${describeWait(wait)}`)
      if (outcome.pauses.length > 0) output.note(`Answer with: holdfast answer ${words}${flags}`)
      break
    case 'failed':
      output.note(`${clean(`${outcome.error.name}: ${outcome.error.message}`)}`)
      if (outcome.canResume) output.note(`Continue with: holdfast resume <file> ${words}${flags}`)
      break
    case 'incompatible':
      output.note(clean(`${outcome.reason} ${outcome.remedy}`))
      break
    case 'pruned':
      output.note(`This input was taken earlier; how its run ended (${outcome.ended ?? 'unknown'}) is no longer kept.`)
      break
    case 'busy':
      output.note(`It is run by ${clean(outcome.owner)}, for another ${briefDuration(outcome.remainingMs)} at least.`)
      break
  }
}

/** Text as it is, though nothing that a terminal would obey; anything else as JSON. */
function describeOutput(output: Output, value: unknown): string {
  if (typeof value !== 'string') return toJson(value ?? null, true)
  return output.terminal ? cleanLines(value) : value
}

/** One line for an event; undefined for those that a person need not see. */
export function describeEvent(output: Output, event: RunEvent): string | undefined {
  switch (event.type) {
    case 'run': {
      const why = event.error ? ` ${clean(event.error.message)}` : ''
      return `run     ${output.paint(paintStatus(event.status), event.status)}${why}`
    }
    case 'step': {
      const took = event.ms === undefined ? '' : ` ${Math.round(event.ms)}ms`
      const why = event.error ? ` ${clean(event.error.message)}` : ''
      return `step    ${clean(event.step)} ${output.paint(paintStatus(event.status), event.status)}${took}${why}`
    }
    case 'retry':
      return `retry   ${clean(event.step)} attempt ${event.attempt} in ${briefDuration(event.inMs)}: ${clean(event.error.message)}`
    case 'pause':
      if (event.refused !== undefined)
        return `pause   ${event.pause} answer refused: ${clean(brief(event.refused, 200))}`
      return `pause   ${event.pause} ${event.kind}: ${clean(brief(event.question, 200))}`
    case 'tool-call':
      return `call    ${clean(event.tool)} ${clean(brief(event.input, 200))}`
    case 'tool-result':
      return `result  ${clean(event.tool)} ${clean(brief(event.output, 200))}`
    case 'answer':
      return `answer  ${event.pause}${event.by ? ` by ${clean(event.by)}` : ''}${event.expired ? ' (expired)' : ''}`
    case 'usage':
      return `usage   ${clean(event.step)} ${clean(brief(event.usage, 200))}`
    case 'custom':
      return `custom  ${clean(event.step)} ${clean(brief(event.value, 200))}`
    default:
      return undefined
  }
}
