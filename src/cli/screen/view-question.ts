import type { OpenPause } from '../../index.js'
import { confirm } from './ask.js'
import { CliError, usageError } from '../cli-error.js'
import type { CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { cleanLines, toJson } from './output.js'
import { breakLines } from './table.js'

/** How much of a question lists show: someone who names a longer one may not have seen all of it. */
const LISTED = 400

/** A question as it is listed. What is cut says so. */
export function listQuestion(question: unknown): string {
  const text = typeof question === 'string' ? question : toJson(question, false)
  return text.length > LISTED ? `${text.slice(0, LISTED)}… (cut: ${text.length} characters in all)` : text
}

/** All of a question, on as many lines as it takes. */
export function wholeQuestion({ question, refused }: Pick<OpenPause, 'question' | 'refused'>): string {
  const text = typeof question === 'string' ? cleanLines(question) : toJson(question, true)
  return refused === undefined ? text : `${text}\n\nThe last answer was not taken: ${cleanLines(refused.reason)}`
}

/**
 * Lets nobody answer what they were not shown: a person at a terminal sees all of it, page by page if necessary, and a
 * script names the question by its id, which is the hash of what is asked.
 */
export async function lookAtQuestion(
  context: CommandContext,
  question: OpenPause,
  how: {
    /** The thread, as it was typed. */
    readonly thread: string
    /** It was named by its id. */
    readonly named: boolean
    /** --yes: whoever says so has seen it. */
    readonly yes: boolean
    /** What a person is asked then; left out, nothing. */
    readonly ask?: string
  },
): Promise<void> {
  // Nothing is known here about one that is closed; the library says what happened to it.
  if (question.kind === undefined) return
  const { output } = context
  if (context.interactive) {
    await show(context, question, !how.yes)
    if (how.yes || how.ask === undefined || (await confirm(how.ask))) return
    throw new CliError('cancelled', 'Nothing was done.', { exitCode: EXIT.interrupted })
  }
  if (how.yes) return
  const look = `Look at it with \`holdfast show ${how.thread}\`${output.json ? ' --json' : ''}`
  if (!how.named) {
    throw usageError(
      `Nobody has been shown question ${question.id} of thread ${how.thread}.`,
      `${look}, then name it: ${question.id}. Or pass --yes to answer whatever is asked.`,
    )
  }
  const { length } = wholeQuestion(question)
  if (length <= LISTED) return
  throw usageError(
    `Question ${question.id} has ${length} characters, more than lists show.`,
    `${look}, read all of it, then repeat this with --yes.`,
  )
}

async function show({ output }: CommandContext, question: OpenPause, paged: boolean): Promise<void> {
  const { columns, rows } = output.size
  const lines = breakLines(wholeQuestion(question), Math.max(20, columns - 1))
  // Below a page stands the prompt, which takes a few lines itself.
  const most = Math.max(5, rows - 6)
  const pages = paged ? Math.ceil(lines.length / most) : 1
  for (let page = 0; page < pages; page++) {
    for (const line of pages === 1 ? lines : lines.slice(page * most, (page + 1) * most)) output.line(line)
    if (page === pages - 1) return
    if (await confirm(`Page ${page + 1} of ${pages}. Show the next?`)) continue
    throw new CliError('cancelled', 'Nothing was done: the question was not read to its end.', {
      exitCode: EXIT.interrupted,
    })
  }
}
