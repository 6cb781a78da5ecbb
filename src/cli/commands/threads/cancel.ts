import { type Command, text } from '../../command.js'
import { findThread } from '../../input/find-thread.js'
import { formatThreadId } from '../../input/thread-id.js'

/** Ends the run that is in progress or waits. */
export const run: Command = async (context, [id = ''], options) => {
  const hf = await context.open()
  const { output } = context
  const { thread, branch, entries } = await findThread(hf, id, text(options, 'branch'))
  const [reason, by] = [text(options, 'reason'), text(options, 'by')]
  await hf
    .inspect(thread, { branch })
    .cancel({ ...(reason === undefined ? {} : { reason }), ...(by === undefined ? {} : { by }) })
  const after = await findThread(hf, id, branch)
  const cancelled = after.entries > entries
  if (output.json) output.document({ thread: formatThreadId(thread), branch, cancelled, status: after.status })
  else output.line(cancelled ? `cancelled; now ${after.status}` : `nothing to cancel: ${after.status}`)
}
