import { statSync } from 'node:fs'

/**
 * Whether the name of a file still leads to the file that was opened under it. SQLite works with what it opened: after
 * someone deletes the file, or moves a backup into its place, commits keep succeeding in a file that nobody can open
 * anymore, and are gone with the process.
 */
export function sameFileCheck(path: string): () => boolean {
  // Windows does not let anybody delete or replace a file that is open.
  if (process.platform === 'win32') return () => true
  const opened = identify(path)
  // Asked twice in each append, and bigints cost as much as the look itself. Every number that is rounded is greater
  // than those that are not, so a file with another one is never taken for this one.
  const isExact = opened !== undefined && opened.dev <= MAX_EXACT && opened.ino <= MAX_EXACT
  if (!isExact) return () => isSame(identify(path), opened)
  const exact = { dev: Number(opened.dev), ino: Number(opened.ino) }
  return () => isSame(statSync(path, MAY_BE_GONE), exact)
}

interface Identity<T> {
  readonly dev: T
  readonly ino: T
}

const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER)
const MAY_BE_GONE = { throwIfNoEntry: false } as const

function identify(path: string): Identity<bigint> | undefined {
  return statSync(path, { ...MAY_BE_GONE, bigint: true })
}

function isSame<T>(found: Identity<T> | undefined, opened: Identity<T> | undefined): boolean {
  return found?.ino === opened?.ino && found?.dev === opened?.dev
}
