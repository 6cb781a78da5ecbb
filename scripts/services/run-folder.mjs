// @ts-check
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forgetFolder, guardFolder } from './guard.mjs'
import { canEnter } from './run-as.mjs'

/**
 * A temporary folder that goes away with `remove()`, or by the guard when this process ends without it.
 * @param {string} purpose part of the folder's name
 * @param {import('./run-as.mjs').RunAs} [runAs] a user that must be able to reach it
 * @returns {Promise<{ path: string, remove(): Promise<void> }>}
 */
export async function makeRunFolder(purpose, runAs) {
  // TMPDIR may lie in a home folder that the unprivileged server user can't enter.
  const parent = runAs && !(await canEnter(tmpdir(), runAs)) ? '/tmp' : tmpdir()
  const path = await mkdtemp(join(parent, `holdfast-${purpose}-`))
  guardFolder(path)
  // Passable, not listable: what needs secrecy inside has modes of its own.
  await chmod(path, 0o711)
  return {
    path,
    async remove() {
      // Retried: the children of a killed Postgres write for a moment longer.
      await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
      forgetFolder(path)
    },
  }
}
