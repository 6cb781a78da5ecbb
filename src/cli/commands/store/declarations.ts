import type { CommandDeclaration, CommandOption } from '../../command.js'

const ITEM_FILTERS: readonly CommandOption[] = [
  ['--prefix <text>', 'only keys that start with this'],
  ['--limit <n>', 'how many (default 100)'],
  ['--cursor <cursor>', 'from the previous page'],
]

/** The memory that threads share. */
export const storeCommands: readonly CommandDeclaration[] = [
  {
    usage: 'store list [scope] [collection]',
    summary: 'list collections, or the items of one',
    options: ITEM_FILTERS,
    examples: ['holdfast store list user=user-42 preferences'],
    load: () => import('./list.js'),
  },
  {
    usage: 'store get <scope> <collection> <key>',
    summary: 'print an item',
    load: () => import('./get.js'),
  },
  {
    usage: 'store put <scope> <collection> <key> <value>',
    summary: 'write an item (value: json, @file or -)',
    options: [
      ['--ttl <duration>', 'how long it lives'],
      ['--expect <version>', 'only if this is the current version; none: only if there is no item'],
    ],
    load: () => import('./put.js'),
  },
  {
    usage: 'store delete <scope> <collection> <key>',
    summary: 'remove an item',
    options: [['--expect <version>', 'only this version']],
    load: () => import('./delete.js'),
  },
  {
    usage: 'store search <scope> <collection>',
    summary: 'list the items that match a filter',
    options: [
      ['--filter <json>', `such as '{"city":"Paris","age":{"gte":18}}'`],
      ['--order-by <field>', 'default: by key'],
      ['--desc', 'in descending order'],
      ...ITEM_FILTERS,
    ],
    load: () => import('./search.js'),
  },
]
