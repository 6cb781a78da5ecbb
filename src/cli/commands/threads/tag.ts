import { type Command, text } from '../../command.js'
import { findCheckpoint } from '../../input/find-checkpoint.js'
import { findThread } from '../../input/find-thread.js'
import { clean } from '../../screen/output.js'
import { formatThreadId } from '../../input/thread-id.js'

/** Names a checkpoint: it can be found by the name, and pruning keeps it. */
export const run: Command = async (context, [id = '', name = ''], options) => {
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const checkpoint = await findCheckpoint(hf, summary, text(options, 'at') ?? 'head')
  const at = await hf.inspect(summary.thread).look(checkpoint).fold()
  // A checkpoint of another branch is tagged where it is.
  const branch = hf.inspect(summary.thread).look(checkpoint).branch
  const log = await hf.log(summary.thread, { branch })
  await log.tag(name, at.seq)
  if (output.json) output.document({ thread: formatThreadId(summary.thread), tag: name, checkpoint })
  else output.line(`${clean(name)} -> ${checkpoint}`)
}
