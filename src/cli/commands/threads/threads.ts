import type { Holdfast, ThreadQuery, ThreadSummary } from '../../../index.js'
import type { MetadataValue } from '../../../driver.js'
import { usageError } from '../../cli-error.js'
import { type Command, list, type Options, text } from '../../command.js'
import { readPairs } from '../../input/json-input.js'
import type { Cell, Output, Paint } from '../../screen/output.js'
import { drawTree, type ThreadTree, treeOf } from '../../screen/thread-tree.js'
import { didYouMean, findSimilarNames } from '../../../core/wording/similar.js'
import { formatThreadId, parseThreadId } from '../../input/thread-id.js'
import { ago, parseCount, parseDuration } from '../../screen/times.js'

/** Lists threads, newest change first. */
export const run: Command = async (context, _args, options) => {
  const hf = await context.open()
  const query = threadQuery(options)
  const limit = options['all'] ? Number.POSITIVE_INFINITY : parseCount(text(options, 'limit') ?? '50', '--limit')
  const found: ThreadSummary[] = []
  let cursor = text(options, 'cursor')
  do {
    const page = await hf.threads({
      ...query,
      errors: true,
      limit: Math.min(500, limit - found.length),
      ...(cursor ? { cursor } : {}),
    })
    found.push(...page.threads)
    cursor = page.cursor
  } while (cursor !== undefined && found.length < limit)

  if (found.length === 0) await refuseUnknown(hf, options)
  const { output } = context
  if (options['tree']) {
    const trees = await growTrees(hf, found)
    if (output.json) output.document({ threads: trees.map(describeTree), ...(cursor === undefined ? {} : { cursor }) })
    else await printThreads(output, trees.flatMap(drawTree), cursor !== undefined)
    return
  }
  if (output.json) {
    output.document({ threads: found.map(describeThread), ...(cursor === undefined ? {} : { cursor }) })
    return
  }
  await printThreads(
    output,
    found.map((one) => [formatThreadId(one.thread), one] as const),
    cursor !== undefined,
  )
}

/** A thread that another one of the list began is shown below that one. */
async function growTrees(hf: Holdfast, found: readonly ThreadSummary[]): Promise<readonly ThreadTree[]> {
  const trees: ThreadTree[] = []
  const below = new Set<string>()
  const note = ({ summary, children }: ThreadTree): void => {
    below.add(formatThreadId(summary.thread))
    for (const child of children) note(child)
  }
  for (const summary of found) {
    const tree = await treeOf(hf, summary)
    for (const child of tree.children) note(child)
    trees.push(tree)
  }
  return trees.filter(({ summary }) => !below.has(formatThreadId(summary.thread)))
}

function describeTree({ summary, children }: ThreadTree): Readonly<Record<string, unknown>> {
  return { ...describeThread(summary), children: children.map(describeTree) }
}

async function printThreads(
  output: Output,
  threads: readonly (readonly [label: string, ThreadSummary])[],
  hasMore: boolean,
): Promise<void> {
  const now = Date.now()
  const onlyMain = output.terminal && threads.every(([, { branch }]) => branch === 'main')
  const rows = threads.map(([label, one]): readonly Cell[] => [
    label,
    onlyMain ? '' : one.branch,
    [one.status, paintStatus(one.status)],
    String(one.entries),
    output.terminal ? ago(one.updatedAt, now) : one.updatedAt.toISOString(),
    describeProgram(one),
    one.tags.join(' '),
    [output.terminal ? brief(one.error?.message ?? '') : (one.error?.message ?? ''), 'red'],
  ])
  if (rows.length === 0) output.note('No threads.')
  else {
    const names = ['thread', 'branch', 'status', 'entries', 'updated', 'program', 'tags', 'error']
    await output.table(names, rows, { spare: ['entries', 'program'], whole: ['thread', 'branch', 'status', 'updated'] })
  }
  if (hasMore) output.note('There are more: pass --all, or --limit.')
}

const STATUSES = [
  'active',
  'waiting',
  'waiting_human',
  'waiting_tool',
  'completed',
  'limited',
  'failed',
  'incompatible',
  'forked',
]

