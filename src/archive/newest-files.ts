import type { ArchivedFile } from './archived-file.js'

/** The files of the life that was archived last: the forks of an earlier one are no branches of it. */
export function newestLife(files: readonly ArchivedFile[]): readonly ArchivedFile[] {
  const newest = endOf(newestFirst(files))
  return files.filter(({ life }) => life === undefined || newest?.life === undefined || life === newest.life)
}

/** Where a thread ended that was archived whole; else the end of the newest past. */
function endOf(newest: readonly ArchivedFile[]): ArchivedFile | undefined {
  return newest.find(({ kind }) => kind === 'thread') ?? newest[0]
}

function newestFirst(files: readonly ArchivedFile[]): ArchivedFile[] {
  return [...files].sort((a, b) => b.archivedAt - a.archivedAt || b.last - a.last)
}

/** The files that lead to the newest entry of a branch, oldest first, as far back as they join. */
export function newestChain(files: readonly ArchivedFile[]): readonly ArchivedFile[] {
  const newest = newestFirst(files)
  const end = endOf(newest)
  const life = newest.filter((file) => file.incarnation === end?.incarnation)
  // Of a thread that was archived whole, that is its end: a past that was cut off after it was restored ends in the middle.
  const last = end?.kind === 'thread' ? end : life.sort((a, b) => b.last - a.last)[0]
  const chain: ArchivedFile[] = []
  for (let file = last; file !== undefined; ) {
    chain.unshift(file)
    const { first, parent, incarnation, start } = file
    file = newest.find(
      (one) =>
        one.incarnation === incarnation &&
        one.first < first &&
        ((one.last === first - 1 && one.hash === parent) || (one.last === first && one.hash === start)),
    )
  }
  return chain
}
