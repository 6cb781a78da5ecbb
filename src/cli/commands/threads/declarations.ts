import type { CommandDeclaration, CommandOption } from '../../command.js'
import { BRANCH, BY, FILTERS } from '../options.js'

const AT: CommandOption = ['--at <checkpoint>', 'an id, a number, head, ~1, first, a tag or a branch (default: head)']

/** Shows threads and changes them. */
export const threadCommands: readonly CommandDeclaration[] = [
  {
    usage: 'threads',
    group: 'Looking at threads',
    summary: 'list threads, most recently changed first',
    options: [
      ...FILTERS,
      ['--program <name>', 'only threads of this program'],
      ['--thread <id>', 'only the branches of this thread'],
      ['--part <name=value>…', 'only threads whose id has this part, such as user=user-42'],
      BRANCH,
      ['--parent <id>', 'only threads that runs of this one began'],
      ['--tree', 'show each thread with those that its runs began'],
      ['--limit <n>', 'how many (default 50)'],
      ['--all', 'all of them'],
      ['--cursor <cursor>', 'from the previous page'],
    ],
    examples: ['holdfast threads --status failed --newer-than 1h', 'holdfast threads --part user=user-42'],
    load: () => import('./threads.js'),
  },
  {
    usage: 'show <thread>',
    group: 'Looking at threads',
    summary: 'show a thread: status, run, questions, state',
    options: [BRANCH],
    load: () => import('./show.js'),
  },
  {
    usage: 'history <thread>',
    group: 'Looking at threads',
    summary: 'draw the checkpoints of a thread and its branches',
    options: [
      ['--branch <name>', 'only this branch'],
      ['--limit <n>', 'checkpoints per branch (default 20)'],
      ['--all', 'also entries that are not checkpoints: claims, releases, tags'],
    ],
    load: () => import('./history.js'),
  },
  {
    usage: 'state <thread>',
    group: 'Looking at threads',
    summary: 'print the state, now or at a checkpoint',
    options: [AT, BRANCH],
    load: () => import('./state.js'),
  },
  {
    usage: 'diff <thread> [from] [to]',
    group: 'Looking at threads',
    summary: 'show what changed in the state between two checkpoints or branches (default: ~1 head)',
    options: [BRANCH],
    load: () => import('./diff.js'),
  },
  {
    usage: 'tail <thread>',
    group: 'Looking at threads',
    summary: 'print what happens on a thread until it is at rest',
    options: [
      ['--follow', 'keep going when it is at rest, until Ctrl-C'],
      ['--lines <n>', 'start this many entries back (default 10)'],
      ['--since <checkpoint>', 'start after this checkpoint'],
      BRANCH,
    ],
    load: () => import('./tail.js'),
  },
  {
    usage: 'fork <thread>',
    group: 'Changing threads',
    summary: 'start a branch from a checkpoint',
    options: [
      AT,
      ['--name <name>', 'the new branch (default: a random name)'],
      ['--set <key=json>…', 'replace a value of the state'],
      ['--effects <policy>', 'ask, allow or deny effects on the fork (default: ask)'],
      ['--reads <policy>', 'live or recorded (default: live)'],
      BRANCH,
    ],
    examples: [`holdfast fork bf-847 --at ~2 --name what-if --set tone='"formal"'`],
    load: () => import('./fork.js'),
  },
  {
    usage: 'tag <thread> <name>',
    group: 'Changing threads',
    summary: 'give a checkpoint a name; pruning then keeps it',
    options: [AT, BRANCH],
    load: () => import('./tag.js'),
  },
  {
    usage: 'untag <thread> <name>',
    group: 'Changing threads',
    summary: 'remove a tag from its checkpoint',
    options: [BRANCH],
    load: () => import('./untag.js'),
  },
  {
    usage: 'cancel <thread>',
    group: 'Changing threads',
    summary: 'cancel the run that is in progress or waiting',
    options: [['--reason <text>', 'why'], BY, BRANCH],
    load: () => import('./cancel.js'),
  },
  {
    usage: 'signal <thread> <name> [value]',
    group: 'Changing threads',
    summary: 'send a value to a program that waits for it (value: json, @file or -)',
    options: [['--key <key>', 'an id for the signal: sent again, it is not received twice'], BRANCH],
    load: () => import('./signal.js'),
  },
]
