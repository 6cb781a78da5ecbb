// @ts-check
import { randomBytes } from 'node:crypto'
import { access, constants, lstat, mkdir, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const projectCache = fileURLToPath(new URL('../../node_modules/.cache/holdfast', import.meta.url))

/**
 * A folder whose content is made once and found by later runs.
 * @param {string} key
 * @param {{ make(folder: string): Promise<void>, isUsable(folder: string): Promise<boolean> }} how
 *   `isUsable` is asked of a found folder too: after an upgrade of the machine old binaries may no longer run
 * @returns {Promise<string>}
 */
export async function cached(key, { make, isUsable }) {
  const name = `${key}-${process.platform}-${process.arch}`
  // Made by another user of the same project, perhaps: readable is enough.
  if (await isUsable(join(projectCache, name))) return join(projectCache, name)
  const folder = join(await writableParent(), name)
  if (await isUsable(folder)) return folder
  const fresh = `${folder}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await mkdir(fresh, { recursive: true })
    await make(fresh)
    if (!(await isUsable(fresh))) throw new Error(`what was fetched for ${key} does not run on this machine`)
    // Another process may have been faster, and servers may run from its folder already: ours is dropped then.
    if (await isUsable(folder)) return folder
    // Renamed into place whole: a second process never sees a folder that is half there.
    await rm(folder, { recursive: true, force: true })
    await rename(fresh, folder).catch(async (error) => {
      if (!(await isUsable(folder))) throw error
    })
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
  return folder
}

/** In the project, where git ignores it and `npm ci` clears it; else where this user can write. */
async function writableParent() {
  try {
    await mkdir(projectCache, { recursive: true })
    await access(projectCache, constants.W_OK)
    return projectCache
  } catch {
    return ownCache()
  }
}

async function ownCache() {
  const uid = process.getuid?.()
  const own = join(tmpdir(), `holdfast-cache-${uid ?? 'user'}`)
  await mkdir(own, { recursive: true, mode: 0o700 })
  // The name can be guessed, so somebody else may have made the folder, and we run what is in it.
  const found = await lstat(own)
  if (!found.isDirectory() || (uid !== undefined && found.uid !== uid)) {
    throw new Error(`${own} belongs to another user: set TMPDIR to a folder of your own`)
  }
  return own
}
