import type { CommandDeclaration, CommandOption } from '../../command.js'
import { BRANCH, BY } from '../options.js'

const YES: CommandOption = ['--yes', 'you have read the whole question: do not ask again']

/** Questions that runs wait for, and their answers. */
export const questionCommands: readonly CommandDeclaration[] = [
  {
    usage: 'pauses [thread]',
    group: 'Answering questions',
    summary: 'list open questions',
    options: [['--limit <n>', 'how many (default 100)'], BRANCH],
    load: () => import('./pauses.js'),
  },
  {
    usage: 'answer <thread> [pause] [value]',
    group: 'Answering questions',
    summary: 'answer a question (value: json, @file or -)',
    options: [['--text <text>', 'the answer, as plain text'], YES, BY, BRANCH],
    examples: [
      `holdfast answer bf-847 p-3f… '{"approved":true}' --by ada`,
      `holdfast answer bf-847 p-3f… --text 'the blue one'`,
    ],
    load: () => import('./answer.js'),
  },
  {
    usage: 'approve <thread> [pause]',
    group: 'Answering questions',
    summary: 'say yes to a question',
    options: [['--reason <text>', 'why'], YES, BY, BRANCH],
    load: () => import('./approve.js'),
  },
  {
    usage: 'reject <thread> [pause]',
    group: 'Answering questions',
    summary: 'say no to a question',
    options: [['--reason <text>', 'why'], ['--yes', 'do not ask again on a terminal'], BY, BRANCH],
    load: () => import('./reject.js'),
  },
]
