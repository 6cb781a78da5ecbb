import type { ArchivedPart } from '../../../data.js'
import { usageError } from '../../cli-error.js'
import type { Command } from '../../command.js'
import { EXIT } from '../../exit-codes.js'
import { openWithArchive } from '../../input/open-archive.js'
import { formatThreadId, parseThreadId } from '../../input/thread-id.js'
import { clean, toJson } from '../../screen/output.js'
import { ago, formatBytes } from '../../screen/times.js'

/** Lists what is archived, checks it, or shows an archived thread without restoring it. */
export const run: Command = async (context, [id], options) => {
  const { output } = context
  const thread = id === undefined ? undefined : parseThreadId(id)
  if (options['show'] === true && thread === undefined)
    throw usageError('--show needs a thread.', 'Name one that `holdfast archives` lists.')
  const hf = await openWithArchive(context, options)
  if (options['show'] === true && thread !== undefined) {
    const look = await hf.archive.look(thread)
    const branches = []
    for (const { branch, status, checkpoint } of (await look.threads({ thread })).threads) {
      const [newest] = await look.inspect(thread, { branch }).history({ limit: 1, all: true })
      const facts = newest && (await look.inspect(thread, { branch }).look(newest.id).facts())
      branches.push({ branch, status, checkpoint, state: facts?.state ?? null })
    }
    await look.close()
    if (output.json) output.document({ thread: formatThreadId(thread), branches })
    else
      for (const { branch, status, state } of branches)
        output.line(`${output.paint('dim', `${branch} ${status}`)}\n${toJson(state, true)}`)
    return
  }
  const parts = await hf.archive.list(thread)
  const check = options['verify'] === true ? await hf.archive.verify(thread) : undefined
  if (output.json) output.document({ archived: parts.map(describePart), ...(check ? { check } : {}) })
  else {
    await output.table(
      ['thread', 'branch', 'kind', 'entries', 'bytes', 'archived'],
      parts.map((part) => [
        formatThreadId(part.thread),
        part.branch,
        part.kind,
        `${part.first}-${part.last}`,
        formatBytes(part.bytes),
        ago(part.archivedAt),
      ]),
      { whole: ['thread'] },
    )
    for (const problem of check?.problems ?? []) output.line(`${output.paint('red', 'damaged')} ${clean(problem)}`)
    if (check?.ok) output.line(`${output.paint('green', 'ok')} ${check.files} files, ${check.entries} entries`)
  }
  return check?.ok === false ? EXIT.corrupt : EXIT.ok
}

/** For programs: with the thread's id in the form that commands take. */
export function describePart({ thread, ...part }: ArchivedPart): Readonly<Record<string, unknown>> {
  return { thread: formatThreadId(thread), ...part }
}
