import { CliError } from '../../cli-error.js'
import { type Command, list } from '../../command.js'
import { EXIT } from '../../exit-codes.js'
import { clean } from '../../screen/output.js'

/** Brings threads over that the official savers of LangGraph.js wrote. */
export const run: Command = async (context, [database = ''], options) => {
  const { importLangGraph } = await loadAdapter()
  const hf = await context.open({ create: true })
  const { output, signal } = context
  const threads = list(options, 'thread')
  const report = await importLangGraph(database, hf, {
    signal,
    onProgress: ({ threads: done, checkpoints }) => {
      if (output.terminal) output.live(`importing ${done} threads, ${checkpoints} checkpoints`)
    },
    ...(threads.length > 0 ? { threads } : {}),
  })
  if (output.terminal) output.live('')
  if (output.json) output.document(report)
  else {
    for (const { thread, message } of report.failed)
      output.line(`${output.paint('red', 'not imported')} ${clean(thread)}: ${clean(message)}`)
    for (const note of report.notes) output.line(`${output.paint('yellow', 'left out')} ${clean(note)}`)
    const { threads: count, checkpoints, writes, same } = report
    output.line(`${count} threads, ${checkpoints} checkpoints, ${writes} pending writes; ${same} checkpoints were here`)
    if (!report.complete) output.note('Stopped. Run the same command again to continue from here.')
  }
  if (!report.complete) return EXIT.interrupted
  return report.failed.length > 0 ? EXIT.failed : EXIT.ok
}

// Its classes extend LangGraph's, which is an optional peer: only who imports from it needs it.
async function loadAdapter() {
  try {
    return await import('../../../adapters/langgraph/index.js')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new CliError('missing-dependency', 'Reading what LangGraph.js wrote needs its packages.', {
      remedy: 'Run `npm install @langchain/core @langchain/langgraph-checkpoint`.',
    })
  }
}
