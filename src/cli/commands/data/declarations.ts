import type { CommandDeclaration, CommandOption } from '../../command.js'
import { BRANCH } from '../options.js'

const ARCHIVE: CommandOption = [
  '--archive <place>',
  'file:folder or s3://bucket/prefix?endpoint=… (default: HOLDFAST_ARCHIVE)',
]

/** Brings threads into a store, out of it, and to another one. */
export const dataCommands: readonly CommandDeclaration[] = [
  {
    usage: 'copy <from> <to>',
    group: 'Moving data',
    summary: 'copy a store to another backend: threads, store, blobs and tombstones, hashes unchanged',
    options: [
      [
        '--since <when>',
        'a second pass: only what changed since, such as 2h or a time; may replace what the first pass copied',
      ],
      ['--delete', 'also remove there what the source no longer has'],
      ['--concurrency <n>', 'branches at once (default 16)'],
    ],
    examples: [
      'holdfast copy sqlite:agents.db postgres://user@host/database',
      'holdfast copy sqlite:agents.db postgres://user@host/database --since 2h --delete',
    ],
    load: () => import('./copy.js'),
  },
  {
    usage: 'archive <thread>',
    group: 'Moving data',
    summary: 'move a thread, or the older history of a branch, to a folder or bucket as compressed files',
    options: [
      ARCHIVE,
      ['--before <checkpoint>', 'only what comes before this checkpoint; at() and history still reach it'],
      ['--keep', 'write the files, and keep the thread too'],
      BRANCH,
    ],
    examples: ['holdfast archive bf-847 --archive file:archive', 'holdfast archive bf-847 --before ~10'],
    load: () => import('./archive.js'),
  },
  {
    usage: 'archives [thread]',
    group: 'Moving data',
    summary: 'list what is archived, check it, or show an archived thread without restoring it',
    options: [ARCHIVE, ['--verify', 'read every file and check it'], ['--show', 'print the states of the thread']],
    load: () => import('./archives.js'),
  },
  {
    usage: 'restore <thread>',
    group: 'Moving data',
    summary: 'bring an archived thread back as it was',
    options: [ARCHIVE, ['--remove', 'remove its files afterwards']],
    load: () => import('./restore.js'),
  },
  {
    usage: 'export <thread> [file]',
    group: 'Moving data',
    summary: 'write a thread to one portable file: to replay it in a test, or to import it elsewhere',
    options: [
      ['--redact', 'remove keys, card numbers and email addresses'],
      ['--force', 'overwrite an existing file'],
      ['--branch <name>', 'only this branch, and those it was forked from'],
    ],
    examples: ['holdfast export bf-847 test/fixtures/bf-847.jsonl --redact'],
    load: () => import('./export.js'),
  },
  {
    usage: 'import <file>',
    group: 'Moving data',
    summary: 'create a thread from an exported file',
    options: [['--as <thread>', 'under another name (default: its own)']],
    examples: ['holdfast import bf-847.jsonl --as bf-847-again'],
    load: () => import('./import.js'),
  },
  {
    usage: 'import-langgraph <database>',
    group: 'Moving data',
    summary: 'import threads that the official SQLite or Postgres saver of LangGraph.js wrote',
    options: [['--thread <id>…', 'only this thread']],
    examples: [
      'holdfast import-langgraph sqlite:checkpoints.db --store sqlite:agents.db',
      'holdfast import-langgraph postgres://user@host/database?schema=langgraph',
    ],
    load: () => import('./import-langgraph.js'),
  },
]
