import type { CommandDeclaration } from './command.js'

type Option = readonly [flags: string, description: string]

const BRANCH: Option = ['--branch <name>', 'the branch (default: main)']
const AT: Option = ['--at <checkpoint>', 'an id, a number, head, ~1, first, a tag or a branch (default: head)']
const PROGRAM: Option = ['--program <name>', 'which of the programs that the file exports']
const CONTEXT: Option = ['--context <json>', 'what the run brings along and does not keep (json, @file or -)']
const BY: Option = ['--by <who>', 'who it was, for the record']
const FILTERS: readonly Option[] = [
  ['--status <status>…', 'active, waiting, waiting_human, waiting_tool, completed, failed, incompatible, forked'],
  ['--tag <name>…', 'only with this tag'],
  ['--metadata <name=value>…', 'only with this label'],
  ['--older-than <duration>', 'last changed longer ago: 30s, 15m, 2h, 7d'],
  ['--newer-than <duration>', 'last changed since'],
]
const ITEM_FILTERS: readonly Option[] = [
  ['--prefix <text>', 'only keys that begin with this'],
  ['--limit <n>', 'how many (default 100)'],
  ['--cursor <cursor>', 'from the page before'],
]

/** All commands, in the order of help. */
export const COMMANDS: readonly CommandDeclaration[] = [
  {
    usage: 'init [folder]',
    summary: 'make a working project: an agent, its tools, a store, a script, and a test that kills and resumes',
    options: [
      ['--name <name>', 'the name of the package (default: the name of the folder)'],
      ['--no-install', 'write the files only'],
      ['--from <package>', 'where npm gets holdfast: a version, file:…, a tarball (default: this version)'],
    ],
    examples: ['npx holdfast init my-agent', 'npx holdfast init my-agent --store postgres://user@host/database'],
    load: () => import('./init.js'),
  },
  {
    usage: 'run <file>',
    summary: 'run a thread of a program that a module exports',
    options: [
      ['--thread <id>', 'bf-847, or user=user-42,session=bf-847 (default: a new one)'],
      ['--input <json>', 'what it works on (json, @file or -); left out, an unfinished run is resumed'],
      ['--text <text>', 'the same, as plain text'],
      ['--key <key>', 'names the input: given again it is not taken twice'],
      ['--busy <policy>', 'reject, queue or interrupt, while another runs the thread (default: reject)'],
      ['--events', 'print what happens; with --json as JSON lines, the outcome last'],
      PROGRAM,
      BRANCH,
      CONTEXT,
    ],
    examples: [`holdfast run agent.mjs --thread bf-847 --input '{"orderId":"ORD-1"}'`],
    load: () => import('./run.js'),
  },
  {
    usage: 'worker <file>',
    summary: 'run whatever is due of a module’s programs, until SIGTERM',
    options: [
      ['--concurrency <n>', 'threads at once (default 10)'],
      ['--lease <duration>', 'how long a thread stays claimed without a sign of life (default 10s)'],
      ['--poll <duration>', 'how often to look for work (default 500ms)'],
      ['--grace <duration>', 'how long steps may take to end when stopped (default 30s)'],
      ['--name <name>', 'names this worker to people who look'],
      ['--events', 'also print what happens inside the runs'],
    ],
    load: () => import('./worker.js'),
  },
  {
    usage: 'threads',
    summary: 'list threads, newest change first',
    options: [
      ...FILTERS,
      ['--program <name>', 'only threads of this program'],
      ['--thread <id>', 'only the branches of this thread'],
      BRANCH,
      ['--limit <n>', 'how many (default 50)'],
      ['--all', 'all of them'],
      ['--cursor <cursor>', 'from the page before'],
    ],
    examples: ['holdfast threads --status failed --newer-than 1h'],
    load: () => import('./threads.js'),
  },
  {
    usage: 'show <thread>',
    summary: 'show a thread: status, run, questions, state',
    options: [BRANCH],
    load: () => import('./show.js'),
  },
  {
    usage: 'history <thread>',
    summary: 'draw the checkpoints of a thread and its branches',
    options: [
      ['--branch <name>', 'only this branch'],
      ['--limit <n>', 'checkpoints per branch (default 20)'],
      ['--all', 'also entries that are no checkpoints: claims, releases, tags'],
    ],
    load: () => import('./history.js'),
  },
  {
    usage: 'state <thread>',
    summary: 'print the state, now or at a checkpoint',
    options: [AT, BRANCH],
    load: () => import('./state.js'),
  },
  {
    usage: 'diff <thread> [from] [to]',
    summary: 'what changed of the state between two checkpoints or branches (default: ~1 head)',
    options: [BRANCH],
    load: () => import('./diff.js'),
  },
  {
    usage: 'tail <thread>',
    summary: 'print what happens on a thread until it rests',
    options: [
      ['--follow', 'go on when it rests, until Ctrl-C'],
      ['--lines <n>', 'begin this many entries back (default 10)'],
      ['--since <checkpoint>', 'begin after this checkpoint'],
      BRANCH,
    ],
    load: () => import('./tail.js'),
  },
  {
    usage: 'fork <thread>',
    summary: 'make a branch of a checkpoint',
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
    usage: 'resume <file> [thread]',
    summary: 'go on with a thread, or with --all of a program',
    options: [
      ['--all', 'all threads of the program that the filters let through'],
      ...FILTERS,
      PROGRAM,
      BRANCH,
      CONTEXT,
      ['--concurrency <n>', 'threads at once (default 16)'],
    ],
    load: () => import('./resume.js'),
  },
  {
    usage: 'replay <file> <thread>',
    summary: 'go through the last run from its records, and say where the program differs',
    options: [PROGRAM, BRANCH],
    load: () => import('./replay.js'),
  },
  {
    usage: 'tag <thread> <name>',
    summary: 'name a checkpoint',
    options: [AT, BRANCH],
    load: () => import('./tag.js'),
  },
  {
    usage: 'untag <thread> <name>',
    summary: 'take the name away',
    options: [BRANCH],
    load: () => import('./untag.js'),
  },
  {
    usage: 'verify [thread]',
    summary: 'check every entry of a thread, or of --all',
    options: [
      ['--all', 'all threads of the tenant'],
      ['--repair', 'rebuild index rows that do not match their logs'],
      ['--branch <name>', 'only this branch'],
    ],
    load: () => import('./verify.js'),
  },
  {
    usage: 'pauses [thread]',
    summary: 'list open questions',
    options: [['--limit <n>', 'how many (default 100)'], BRANCH],
    load: () => import('./pauses.js'),
  },
  {
    usage: 'answer <thread> [pause] [value]',
    summary: 'answer a question (value: json, @file or -)',
    options: [['--text <text>', 'the answer, as plain text'], BY, BRANCH],
    examples: [`holdfast answer bf-847 p-3f… '{"approved":true}' --by ada`],
    load: () => import('./answer.js'),
  },
  {
    usage: 'approve <thread> [pause]',
    summary: 'say yes to a question',
    options: [['--reason <text>', 'why'], ['--yes', 'do not ask again on a terminal'], BY, BRANCH],
    load: () => import('./approve.js'),
  },
  {
    usage: 'reject <thread> [pause]',
    summary: 'say no to a question',
    options: [['--reason <text>', 'why'], ['--yes', 'do not ask again on a terminal'], BY, BRANCH],
    load: () => import('./reject.js'),
  },
  {
    usage: 'cancel <thread>',
    summary: 'end the run that is under way or waits',
    options: [['--reason <text>', 'why'], BY, BRANCH],
    load: () => import('./cancel.js'),
  },
  {
    usage: 'signal <thread> <name> [value]',
    summary: 'send a value to a program that waits for it (value: json, @file or -)',
    options: [BRANCH],
    load: () => import('./signal.js'),
  },
  {
    usage: 'store list [scope] [collection]',
    summary: 'list collections, or the items of one',
    options: ITEM_FILTERS,
    examples: ['holdfast store list user=user-42 preferences'],
    load: () => import('./store-list.js'),
  },
  {
    usage: 'store get <scope> <collection> <key>',
    summary: 'print an item',
    load: () => import('./store-get.js'),
  },
  {
    usage: 'store put <scope> <collection> <key> <value>',
    summary: 'write an item (value: json, @file or -)',
    options: [
      ['--ttl <duration>', 'how long it lives'],
      ['--expect <version>', 'only over this version; none: only if there is none'],
    ],
    load: () => import('./store-put.js'),
  },
  {
    usage: 'store delete <scope> <collection> <key>',
    summary: 'remove an item',
    options: [['--expect <version>', 'only this version']],
    load: () => import('./store-delete.js'),
  },
  {
    usage: 'store search <scope> <collection>',
    summary: 'list the items that a filter lets through',
    options: [
      ['--filter <json>', `such as '{"city":"Paris","age":{"gte":18}}'`],
      ['--order-by <field>', 'default: by key'],
      ['--desc', 'the other way around'],
      ...ITEM_FILTERS,
    ],
    load: () => import('./store-search.js'),
  },
  {
    usage: 'stats',
    summary: 'figures of threads, runs, resumes and checkpoints',
    options: [['--sample <n>', 'read the entries of this many branches (default 200)']],
    load: () => import('./stats.js'),
  },
  {
    usage: 'doctor',
    summary: 'check the store: reachable, versions, durability, clock, and what to change',
    options: [['--read-only', 'write nothing, not even a probe']],
    load: () => import('./doctor.js'),
  },
  {
    usage: 'migrate <file>',
    summary: 'bring the states of a program’s threads up to its version',
    options: [['--dry-run', 'only say what would be done'], PROGRAM],
    load: () => import('./migrate.js'),
  },
]
