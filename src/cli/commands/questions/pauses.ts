import type { ThreadPause } from '../../../index.js'
import { reportError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { findThread } from '../../input/find-thread.js'
import { brief, clean } from '../../screen/output.js'
import { listQuestion } from '../../screen/view-question.js'
import { formatThreadId } from '../../input/thread-id.js'
import { ago, parseCount } from '../../screen/times.js'

/** The questions that wait for an answer, of one thread or of all. */
export const run: Command = async (context, [id], options) => {
  const hf = await context.open()
  const { output } = context
  const limit = parseCount(text(options, 'limit') ?? '100', '--limit')
  const thread = id === undefined ? {} : { thread: (await findThread(hf, id, text(options, 'branch'))).thread }
  const found: ThreadPause[] = []
  const unreadable: { readonly threadId: string; readonly branch: string; readonly error: string }[] = []
  let cursor: string | undefined
  do {
    const page = await hf.pauses({ ...thread, limit: 200, ...(cursor ? { cursor } : {}) })
    found.push(...page.pauses)
    for (const { thread: damaged, branch, error } of page.unreadable) {
      unreadable.push({ threadId: formatThreadId(damaged), branch, error: reportError(error, false).message })
    }
    cursor = page.cursor
  } while (cursor !== undefined && found.length < limit)
  const shown = found.slice(0, limit)
  const more = cursor !== undefined || found.length > limit
  if (output.json) {
    const pauses = shown.map((pause) => ({ ...pause, threadId: formatThreadId(pause.thread) }))
    output.document({ pauses, ...(more ? { more } : {}), ...(unreadable.length > 0 ? { unreadable } : {}) })
    return
  }
  for (const { threadId, branch, error } of unreadable) {
    output.note(`${output.paint('red', 'unreadable')} ${threadId} (${branch}): ${clean(error)}`)
  }
  if (shown.length === 0) {
    output.note('No open questions.')
    return
  }
  const onlyMain = output.terminal && shown.every(({ branch }) => branch === 'main')
  await output.table(
    ['thread', 'branch', 'pause', 'kind', 'asked', 'question'],
    shown.map((pause) => [
      formatThreadId(pause.thread),
      onlyMain ? '' : pause.branch,
      pause.id,
      pause.kind,
      output.terminal ? ago(pause.askedAt) : pause.askedAt.toISOString(),
      output.terminal ? brief(pause.question, 120) : listQuestion(pause.question),
    ]),
    { spare: ['kind', 'asked'], whole: ['thread', 'branch', 'pause'] },
  )
  if (more) output.note('There are more: pass --limit.')
}
