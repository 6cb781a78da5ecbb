import { type Command, text } from '../../command.js'
import { drawProgress, openFrom, printReport } from './report.js'
import { parseDuration } from '../../screen/times.js'

/** Processes what is new, changed or unfinished, until it is done or Ctrl-C. */
export const run: Command = async (context, [file = ''], options) => {
  const given = text(options, 'lease')
  const lease = given === undefined ? {} : { leaseMs: parseDuration(given, '--lease') }
  const { output, signal } = context
  const { name, pipeline } = await openFrom(context, file, options, true)
  const report = await pipeline.run({
    signal,
    ...lease,
    retryFailed: options['retryFailed'] === true,
    removeMissing: options['removeMissing'] === true,
    onProgress: drawProgress(output),
  })
  return printReport(output, name, report)
}
