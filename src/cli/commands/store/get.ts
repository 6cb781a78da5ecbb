import { CliError } from '../../cli-error.js'
import type { Command } from '../../command.js'
import { toJson } from '../../screen/output.js'
import { didYouMean, findSimilarNames } from '../../../core/wording/similar.js'
import { parseScope } from '../../input/thread-id.js'

/** One item of the shared memory. */
export const run: Command = async (context, [scope = '', collection = '', key = '']) => {
  const where = parseScope(scope)
  const hf = await context.open()
  const { output } = context
  const items = hf.store.scope(where).collection(collection)
  const item = await items.get(key)
  if (item === undefined) {
    const keys = (await items.search({ limit: 1000 })).items.map((one) => one.key)
    const similar = didYouMean(findSimilarNames(key, keys))
    throw new CliError('not-found', `There is no item "${key}" in ${scope} ${collection}${similar}`, {
      remedy: `List them: holdfast store list ${scope} ${collection}`,
    })
  }
  if (output.json) output.document(item)
  else output.line(toJson(item.value, true))
}
