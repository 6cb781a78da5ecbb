import { type Command, text } from '../../command.js'
import { EXIT } from '../../exit-codes.js'
import { findThread } from '../../input/find-thread.js'
import { chooseProgram, loadPrograms } from '../../input/load-programs.js'
import { brief, clean } from '../../screen/output.js'
import { formatThreadId } from '../../input/thread-id.js'

/** Goes through the last run from its records and says where today's program would differ. Executes nothing. */
export const run: Command = async (context, [file = '', id = ''], options) => {
  const programs = await loadPrograms(context, file)
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const program = chooseProgram(programs, text(options, 'program'), summary)
  const report = await hf.thread(program, summary.thread, { branch: summary.branch }).replay()
  const { status, steps, difference, message, otherVersions = [] } = report
  if (output.json) output.document({ thread: formatThreadId(summary.thread), ...report })
  else {
    output.line(`${output.paint(status === 'differs' ? 'red' : 'green', status)}: ${steps} recorded steps replayed`)
    if (message !== undefined) output.line(clean(message))
    for (const { graph, stateVersion, steps: some, compared } of otherVersions) {
      output.line(`${some} of state version ${stateVersion} of ${clean(graph)}: compared ${compared}`)
    }
    if (difference) {
      output.line(
        `at ${clean(difference.step)}${difference.checkpoint ? ` (${difference.checkpoint})` : ''}: ${clean(difference.message)}`,
      )
      if (difference.recorded !== undefined) output.line(`  recorded: ${clean(brief(difference.recorded, 400))}`)
      if (difference.now !== undefined) output.line(`  now:      ${clean(brief(difference.now, 400))}`)
    }
  }
  return status === 'differs' ? EXIT.failed : EXIT.ok
}
