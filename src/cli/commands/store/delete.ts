import { CliError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { clean } from '../../screen/output.js'
import { parseScope } from '../../input/thread-id.js'

/** Removes one item of the shared memory. */
export const run: Command = async (context, [scope = '', collection = '', key = ''], options) => {
  const where = parseScope(scope)
  const hf = await context.open()
  const { output } = context
  const items = hf.store.scope(where).collection(collection)
  const found = await items.get(key)
  if (found === undefined) throw new CliError('not-found', `There is no item "${key}" in ${scope} ${collection}.`)
  const expect = text(options, 'expect')
  await items.delete(key, expect === undefined ? {} : { expect })
  if (output.json) output.document({ key, deleted: true })
  else output.line(`deleted ${clean(key)}`)
}
