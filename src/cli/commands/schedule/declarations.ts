import type { CommandDeclaration } from '../../command.js'
import { PROGRAM } from '../options.js'

/** Programs that run at set times or intervals. */
export const scheduleCommands: readonly CommandDeclaration[] = [
  {
    usage: 'schedule set <file> <name>',
    summary: 'have workers run a program at set times or intervals',
    options: [
      PROGRAM,
      ['--cron <expression>', 'minute, hour, day, month, weekday: "0 2 * * *" is every night at two'],
      ['--time-zone <name>', 'time zone of --cron, such as Europe/Berlin (default: UTC)'],
      ['--every <duration>', 'instead of --cron: 30s, 15m, 2h, 7d'],
      ['--input <json>', 'the input of each run (json, @file or -)'],
      ['--thread <id>', 'one thread for all runs (default: a new one each time)'],
      ['--missed <policy>', 'last, skip or all: what to do about times when no worker was running (default: last)'],
    ],
    examples: [`holdfast schedule set report.mjs nightly --cron '0 2 * * *' --time-zone Europe/Berlin`],
    load: () => import('./set.js'),
  },
  {
    usage: 'schedule list',
    summary: 'list schedules, and when each runs next',
    load: () => import('./list.js'),
  },
  {
    usage: 'schedule pause <name>',
    summary: 'start nothing until the schedule is resumed',
    load: () => import('./pause.js'),
  },
  {
    usage: 'schedule resume <name>',
    summary: 'continue with the next occurrence',
    load: () => import('./resume.js'),
  },
  {
    usage: 'schedule trigger <name>',
    summary: 'run it once, now',
    load: () => import('./trigger.js'),
  },
  {
    usage: 'schedule delete <name>',
    summary: 'remove a schedule; what it started stays',
    load: () => import('./delete.js'),
  },
]
