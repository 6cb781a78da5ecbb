import type { CopyProgress, CopyRefusal } from '../../../data.js'
import { usageError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { refuseMissing } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { isCacheable } from '../../input/settings.js'
import { formatThreadId } from '../../input/thread-id.js'
import { clean, type Output } from '../../screen/output.js'
import { formatBytes, parseCount, parseDuration } from '../../screen/times.js'

/** Copies a store to another backend. Called again, it continues. */
export const run: Command = async (context, [from = '', to = ''], options) => {
  const { copyStore } = await import('../../../data.js')
  const { describeStoreUrl } = await import('../../../internal.js')
  const { output, signal } = context
  const since = readSince(text(options, 'since'))
  const concurrency = text(options, 'concurrency')
  refuseMissing(from, 'the command line')
  const settings = await context.settings()
  const { tenant } = settings
  const { cache: _, ...uncached } = settings.options
  let shownAt = 0
  const report = await copyStore(from, to, {
    from: uncached,
    // What is removed there must not stay in the cache.
    to: isCacheable(to) ? settings.options : uncached,
    deleteMissing: options['delete'] === true,
    signal,
    onProgress(progress) {
      const now = Date.now()
      if (!output.terminal || now - shownAt < 80) return
      shownAt = now
      output.live(`copying ${describeCounts(progress)}`)
    },
    ...(tenant === undefined ? {} : { tenant }),
    ...(since === undefined ? {} : { since }),
    ...(concurrency === undefined ? {} : { concurrency: parseCount(concurrency, '--concurrency', 1000) }),
  })
  if (output.terminal) output.live('')
  const { refused, ...counts } = report
  const shown = refused.map((refusal) => {
    const { thread, ...rest } = refusal
    return { ...rest, ...(thread === undefined ? {} : { thread: formatThreadId(thread) }) }
  })
  if (output.json)
    output.document({ from: describeStoreUrl(from), to: describeStoreUrl(to), ...counts, refused: shown })
  else {
    for (const { message } of shown) output.line(`${output.paint('yellow', 'refused')} ${clean(message)}`)
    printCounts(output, report)
    if (!report.complete) output.note('Stopped. Run the same command again to continue from here.')
  }
  if (!report.complete) return EXIT.interrupted
  return exitCodeOf(refused)
}

function exitCodeOf(refused: readonly CopyRefusal[]): number {
  if (refused.some(({ reason }) => reason === 'damaged')) return EXIT.corrupt
  return refused.length > 0 ? EXIT.conflict : EXIT.ok
}

function printCounts(
  output: Output,
  counts: CopyProgress & { readonly tenants: number; readonly verified: number },
): void {
  output.fields([
    ['branches', `${counts.branches} (${counts.same} were there)`],
    ['entries', `${counts.entries} (${counts.verified} hashes recomputed, all read back and compared)`],
    ['blobs', counts.blobs],
    ['items', counts.items],
    ['tombstones', counts.tombstones],
    ['removed', counts.removed || undefined],
    ['tenants', counts.tenants],
    ['bytes', formatBytes(counts.bytes)],
  ])
}

function describeCounts({ branches, entries, items, bytes }: CopyProgress): string {
  return `${branches} branches, ${entries} entries, ${items} items, ${formatBytes(bytes)}`
}

/** `2h`, or a date as JSON has it. */
function readSince(given: string | undefined): Date | undefined {
  if (given === undefined) return undefined
  if (/^\d+(?:\.\d+)?(ms|s|m|h|d|w)$/.test(given)) return new Date(Date.now() - parseDuration(given, '--since'))
  const date = new Date(given)
  if (/^\d{4}-\d\d-\d\d/.test(given) && !Number.isNaN(date.getTime())) return date
  throw usageError(
    `--since is ${JSON.stringify(given)}.`,
    'Write a duration such as 2h, or a time such as 2026-01-31T12:00:00Z.',
  )
}
