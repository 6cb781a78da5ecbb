import { type Command, text } from '../../command.js'
import { findThread } from '../../input/find-thread.js'
import { describeRun, describeWait } from '../../screen/run-report.js'
import { clean, toJson } from '../../screen/output.js'
import { drawTree, treeOf } from '../../screen/thread-tree.js'
import { formatThreadId } from '../../input/thread-id.js'
import { describePart } from '../data/archives.js'
import { describeProgram, describeThread, paintStatus } from './threads.js'
import { ago } from '../../screen/times.js'
import { wholeQuestion } from '../../screen/view-question.js'

/** Everything about one branch of a thread. */
export const run: Command = async (context, [id = ''], options) => {
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const view = hf.inspect(summary.thread, { branch: summary.branch })
  const [newest] = await view.history({ events: false, limit: 1, all: true })
  const facts = newest && (await view.look(newest.id).facts())
  const past = hf.hasArchive ? await hf.archive.list(summary.thread) : []
  const tree = await treeOf(hf, summary)
  const archived = past.filter(({ branch }) => branch === summary.branch)
  if (output.json) {
    const parts = archived.length > 0 ? { archived: archived.map(describePart) } : {}
    const children = tree.children.map((child) => describeThread(child.summary))
    const family = children.length > 0 ? { children } : {}
    output.document({ ...facts, ...describeThread(summary), checkpoint: newest?.id ?? null, ...family, ...parts })
    return
  }
  const date = (when: Date | null | undefined) => (when ? `${when.toISOString()} (${ago(when)})` : undefined)
  const labels = Object.entries(summary.metadata).filter(([name]) => !name.startsWith('holdfast.'))
  output.fields([
    ['thread', formatThreadId(summary.thread)],
    ['branch', summary.branch],
    ['parent', summary.parent && formatThreadId(summary.parent)],
    ['status', [summary.status, paintStatus(summary.status)]],
    ['program', describeProgram(summary)],
    ['run', facts?.run && describeRun(facts.run)],
    ['error', facts?.run?.error && [`${facts.run.error.name}: ${facts.run.error.message}`, 'red']],
    ['waits for', facts?.run?.waiting?.map(describeWait).join('; ')],
    ['claimed by', summary.claimedBy ?? undefined],
    ['entries', String(summary.entries)],
    ['archived', archived.map(({ first, last }) => `${first}-${last}`).join(', ')],
    ['checkpoint', newest?.id],
    ['created', date(summary.createdAt)],
    ['updated', date(summary.updatedAt)],
    ['wakes', date(summary.wakeAt)],
    ['expires', date(summary.expiresAt)],
    ['tags', summary.tags.join(', ')],
    ['metadata', labels.map(([name, value]) => `${name}=${value}`).join(', ')],
  ])
  if (tree.children.length > 0) {
    output.line(`\n${output.paint('dim', 'threads that it began')}`)
    for (const [label, child] of drawTree(tree).slice(1)) {
      output.line(`${clean(label)}  ${output.paint(paintStatus(child.status), child.status)}`)
    }
  }
  for (const pause of facts?.pauses ?? []) {
    output.line(`\n${output.paint('yellow', 'question')} ${pause.id} (${pause.kind}, ${ago(pause.askedAt)})`)
    output.line(wholeQuestion(pause).replaceAll(/^/gm, '  '))
  }
  if (facts) output.line(`\n${output.paint('dim', 'state')}\n${toJson(facts.state, true)}`)
}
