import type { Command } from '../../command.js'
import { clean } from '../../screen/output.js'
import { openFrom } from './report.js'

/** What is recorded for a pipeline. */
export const run: Command = async (context, [file = ''], options) => {
  const { output } = context
  const { name, pipeline } = await openFrom(context, file, options, false)
  const status = await pipeline.status()
  const failures = await pipeline.failures()
  if (output.json) return output.document({ pipeline: name, ...status, failures })
  output.fields([
    ['pipeline', name],
    ['status', status.status],
    ['documents', String(status.documents)],
    ['done', String(status.done)],
    ['failed', status.failed > 0 ? [String(status.failed), 'red'] : '0'],
    ['chunks', String(status.chunks)],
    ['tokens', status.tokens > 0 ? String(status.tokens) : undefined],
  ])
  for (const { document, error } of failures) output.line(`failed ${clean(document)}: ${clean(error.message)}`)
}
