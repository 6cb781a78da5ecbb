import { type Command, text } from '../../command.js'
import { findCheckpoint } from '../../input/find-checkpoint.js'
import { findThread } from '../../input/find-thread.js'
import { formatThreadId } from '../../input/thread-id.js'
import { formatBytes } from '../../screen/times.js'
import { openWithArchive } from '../../input/open-archive.js'
import { describePart } from './archives.js'

/** Moves a thread to the archive, or with --before the past of a branch. */
export const run: Command = async (context, [id = ''], options) => {
  const hf = await openWithArchive(context, options)
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const { thread, branch } = summary
  const before = text(options, 'before')
  const keep = options['keep'] === true
  const place = hf.archive.description
  if (before === undefined) {
    const parts = await hf.archive.store(thread, { keep })
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
    const entries = parts.reduce((sum, part) => sum + part.entries, 0)
    if (output.json)
      output.document({ thread: formatThreadId(thread), kept: keep, entries, bytes, parts: parts.map(describePart) })
    else
      output.line(
        `${formatThreadId(thread)}: ${entries} entries, ${formatBytes(bytes)} in ${place}${keep ? '; kept' : ''}`,
      )
    return
  }
  const checkpoint = await findCheckpoint(hf, summary, before)
  const seq = Number(/~(\d+)~[0-9a-f]+$/.exec(checkpoint)?.[1])
  const { removed, archived } = await hf.archive.prune(thread, seq, { branch })
  if (output.json)
    output.document({ thread: formatThreadId(thread), branch, removed, parts: archived.map(describePart) })
  else output.line(`${formatThreadId(thread)} (${branch}): ${removed} entries before ${seq} in ${place}`)
}
