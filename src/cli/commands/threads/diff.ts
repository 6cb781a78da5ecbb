import type { Difference } from '../../../types.js'
import { type Command, text } from '../../command.js'
import { findCheckpoint } from '../../input/find-checkpoint.js'
import { findThread } from '../../input/find-thread.js'
import { brief, clean } from '../../screen/output.js'
import { formatThreadId } from '../../input/thread-id.js'

/** What changed in the state between two checkpoints, on any branches. */
export const run: Command = async (context, [id = '', from = '~1', to = 'head'], options) => {
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const [before, after] = await Promise.all([findCheckpoint(hf, summary, from), findCheckpoint(hf, summary, to)])
  const differences = await hf.inspect(summary.thread).look(before).diff(after)
  if (output.json) {
    output.document({ thread: formatThreadId(summary.thread), from: before, to: after, differences })
    return
  }
  output.note(`${before} -> ${after}: ${differences.length} ${differences.length === 1 ? 'difference' : 'differences'}`)
  for (const difference of differences) {
    const [sign, paint] = signOf(difference)
    const value = (of: unknown) => clean(brief(of, 160))
    const change =
      sign === '~'
        ? `${value(difference.before)} -> ${value(difference.after)}`
        : value('before' in difference ? difference.before : difference.after)
    output.line(`${output.paint(paint, sign)} ${clean(difference.path)}: ${change}`)
  }
}

function signOf(difference: Difference): readonly [sign: '+' | '-' | '~', paint: 'green' | 'red' | 'yellow'] {
  if (!('before' in difference)) return ['+', 'green']
  return 'after' in difference ? ['~', 'yellow'] : ['-', 'red']
}
