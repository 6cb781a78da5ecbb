import { readFile } from 'node:fs/promises'
import { CliError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { formatThreadId, parseThreadId } from '../../input/thread-id.js'

/** Makes a thread of an exported file. */
export const run: Command = async (context, [file = ''], options) => {
  const content = await readFile(context.path(file), 'utf8').catch(() => {
    throw new CliError('not-found', `There is no file ${file}.`, { remedy: 'Check the path.' })
  })
  const as = text(options, 'as')
  const hf = await context.open({ create: true })
  const { thread, branches, entries } = await hf.import(content, as === undefined ? {} : { thread: parseThreadId(as) })
  const { output } = context
  const id = formatThreadId(thread)
  if (output.json) output.document({ thread: id, branches, entries })
  else output.line(`${id}: ${branches.length} ${branches.length === 1 ? 'branch' : 'branches'}, ${entries} entries`)
}
