import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { SchemaTooNewError, StorageError } from '../../../core/errors.js'
import { type Disk, FOLDER_MODE, hasCode } from './disk.js'
import { isWriterGone } from '../records/names.js'
import { damaged, FORMAT } from '../records/record.js'
import { isAlive } from '../store.js'

const MARKER = 'holdfast.json'
/** Unfinished files of a process that ended are removed after this long. */
const STALE_MS = 600_000

/** Makes the folder a store, or checks that it is one this version understands, and that it can be written to. */
export async function openRoot(disk: Disk): Promise<void> {
  await makeRoot(disk.root)
  const found = await readMarker(disk)
  if (found !== undefined && found > FORMAT) {
    throw new SchemaTooNewError(`The store in ${disk.root}`, { found, supported: FORMAT })
  }
  if (found === undefined) await writeMarker(disk)
  await disk.ensureFolder(join(disk.root, 'tmp'))
  await disk.ensureFolder(join(disk.root, 'tenants'))
  await checkWritable(disk)
  await removeStrays(disk)
}

async function makeRoot(root: string): Promise<void> {
  try {
    await fs.mkdir(root, { recursive: true, mode: FOLDER_MODE })
  } catch (error) {
    if (!hasCode(error, 'EEXIST', 'ENOTDIR')) throw error
    throw new StorageError(`${root} is a file, or is inside one.`, 'Give the path of a folder.', {
      reason: 'not-a-folder',
      written: 'nothing',
      data: { path: root },
      cause: error,
    })
  }
}

async function readMarker(disk: Disk): Promise<number | undefined> {
  const path = join(disk.root, MARKER)
  const bytes = await disk.read(path)
  if (bytes === undefined) return undefined
  try {
    const marker: unknown = JSON.parse(bytes.toString('utf8'))
    if (typeof marker === 'object' && marker !== null && 'format' in marker && Number.isInteger(marker.format)) {
      return Number(marker.format)
    }
  } catch (cause) {
    throw damaged(path, 'holds no valid JSON', cause)
  }
  throw damaged(path, 'does not say which format the store has')
}

// Linked as a whole and only if there is none: if several processes open a new folder at once, one writes it and all
// read it.
async function writeMarker(disk: Disk): Promise<void> {
  const path = join(disk.root, MARKER)
  const temporary = `${path}.${disk.unique()}`
  const marker = { store: 'holdfast', format: FORMAT }
  try {
    await disk.writeNew(temporary, Buffer.from(`${JSON.stringify(marker)}\n`))
    await disk.link(temporary, path)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    await disk.remove(temporary).catch(() => undefined)
  }
  await disk.flushFolder(disk.root)
  const found = await readMarker(disk)
  if (found !== undefined && found > FORMAT) {
    throw new SchemaTooNewError(`The store in ${disk.root}`, { found, supported: FORMAT })
  }
}

// A store that can only be read would fail at the first append, far from the mistake.
async function checkWritable(disk: Disk): Promise<void> {
  const probe = disk.temporary()
  try {
    await disk.writeNew(probe, Buffer.from('probe'))
    await disk.link(probe, `${probe}00`)
  } finally {
    await disk.remove(`${probe}00`).catch(() => undefined)
    await disk.remove(probe).catch(() => undefined)
  }
  await fs.access(join(disk.root, 'tenants'), fs.constants.W_OK)
}

/** Removes what processes that ended left unfinished. */
async function removeStrays(disk: Disk): Promise<void> {
  for (const folder of [disk.root, join(disk.root, 'tmp')]) {
    for (const name of (await disk.list(folder)) ?? []) {
      const writer = folder === disk.root ? name.slice(MARKER.length + 1) : name
      if (!isWriterGone(writer, disk.bootId, isAlive)) continue
      const path = join(folder, name)
      const seen = await disk.identify(path)
      // The age as well: in another container the same number may be another process, and that one alive.
      if (seen === undefined || Date.now() - Number(seen.modified / 1_000_000n) < STALE_MS) continue
      await disk.removeTree(path).catch(() => undefined)
    }
  }
}
