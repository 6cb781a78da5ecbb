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
  return () => opened === identify(path)
}

function identify(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found && `${found.dev}:${found.ino}`
}
