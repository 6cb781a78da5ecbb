// @ts-check
import { execFile } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** @typedef {{ uid: number, gid: number, name: string }} RunAs */

/**
 * Postgres and PgBouncer refuse to run as root. Root can run them as somebody else; everybody else runs them as is.
 * @returns {Promise<RunAs | undefined>} undefined when this process isn't root
 */
export async function unprivilegedUser() {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])])
      return { uid: Number(uid.stdout), gid: Number(gid.stdout), name }
    } catch {
      // No such user on this machine; try the next.
    }
  }
  // Every Unix accepts a uid without a name; initdb is told the user name anyway.
  return { uid: 65_534, gid: 65_534, name: 'nobody' }
}

/**
 * The part of spawn's options that runs a command as that user.
 * @param {RunAs | undefined} runAs
 */
export function asUser(runAs) {
  return runAs ? { uid: runAs.uid, gid: runAs.gid } : {}
}

/**
 * @param {string} folder
 * @param {RunAs} runAs
 * @returns {Promise<boolean>} whether that user can use files in the folder
 */
export async function canEnter(folder, runAs) {
  // Asked of the kernel: modes, ACLs and every parent folder count, and a look at st_mode would miss some of them.
  return run('/bin/sh', ['-c', 'test -x "$1"', 'sh', folder], { ...asUser(runAs), cwd: '/' }).then(
    () => true,
    () => false,
  )
}

/**
 * A tree of binaries that the user can run: the tree itself, or a copy when it lies where the user can't go
 * (a project under a home folder with mode 0700).
 * @param {string} tree
 * @param {RunAs | undefined} runAs
 * @param {string} runFolder where the copy goes
 * @returns {Promise<string>}
 */
export async function reachableTree(tree, runAs, runFolder) {
  if (!runAs || (await canEnter(tree, runAs))) return tree
  const copy = join(runFolder, `${basename(tree)}-copy`)
  // Link texts are kept as they are: resolved ones would point back to where the user can't go.
  await cp(tree, copy, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') })
  return copy
}
