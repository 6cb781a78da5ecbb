import type { Filter } from '../../../store/index.js'
import { usageError } from '../../cli-error.js'
import { type Command, type Options, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { readJson } from '../../input/json-input.js'
import { brief } from '../../screen/output.js'
import { parseScope } from '../../input/thread-id.js'
import { parseCount } from '../../screen/times.js'

/** The items of a collection that a filter lets through. */
export const run: Command = (context, [scope = '', collection = ''], options) =>
  listItems(context, scope, collection, options)

export async function listItems(
  context: CommandContext,
  scope: string,
  collection: string,
  options: Options,
): Promise<void> {
  const where = parseScope(scope)
  const given = text(options, 'filter')
  const filter = given === undefined ? undefined : ((await readJson(context, given, '--filter')) as Filter)
  const prefix = text(options, 'prefix')
  const orderBy = text(options, 'orderBy')
  const cursor = text(options, 'cursor')
  const direction = options['desc'] === true ? { direction: 'desc' as const } : {}
  if (options['desc'] === true && orderBy === undefined && cursor !== undefined) {
    throw usageError('--cursor belongs to another order.', 'Pass the same options as for the page before.')
  }
  const hf = await context.open()
  const { output } = context
  const page = await hf.store
    .scope(where)
    .collection(collection)
    .search({
      limit: parseCount(text(options, 'limit') ?? '100', '--limit'),
      ...direction,
      ...(filter === undefined ? {} : { filter }),
      ...(prefix === undefined ? {} : { prefix }),
      ...(orderBy === undefined ? {} : { orderBy }),
      ...(cursor === undefined ? {} : { cursor }),
    })
  if (output.json) output.document(page)
  else if (page.items.length === 0) output.note('No items.')
  else {
    await output.table(
      ['key', 'value', 'updated'],
      page.items.map(({ key, value, updatedAt }) => [key, brief(value, 200), updatedAt.toISOString()]),
    )
  }
  if (!output.json && page.cursor !== undefined) output.note(`More follow: --cursor ${page.cursor}`)
}
