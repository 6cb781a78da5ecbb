import type { Holdfast, OpenPause, ThreadSummary } from '../../index.js'
import { CliError, usageError } from '../cli-error.js'
import type { CommandContext } from '../context.js'
import { brief, clean } from '../screen/output.js'
import { formatThreadId } from './thread-id.js'

/** The open question that is meant: by its id, as the only one, or as the person at the terminal chooses. */
export async function findPause(
  context: CommandContext,
  hf: Holdfast,
  { thread, branch }: ThreadSummary,
  id: string | undefined,
): Promise<OpenPause> {
  const name = formatThreadId(thread)
  const open = await hf.inspect(thread, { branch }).pauses()
  if (id !== undefined) {
    const found = open.find((pause) => pause.id === id)
    if (found) return found
    // Left to the library to say: it knows who answered, and when.
    if (/^p-[0-9a-f]{20}$/.test(id)) return { id } as OpenPause
    throw new CliError('not-found', `Thread ${name} (${branch}) asks no question "${id}".`, {
      remedy: open.length > 0 ? `Open: ${open.map((pause) => pause.id).join(', ')}.` : 'It has no open questions.',
    })
  }
  const [first] = open
  if (first === undefined) throw await noQuestions(hf, thread, branch)
  if (open.length === 1) return first
  if (!context.interactive) {
    throw usageError(
      `Thread ${name} has ${open.length} open questions.`,
      `Name one: ${open.map((pause) => pause.id).join(', ')}.`,
    )
  }
  const { choose } = await import('../screen/ask.js')
  return choose(
    'Which question?',
    open.map((pause) => ({ value: pause, label: clean(brief(pause.question, 80)), hint: pause.kind })),
  )
}

/** A fork may ask where its parent does not: whoever was told of a question has perhaps not been told of the branch. */
async function noQuestions(hf: Holdfast, thread: ThreadSummary['thread'], branch: string): Promise<CliError> {
  const { pauses } = await hf.pauses({ thread, limit: 200 })
  const branches = [...new Set(pauses.map((pause) => pause.branch))]
  return new CliError('not-found', `Thread ${formatThreadId(thread)} (${branch}) has no open questions.`, {
    ...(branches.length > 0 ? { remedy: `There are on other branches: pass --branch ${branches.join(' or ')}.` } : {}),
    data: { thread, branch, branches },
  })
}
