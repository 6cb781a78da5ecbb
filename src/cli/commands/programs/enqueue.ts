import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { randomUUID } from 'node:crypto'
import type { BulkEnqueued, BulkInput } from '../../../types.js'
import { CliError, usageError } from '../../cli-error.js'
import { type Command, type Options, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { EXIT, exitCodeFor } from '../../exit-codes.js'
import { chooseProgram, loadPrograms, type Program } from '../../input/load-programs.js'
import { formatThreadId, parseThreadId } from '../../input/thread-id.js'
import { clean } from '../../screen/output.js'
import { Progress } from '../../screen/progress.js'
import { parseTime } from '../../screen/times.js'
import { readContext, readInput } from './run.js'

/** So many lines are read before they are written. */
const AT_ONCE = 1000
const MOST_SHOWN = 20

interface Failure {
  readonly line?: number
  readonly thread?: string
  readonly code: string
  readonly error: string
}

/** Leaves input for a worker: one, or many from JSON lines. */
export const run: Command = async (context, [file = ''], options) => {
  const lines = text(options, 'lines')
  const alone = ['thread', 'input', 'text', 'key'].filter((name) => options[name] !== undefined)
  if (lines !== undefined && alone.length > 0) {
    throw usageError(`--${alone[0]} and --lines are both given.`, 'With --lines each line says it for itself.')
  }
  const turn = readTurn(options)
  const programs = await loadPrograms(context, file)
  return lines === undefined ? leaveOne(context, programs, options, turn) : leaveLines(context, programs, options, turn)
}

async function leaveOne(
  context: CommandContext,
  programs: readonly Program[],
  options: Options,
  turn: Turn,
): Promise<number> {
  const given = await readInput(context, options)
  if (given.input === undefined) {
    throw usageError('There is no input to leave.', 'Pass --input, --text, or many with --lines.')
  }
  const [key, branch] = [text(options, 'key'), text(options, 'branch')]
  const hf = await context.open({ create: true })
  const thread = parseThreadId(text(options, 'thread') ?? `run-${randomUUID().slice(0, 8)}`)
  const [known] = (await hf.threads({ thread, branch: branch ?? 'main', limit: 1 })).threads
  const program = chooseProgram(programs, text(options, 'program'), known)
  const left = await hf.thread(program, thread, branch === undefined ? {} : { branch }).enqueue(given.input as never, {
    ...(key === undefined ? {} : { key }),
    ...(await readContext(context, options)),
    ...turn,
  })
  const { output } = context
  const id = formatThreadId(thread)
  if (output.json) output.document({ thread: id, ...left })
  else output.line(`${id} ${left.input}${left.run === undefined ? '' : ` as ${left.run}`}`)
  return EXIT.ok
}

async function leaveLines(
  context: CommandContext,
  programs: readonly Program[],
  options: Options,
  turn: Turn,
): Promise<number> {
  const from = text(options, 'lines') as string
  const { output, signal } = context
  const wanted = text(options, 'program')
  const branch = text(options, 'branch')
  const common = {
    ...(branch === undefined ? {} : { branch }),
    ...(await readContext(context, options)),
    ...turn,
  }
  const { stream, size } = await openLines(context, from)
  const hf = await context.open({ create: true })
  const progress = new Progress(output, 'leaving', 1)
  const failures: Failure[] = []
  let [line, bytes, queued, known] = [0, 0, 0, 0]
  let waiting: { readonly item: BulkInput; readonly line: number }[] = []
  const note = (result: BulkEnqueued, at: number) => {
    // How many there will be is guessed from how much of the file is read.
    progress.step(size === undefined ? undefined : Math.round((line * size) / Math.max(1, bytes)))
    if (result.enqueued) {
      if (result.enqueued.input === 'queued') queued++
      else known++
    } else {
      failures.push({ line: at, thread: formatThreadId(result.thread), ...describe(result.error) })
    }
  }
  const leave = async () => {
    const some = waiting
    waiting = []
    const items = some.map(({ item }) => item)
    await hf.enqueue(items, { onEnqueued: (result, i) => note(result, some[i]?.line ?? 0) })
  }
  for await (const one of createInterface({ input: stream, crlfDelay: Infinity })) {
    if (signal.aborted) break
    line++
    bytes += Buffer.byteLength(one) + 1
    if (one.trim() === '') continue
    try {
      waiting.push({ item: { ...common, ...readLine(one, programs, wanted) }, line })
    } catch (error) {
      failures.push({ line, ...describe(error) })
    }
    if (waiting.length >= AT_ONCE) await leave()
  }
  if (!signal.aborted) await leave()
  progress.end()
  failures.sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
  if (output.json) output.document({ queued, known, failed: failures })
  else {
    output.line(`${queued} queued${known > 0 ? `, ${known} known` : ''}, ${failures.length} failed`)
    for (const { line: at, thread, error } of failures.slice(0, MOST_SHOWN)) {
      output.error(clean(`line ${at}${thread === undefined ? '' : ` (${thread})`}: ${error}`))
    }
    if (failures.length > MOST_SHOWN) output.error(`and ${failures.length - MOST_SHOWN} more; --json lists all`)
  }
  if (signal.aborted) {
    output.note('Interrupted. The same lines can be left again: those with a key are not taken twice.')
    return EXIT.interrupted
  }
  if (failures.length === 0) return EXIT.ok
  return failures.length === queued + known + failures.length ? exitCodeFor(failures[0]?.code ?? '') : EXIT.failed
}

const FIELDS = [
  'thread',
  'input',
  'key',
  'runAt',
  'priority',
  'limitKey',
  'busy',
  'initial',
  'context',
  'branch',
  'program',
]

/** `{ "thread": "t-1", "input": … }` */
function readLine(line: string, programs: readonly Program[], wanted: string | undefined): BulkInput {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (error) {
    throw usageError(`It is not JSON: ${(error as Error).message}.`, 'Write one object in each line.')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw usageError('It is not an object.', 'Write {"thread": "t-1", "input": …} in each line.')
  }
  const unknown = Object.keys(value).find((name) => !FIELDS.includes(name))
  if (unknown !== undefined) throw usageError(`"${unknown}" is not a known field.`, `Use one of: ${FIELDS.join(', ')}.`)
  const { thread, program, runAt, ...rest } = value as Record<string, unknown>
  if (thread === undefined) throw usageError('"thread" is missing.', 'Name the thread that the input is for.')
  return {
    ...rest,
    input: rest['input'],
    thread: (typeof thread === 'string' ? parseThreadId(thread) : thread) as BulkInput['thread'],
    program: chooseProgram(programs, typeof program === 'string' ? program : wanted),
    ...(runAt === undefined
      ? {}
      : { runAt: typeof runAt === 'string' ? parseTime(runAt, 'runAt') : (runAt as number) }),
  }
}

async function openLines(context: CommandContext, from: string) {
  if (from === '-') return { stream: context.stdin, size: undefined }
  const path = context.path(from)
  try {
    const { size } = await stat(path)
    return { stream: createReadStream(path), size }
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : (error as Error).message
    throw new CliError('not-found', `The file ${from} for --lines ${reason}.`, { remedy: 'Check its path.' })
  }
}

type Turn = Pick<BulkInput, 'runAt' | 'priority' | 'limitKey'>

/** When its turn comes. */
function readTurn(options: Options): Turn {
  const [runAt, priority, limitKey] = [text(options, 'runAt'), text(options, 'priority'), text(options, 'limitKey')]
  if (priority !== undefined && !/^-?\d{1,4}$/.test(priority)) {
    throw usageError(`--priority is ${JSON.stringify(priority)}.`, 'Pass a whole number from -1000 to 1000.')
  }
  return {
    ...(runAt === undefined ? {} : { runAt: parseTime(runAt, '--run-at') }),
    ...(priority === undefined ? {} : { priority: Number(priority) }),
    ...(limitKey === undefined ? {} : { limitKey }),
  }
}

function describe(error: unknown): Pick<Failure, 'code' | 'error'> {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  return {
    code: typeof code === 'string' ? code : 'error',
    error: typeof message === 'string' ? message : String(error),
  }
}
