// @ts-check
import { mkdir, open, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * One new file per write, durable under its name: written, flushed, renamed, and the folder flushed.
 * @param {string} folder
 * @returns {Promise<import('../backends.mjs').Floor>}
 */
export async function openFileFloor(folder) {
  await mkdir(folder, { recursive: true })
  const temporary = join(folder, 'unfinished')
  let id = 0
  return {
    async write(bytes) {
      const file = await open(temporary, 'w')
      await file.writeFile(bytes)
      await file.sync()
      await file.close()
      await rename(temporary, join(folder, String(id++)))
      const names = await open(folder, 'r')
      await names.sync()
      await names.close()
    },
    putState: (name, json) => writeFile(join(folder, `${name}.json`), json),
    getState: async (name) => JSON.parse(await readFile(join(folder, `${name}.json`), 'utf8')),
    close() {},
  }
}
