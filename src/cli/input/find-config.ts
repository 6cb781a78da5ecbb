import { lstatSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { usageError } from '../cli-error.js'

/** What marks the root of a project: a config file above it belongs to something else. */
const ROOT_MARKS = ['package.json', '.git']

/**
 * The nearest of these files, from a folder up to the root of its project; outside of a project, only in that folder. A
 * file that somebody else could have put there, or could change, is refused: a module is run as whoever works in a
 * folder below it.
 */
export function findConfig(cwd: string, names: readonly string[], uid: number | undefined): string | undefined {
  const root = findRoot(cwd)
  for (let folder = cwd; ; folder = dirname(folder)) {
    for (const name of names) {
      const path = join(folder, name)
      const found = look(path)
      if (found === undefined) continue
      if (uid !== undefined) refuseForeign(path, found, uid)
      return path
    }
    if (folder === root) return undefined
  }
}

function findRoot(cwd: string): string {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (ROOT_MARKS.some((mark) => exists(join(folder, mark)))) return folder
    if (dirname(folder) === folder) return cwd
  }
}

interface Found {
  /** The file, the link that leads to it, and the folder it was found in. */
  readonly all: readonly Stats[]
  readonly file: Stats
  readonly folder: Stats
}

function look(path: string): Found | undefined {
  try {
    const file = statSync(path)
    if (!file.isFile()) return undefined
    const folder = statSync(dirname(path))
    return { all: [file, lstatSync(path), folder], file, folder }
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

// What root owns was put there by who can do anything here.
function refuseForeign(path: string, { all, file, folder }: Found, uid: number): void {
  const owner = all.find((one) => one.uid !== uid && one.uid !== 0)
  if (owner !== undefined) throw notUsed(path, `it, or its folder, belongs to another user (uid ${owner.uid})`)
  const isSticky = (folder.mode & 0o1000) !== 0
  if ((file.mode & 0o002) !== 0 || ((folder.mode & 0o002) !== 0 && !isSticky)) {
    throw notUsed(path, 'everybody may write to it or to its folder')
  }
}

function notUsed(path: string, why: string): Error {
  return usageError(
    `The config file ${path} is not used: ${why}.`,
    `If you trust it, name it: --config ${path}, or HOLDFAST_CONFIG. Otherwise name the store: --store <url>.`,
  )
}

function exists(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch {
    return false
  }
}
