import { type Command, text } from '../../command.js'
import { EXIT } from '../../exit-codes.js'
import { findCheckpoint } from '../../input/find-checkpoint.js'
import { findThread } from '../../input/find-thread.js'
import { describeEvent } from '../../screen/run-report.js'
import { parseCount } from '../../screen/times.js'

/** What happens on a thread, as it happens, until it rests; with --follow until Ctrl-C. */
export const run: Command = async (context, [id = ''], options) => {
  const hf = await context.open()
  const { output, signal } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const view = hf.inspect(summary.thread, { branch: summary.branch })
  const since = text(options, 'since')
  const lines = parseCount(text(options, 'lines') ?? '10', '--lines')
  const after =
    since === undefined
      ? (await view.history({ limit: lines + 1, all: true }))[lines]?.id
      : await findCheckpoint(hf, summary, since)
  const events = view.events({
    untilRest: options['follow'] !== true,
    signal,
    ...(after === undefined ? {} : { after }),
  })
  try {
    for await (const event of events) {
      if (output.json) output.jsonLine(event)
      else {
        const line = describeEvent(output, event)
        if (line !== undefined) output.line(line)
      }
    }
  } catch (error) {
    // Ctrl-C is how one leaves what has no other end. Without --follow it would look like a thread that rests.
    if (!signal.aborted || options['follow'] !== true) throw error
  }
  return EXIT.ok
}
