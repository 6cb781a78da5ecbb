import type { CommandDeclaration } from '../../command.js'
import { BRANCH } from '../options.js'
import { keyCommands } from '../keys/declarations.js'

/** Checks a store, and removes what is no longer wanted. */
export const maintenanceCommands: readonly CommandDeclaration[] = [
  {
    usage: 'verify [thread]',
    group: 'Maintenance',
    summary: 'check every entry of a thread, or of --all',
    options: [
      ['--all', 'all threads of the tenant'],
      ['--repair', 'rebuild index rows that do not match their logs'],
      ['--anchors <file>…', 'also compare the store with what was anchored there'],
      ['--branch <name>', 'only this branch'],
    ],
    load: () => import('./verify.js'),
  },
  {
    usage: 'erase [thread]',
    group: 'Maintenance',
    summary: 'remove a thread, the memory of a scope or a whole tenant for good, including from the store’s files',
    options: [
      ['--scope <scope>', 'the memory of this scope, such as user=user-42, instead of a thread'],
      ['--everything', 'everything of the tenant that --tenant names'],
      ['--reason <text>', 'kept in the tombstone'],
      ['--no-tombstone', 'leave no trace that it existed, not even its id'],
      [
        '--grace <duration>',
        'spare large values written within this time; 0s if nothing is being written (default 1m)',
      ],
      ['--yes', 'do not ask'],
    ],
    examples: [
      `holdfast erase bf-847 --reason 'asked for by the user'`,
      'holdfast erase --scope user=user-42 --yes',
      'holdfast erase --everything --tenant acme --yes',
    ],
    load: () => import('./erase.js'),
  },
  {
    usage: 'prune <thread>',
    group: 'Maintenance',
    summary: 'remove the older checkpoints of a branch; its newest state and what is tagged stay',
    options: [
      ['--before <checkpoint>', 'remove everything before this: an id, a number, ~10, a tag (default: head)'],
      ['--even-tagged', 'also tagged checkpoints'],
      BRANCH,
      ['--yes', 'do not ask'],
    ],
    examples: ['holdfast prune bf-847 --before ~10', 'holdfast prune bf-847 --yes'],
    load: () => import('./prune.js'),
  },
  ...keyCommands,
  {
    usage: 'sweep',
    group: 'Maintenance',
    summary:
      'remove what the retention policy no longer keeps, as workers do: expired threads, old checkpoints, unused blobs',
    options: [
      ['--dry-run', 'only count what would be removed'],
      [
        '--ttl <duration>',
        'how long threads live after their last use, instead of what the store was opened with; or never',
      ],
      ['--keep-last <n>', 'keep this many of the newest checkpoints of each branch'],
      ['--keep-for <duration>', 'keep checkpoints younger than this'],
      ['--existing', 'with --ttl: also threads that were started before there was a policy'],
      [
        '--archive',
        'with rules given here: archive what is removed first (to HOLDFAST_ARCHIVE, or as the config file says)',
      ],
      ['--program <name>', 'only threads of this program'],
      ['--grace <duration>', 'spare large values written or pointed to within this time (default 1h)'],
    ],
    examples: ['holdfast sweep --dry-run', 'holdfast sweep --ttl 30d --existing --program support'],
    load: () => import('./sweep.js'),
  },
  {
    usage: 'stats',
    group: 'Maintenance',
    summary: 'show statistics about threads, runs, resumes and checkpoints',
    options: [['--sample <n>', 'read the entries of this many branches (default 200)']],
    load: () => import('./stats.js'),
  },
  {
    usage: 'doctor',
    group: 'Maintenance',
    summary: 'check the store (reachable, versions, durability, clock) and say what to change',
    options: [['--read-only', 'write nothing, not even a probe']],
    load: () => import('./doctor.js'),
  },
]