/** An empty list would hide that a status or a tag was mistyped: no thread at all has it. */
async function refuseUnknown(hf: Holdfast, options: Options): Promise<void> {
  const check = async (name: string, query: ThreadQuery, option: string, known: () => Promise<Iterable<string>>) => {
    if ((await hf.threads({ ...query, limit: 1 })).threads.length > 0) return
    const similar = findSimilarNames(name, await known())
    if (similar.length > 0) throw usageError(`No thread has the ${option} "${name}"${didYouMean(similar)}`)
  }
  for (const status of statusesOf(options)) {
    if (!STATUSES.includes(status)) await check(status, { status: [status] }, 'status', async () => STATUSES)
  }
  for (const tag of list(options, 'tag')) {
    const known = async () => (await hf.threads({ limit: 1000, order: 'updated' })).threads.flatMap(({ tags }) => tags)
    await check(tag, { tags: [tag] }, 'tag', known)
  }
}

function statusesOf(options: Options): readonly string[] {
  return list(options, 'status').flatMap((one) => one.split(','))
}

/** The query that the filter options ask for. */
export function threadQuery(options: Options): ThreadQuery {
  const older = text(options, 'olderThan')
  const newer = text(options, 'newerThan')
  const thread = text(options, 'thread')
  const parts = readParts(list(options, 'part'))
  const branch = text(options, 'branch')
  const parent = text(options, 'parent')
  const program = text(options, 'program')
  const status = statusesOf(options)
  const tags = list(options, 'tag')
  const metadata = {
    ...checkMetadata(readPairs(list(options, 'metadata'), '--metadata')),
    ...(program === undefined ? {} : { 'holdfast.program': program }),
  }
  return {
    order: 'updated',
    direction: 'desc',
    ...(status.length > 0 ? { status } : {}),
    ...(tags.length > 0 ? { tags } : {}),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    ...(older === undefined ? {} : { updatedBefore: new Date(Date.now() - parseDuration(older, '--older-than')) }),
    ...(newer === undefined ? {} : { updatedAfter: new Date(Date.now() - parseDuration(newer, '--newer-than')) }),
    ...(thread === undefined ? {} : { thread: parseThreadId(thread) }),
    ...(parts === undefined ? {} : { parts }),
    ...(branch === undefined ? {} : { branch }),
    ...(parent === undefined ? {} : { parent: parseThreadId(parent) }),
  }
}

/** `--part user=user-42`, as given: what looks like a number is a part all the same. */
function readParts(given: readonly string[]): Readonly<Record<string, string>> | undefined {
  if (given.length === 0) return undefined
  return Object.fromEntries(
    given.map((part) => {
      const at = part.indexOf('=')
      if (at < 1) throw usageError(`--part is "${part}".`, 'Write --part user=user-42.')
      return [part.slice(0, at), part.slice(at + 1)]
    }),
  )
}

/** The first line, for a table: `show` prints all of it. */
function brief(message: string): string {
  const [line = ''] = message.split('\n')
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}

export function paintStatus(status: string): Paint {
  if (status === 'completed' || status === 'ok') return 'green'
  if (status === 'failed' || status === 'incompatible') return 'red'
  return status === 'active' ? 'cyan' : 'yellow'
}

/** A thread for programs: its id as it was given, and in the form that commands take. */
export function describeThread(summary: ThreadSummary): Readonly<Record<string, unknown>> {
  return { id: formatThreadId(summary.thread), ...summary }
}

export function describeProgram({ metadata }: ThreadSummary): string {
  const { 'holdfast.program': name, 'holdfast.version': version } = metadata
  return name === undefined ? '' : `${name} ${version ?? ''}`.trim()
}

function checkMetadata(pairs: Readonly<Record<string, unknown>>): Readonly<Record<string, MetadataValue>> {
  for (const [name, value] of Object.entries(pairs)) {
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw usageError(`--metadata ${name} must be a string, a number or a boolean.`, 'Write --metadata region=eu.')
    }
  }
  return pairs as Record<string, MetadataValue>
}
