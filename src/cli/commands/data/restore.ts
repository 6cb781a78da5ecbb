import type { Command } from '../../command.js'
import { openWithArchive } from '../../input/open-archive.js'
import { formatThreadId, parseThreadId } from '../../input/thread-id.js'

/** Brings an archived thread back, as it was. */
export const run: Command = async (context, [id = ''], options) => {
  const thread = parseThreadId(id)
  const hf = await openWithArchive(context, options, { create: true })
  const { output } = context
  const { branches, entries } = await hf.archive.restore(thread)
  const removed = options['remove'] === true ? (await hf.archive.remove(thread)).removed : 0
  if (output.json) output.document({ thread: formatThreadId(thread), branches, entries, removed })
  else
    output.line(
      `${formatThreadId(thread)}: ${branches.length} ${branches.length === 1 ? 'branch' : 'branches'}, ${entries} entries`,
    )
}
