import type { MetadataValue, ThreadQuery, ThreadSummary } from '../index.js'
import { usageError } from './cli-error.js'
import { type Command, list, type Options, text } from './command.js'
import { readPairs } from './json-input.js'
import type { Cell, Paint } from './output.js'
import { formatThreadId, parseThreadId } from './thread-id.js'
import { ago, parseCount, parseDuration } from './times.js'

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
      limit: Math.min(500, limit - found.length),
      ...(cursor ? { cursor } : {}),
    })
    found.push(...page.threads)
    cursor = page.cursor
  } while (cursor !== undefined && found.length < limit)

  const { output } = context
  if (output.json) {
    output.document({ threads: found.map(describeThread), ...(cursor === undefined ? {} : { cursor }) })
    return
  }
  const now = Date.now()
  const rows = found.map((one): readonly Cell[] => [
    formatThreadId(one.thread),
    one.branch,
    [one.status, paintStatus(one.status)],
    String(one.entries),
    output.terminal ? ago(one.updatedAt, now) : one.updatedAt.toISOString(),
    describeProgram(one),
    one.tags.join(' '),
  ])
  if (rows.length === 0) output.note('No threads.')
  else await output.table(['thread', 'branch', 'status', 'entries', 'updated', 'program', 'tags'], rows)
  if (cursor !== undefined) output.note('There are more: pass --all, or --limit.')
}

/** The query that the filter options ask for. */
export function threadQuery(options: Options): ThreadQuery {
  const older = text(options, 'olderThan')
  const newer = text(options, 'newerThan')
  const thread = text(options, 'thread')
  const branch = text(options, 'branch')
  const program = text(options, 'program')
  const status = list(options, 'status')
  const tags = list(options, 'tag')
  const metadata = {
    ...checkMetadata(readPairs(list(options, 'metadata'), '--metadata')),
    ...(program === undefined ? {} : { 'holdfast.program': program }),
  }
  return {
    order: 'updated',
    direction: 'desc',
    ...(status.length > 0 ? { status: status.flatMap((one) => one.split(',')) } : {}),
    ...(tags.length > 0 ? { tags } : {}),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    ...(older === undefined ? {} : { updatedBefore: new Date(Date.now() - parseDuration(older, '--older-than')) }),
    ...(newer === undefined ? {} : { updatedAfter: new Date(Date.now() - parseDuration(newer, '--newer-than')) }),
    ...(thread === undefined ? {} : { thread: parseThreadId(thread) }),
    ...(branch === undefined ? {} : { branch }),
  }
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
      throw usageError(`--metadata ${name} is no text, number or boolean.`, 'Write --metadata region=eu.')
    }
  }
  return pairs as Record<string, MetadataValue>
}
