import type { CommandOption } from '../command.js'

export const BRANCH: CommandOption = ['--branch <name>', 'the branch (default: main)']
export const PROGRAM: CommandOption = ['--program <name>', 'which of the programs that the file exports']
export const BY: CommandOption = ['--by <who>', 'who did it, for the record']
export const FILTERS: readonly CommandOption[] = [
  ['--status <status>…', 'active, waiting, waiting_human, waiting_tool, completed, failed, incompatible, forked'],
  ['--tag <name>…', 'only with this tag'],
  ['--metadata <name=value>…', 'only with this label'],
  ['--older-than <duration>', 'last changed longer ago than this: 30s, 15m, 2h, 7d'],
  ['--newer-than <duration>', 'last changed more recently than this'],
]
