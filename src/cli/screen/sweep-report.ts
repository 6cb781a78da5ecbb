import type { SweepReport } from '../../data.js'
import { formatBytes } from './times.js'

/** What a sweep removed, or would have, in one line. */
export function describeSweep({
  dryRun,
  threads,
  cut,
  archived,
  archives,
  entries,
  bytes,
  blobs,
  items,
  used,
  damaged,
}: SweepReport): string {
  const parts = [
    ...(threads > 0 ? [`${count(threads, 'expired thread')}`] : []),
    ...(cut > 0 ? [`the oldest entries of ${count(cut, 'branch', 'branches')}`] : []),
    ...(archives > 0 ? [count(archives, 'archived file')] : []),
    ...(items > 0 ? [count(items, 'expired item')] : []),
    ...(blobs.removed > 0 ? [`${count(blobs.removed, 'unused large value')} (${formatBytes(blobs.bytes)})`] : []),
  ]
  const size = entries > 0 ? `, ${count(entries, 'entry', 'entries')} with ${formatBytes(bytes)}` : ''
  const what = parts.length === 0 ? 'nothing' : parts.join(', ')
  const kept = [
    ...(used > 0 ? [`${count(used, 'thread')} used meanwhile`] : []),
    ...(damaged > 0 ? [`${count(damaged, 'damaged thread')}`] : []),
  ]
  const stays = kept.length === 0 ? '' : ` Kept: ${kept.join(', ')}.`
  const moved =
    archived > 0 ? ` Of these, ${count(archived, 'thread or branch', 'threads and branches')} went to the archive.` : ''
  return `${dryRun ? 'Would remove' : 'Removed'} ${what}${size}.${moved}${stays}`
}

function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`
}
