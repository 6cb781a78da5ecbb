import { CliError } from './cli-error.js'
import type { Command } from './command.js'
import { toJson } from './output.js'
import { parseScope } from './thread-id.js'

/** One item of the shared memory. */
export const run: Command = async (context, [scope = '', collection = '', key = '']) => {
  const where = parseScope(scope)
  const hf = await context.open()
  const { output } = context
  const item = await hf.store.scope(where).collection(collection).get(key)
  if (item === undefined) {
    throw new CliError('not-found', `There is no item "${key}" in ${scope} ${collection}.`, {
      remedy: `List them: holdfast store list ${scope} ${collection}`,
    })
  }
  if (output.json) output.document(item)
  else output.line(toJson(item.value, true))
}
