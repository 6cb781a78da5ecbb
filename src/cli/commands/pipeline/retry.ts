import type { Command } from '../../command.js'
import { drawProgress, openFrom, printReport } from './report.js'

/** Processes the failed documents again, and only those. */
export const run: Command = async (context, [file = ''], options) => {
  const { output, signal } = context
  const { name, pipeline } = await openFrom(context, file, options, true)
  return printReport(output, name, await pipeline.retryFailed({ signal, onProgress: drawProgress(output) }))
}
