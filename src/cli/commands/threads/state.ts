import { type Command, text } from '../../command.js'
import { findCheckpoint } from '../../input/find-checkpoint.js'
import { findThread } from '../../input/find-thread.js'
import { formatThreadId } from '../../input/thread-id.js'
import { toJson } from '../../screen/output.js'

/** The program's state, now or at a checkpoint. */
export const run: Command = async (context, [id = ''], options) => {
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const checkpoint = await findCheckpoint(hf, summary, text(options, 'at') ?? 'head')
  const facts = await hf.inspect(summary.thread).look(checkpoint).facts()
  if (output.json)
    output.document({ thread: formatThreadId(summary.thread), checkpoint, at: facts.at, state: facts.state })
  else output.line(toJson(facts.state, true))
}
