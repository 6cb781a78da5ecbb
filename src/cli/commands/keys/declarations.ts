import type { CommandDeclaration } from '../../command.js'

/** The keys that encrypt a store. */
export const keyCommands: readonly CommandDeclaration[] = [
  {
    usage: 'keys status',
    summary: 'show which data keys a tenant has, and under which master key each is wrapped',
    examples: ['holdfast keys status --config holdfast.config.mjs --tenant acme'],
    load: () => import('./status.js'),
  },
  {
    usage: 'keys rotate',
    summary: 'create a new data key for what is written from now on; older data stays readable',
    options: [['--all-tenants', 'for every tenant of the store']],
    load: () => import('./rotate.js'),
  },
  {
    usage: 'keys rewrap',
    summary: 'wrap all data keys under the current master key, so that older master keys can be dropped',
    options: [['--all-tenants', 'for every tenant of the store']],
    load: () => import('./rewrap.js'),
  },
]
