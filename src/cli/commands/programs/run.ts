import { randomUUID } from 'node:crypto'
import type { RunOptions, ThreadSummary } from '../../../index.js'
import { usageError } from '../../cli-error.js'
import { type Command, type Options, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { exitCodeOf } from '../../exit-codes.js'
import { readJson } from '../../input/json-input.js'
import { chooseProgram, loadPrograms } from '../../input/load-programs.js'
import { didYouMean, findSimilarNames } from '../../../core/wording/similar.js'
import { shellQuote } from '../../screen/output.js'
import { parseCount } from '../../screen/times.js'
import { describeEvent, reportOutcome } from '../../screen/run-report.js'
import { formatThreadId, parseThreadId } from '../../input/thread-id.js'

/** Runs a thread of a program in this process until it completes, pauses or fails. */
export const run: Command = async (context, [file = ''], options) => {
  const policies = readPolicies(options)
  const programs = await loadPrograms(context, file)
  const input = await readInput(context, options)
  const hf = await context.open({ create: true, runs: true })
  const { output, signal } = context
  const thread = parseThreadId(text(options, 'thread') ?? `run-${randomUUID().slice(0, 8)}`)
  const branch = text(options, 'branch') ?? 'main'
  const [known] = (await hf.threads({ thread, branch, limit: 1 })).threads
  const program = chooseProgram(programs, text(options, 'program'), known as ThreadSummary | undefined)
  if (text(options, 'thread') === undefined) output.note(`thread ${formatThreadId(thread)}`)

  const key = text(options, 'key')
  const stream = hf.thread(program, thread, { branch }).stream({
    ...input,
    ...(key === undefined ? {} : { key }),
    ...policies,
    ...(await readContext(context, options)),
    signal,
  })
  const showEvents = options['events'] === true
  let outcome: Awaited<typeof stream.outcome>
  try {
    for await (const event of stream) {
      if (output.json && showEvents) output.jsonLine(event)
      else if (!output.json && (showEvents || output.terminal)) {
        const line = describeEvent(output, event)
        if (line !== undefined) output.note(output.paint('dim', line))
      }
    }
    outcome = await stream.outcome
  } catch (error) {
    const id = shellQuote(formatThreadId(thread))
    if (signal.aborted) {
      output.note(`Interrupted. Continue with: holdfast run ${shellQuote(file)} --thread ${id}${context.where}`)
    }
    throw error
  }
  if (output.json && showEvents) output.jsonLine({ type: 'outcome', id: formatThreadId(outcome.thread), ...outcome })
  else reportOutcome(context, outcome)
  return exitCodeOf(outcome)
}

const FREQUENCIES = ['step', 'boundary', 'none']

/** How the run behaves. A policy that is mistyped is refused before the module is loaded. */
function readPolicies(options: Options): Pick<RunOptions, 'busy' | 'frequency' | 'expect' | 'onCorrupt'> {
  const busy = oneOf(options, 'busy', '--busy', ['reject', 'queue', 'interrupt'])
  const expect = oneOf(options, 'expect', '--expect', ['existing'])
  const onCorrupt = oneOf(options, 'onCorrupt', '--on-corrupt', ['fail', 'lastGood', 'restart'])
  const given = text(options, 'frequency')
  const every = given !== undefined && /^\d+$/.test(given) ? parseCount(given, '--frequency') : undefined
  const named = every === undefined ? oneOf(options, 'frequency', '--frequency', FREQUENCIES) : undefined
  const frequency = every === undefined ? named : { every }
  const policies = { busy, expect, onCorrupt, frequency }
  return Object.fromEntries(Object.entries(policies).filter(([, value]) => value !== undefined))
}

function oneOf(options: Options, name: string, flag: string, known: readonly string[]): string | undefined {
  const given = text(options, name)
  if (given === undefined || known.includes(given)) return given
  const all = known.length === 1 ? known[0] : `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`
  const more = flag === '--frequency' ? ', or a number of steps' : ''
  throw usageError(`${flag} is "${given}"${didYouMean(findSimilarNames(given, known))}`, `Use ${all}${more}.`)
}

/** What the run works on. */
export async function readInput(context: CommandContext, options: Options): Promise<{ readonly input?: unknown }> {
  const json = text(options, 'input')
  const plain = text(options, 'text')
  if (json !== undefined && plain !== undefined) throw usageError('--input and --text are both given.', 'Pass one.')
  if (plain !== undefined) return { input: plain }
  return json === undefined ? {} : { input: await readJson(context, json, '--input') }
}

/** What the run brings along and does not keep. */
export async function readContext(context: CommandContext, options: Options): Promise<{ readonly context?: unknown }> {
  const json = text(options, 'context')
  return json === undefined ? {} : { context: await readJson(context, json, '--context') }
}
