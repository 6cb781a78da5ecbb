import type { Holdfast } from '../../../index.js'
import type { SpaceName } from '../../../store/index.js'
import type { Command } from '../../command.js'
import { brief } from '../../screen/output.js'
import { listItems } from './search.js'
import { formatParts, parseScope } from '../../input/thread-id.js'

/** The collections of a tenant or a scope, or the items of a collection. */
export const run: Command = async (context, [scope, collection], options) => {
  if (scope !== undefined && collection !== undefined) {
    return listItems(context, scope, collection, options)
  }
  const hf = await context.open()
  const { output } = context
  const found =
    scope === undefined
      ? await listAll(hf.store)
      : (await hf.store.scope(parseScope(scope)).collections()).map((name) => ({
          scope: parseScope(scope),
          collection: name,
        }))
  if (output.json) output.document({ collections: found })
  else if (found.length === 0) output.note('Nothing is stored.')
  else {
    await output.table(
      ['scope', 'collection'],
      found.map((one) => [formatParts(one.scope), brief(one.collection, 200)]),
    )
  }
}

async function listAll(store: Holdfast['store']): Promise<readonly SpaceName[]> {
  const found: SpaceName[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await store.collections({ limit: 1000, ...(cursor ? { cursor } : {}) })
    found.push(...page.collections)
    cursor = page.cursor
    if (cursor === undefined) return found
  }
}
