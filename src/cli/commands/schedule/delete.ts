import { CliError } from '../../cli-error.js'
import type { Command } from '../../command.js'
import { clean } from '../../screen/output.js'

/** Removes a schedule. What it started stays. */
export const run: Command = async (context, [name = '']) => {
  const hf = await context.open()
  if (!(await hf.schedules.delete(name))) {
    throw new CliError('not-found', `There is no schedule "${name}".`, { remedy: 'List them: holdfast schedule list.' })
  }
  if (context.output.json) context.output.document({ schedule: name, deleted: true })
  else context.output.line(`deleted ${clean(name)}`)
}
