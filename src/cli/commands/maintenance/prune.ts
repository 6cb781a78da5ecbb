import { CliError, usageError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { EXIT } from '../../exit-codes.js'
import { findCheckpoint } from '../../input/find-checkpoint.js'
import { findThread } from '../../input/find-thread.js'
import { formatThreadId } from '../../input/thread-id.js'
import { clean } from '../../screen/output.js'

/** Removes the entries of a branch that lie before a checkpoint. The checkpoint itself and what follows stay. */
export const run: Command = async (context, [id = ''], options) => {
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const { thread, branch } = summary
  const checkpoint = await findCheckpoint(hf, summary, text(options, 'before') ?? 'head')
  const at = hf.inspect(thread).look(checkpoint)
  if (at.branch !== branch) {
    throw usageError(`${checkpoint} is a checkpoint of branch ${at.branch}, not of ${branch}.`, 'Pass --branch.')
  }
  const { seq } = await at.fold()
  const name = `the entries of ${formatThreadId(thread)} (${branch}) before ${seq}`
  if (options['yes'] !== true) {
    if (!context.interactive)
      throw usageError(`Removing ${name} can't be undone.`, 'Pass --yes to do it without a question.')
    const { confirm } = await import('../../screen/ask.js')
    if (!(await confirm(`Remove ${name}? This can't be undone.`)))
      throw new CliError('cancelled', 'Nothing was removed.', { exitCode: EXIT.interrupted })
  }
  const { removed } = await hf.prune(thread, seq, { branch, evenTagged: options['evenTagged'] === true })
  if (output.json) {
    output.document({ id: formatThreadId(thread), thread, branch, checkpoint, removed })
    return
  }
  output.line(`Removed ${removed} ${removed === 1 ? 'entry' : 'entries'} of ${clean(formatThreadId(thread))}.`)
  if (removed === 0 && seq > 0) output.note('There was nothing older, or a tag keeps it: --even-tagged.')
  else if (removed > 0) output.note('Large values that nothing points to go with the next sweep.')
}
