import { createHash, randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { InvalidOptionError } from '../core/errors.js'
import { writeNewFile } from '../core/write-new-file.js'

/** One object of a place. */
export interface PlacedObject {
  readonly name: string
  readonly size: number
  /** When it was written, by the place's own clock. */
  readonly at: number
}

/**
 * Cheap storage for bytes under names: a folder, a bucket, or four functions of your own. Names consist of lower-case
 * letters, digits, `_`, `-`, `.` and `/`. Once `put` has resolved, an object survives what the place promises to
 * survive.
 */
export interface ArchivePlace {
  /** For messages. */
  readonly description: string
  /** Writes an object, completely or not at all; one with that name is replaced. */
  put(name: string, bytes: Uint8Array): Promise<void>
  /** Undefined if there is none; a place that does not answer is an error. */
  get(name: string): Promise<Uint8Array | undefined>
  /** Every object whose name begins with this, in any order. */
  list(prefix: string): AsyncIterable<PlacedObject>
  /** Removing what doesn't exist is no error. */
  remove(name: string): Promise<void>
}

const MOST_READABLE = 120

/**
 * An id as part of a name: anything other than a lower-case letter, digit or dash becomes `_xx`, and a long id is
 * shortened to its beginning and a hash. So no id leads out of its place, and no two collide where case does not count.
 * The object itself has the id.
 */
export function placeName(id: string): string {
  let name = ''
  for (const byte of Buffer.from(id)) {
    const char = String.fromCharCode(byte)
    name += /[a-z0-9-]/.test(char) ? char : `_${byte.toString(16).padStart(2, '0')}`
  }
  if (name.length <= MOST_READABLE) return name
  return `${name.slice(0, 60).replace(/_.?$/, '')}__${createHash('sha256').update(id).digest('hex')}`
}

/** A folder as a place. Files are flushed and moved into place, so that one is there whole or not at all. */
export function folderPlace(folder: string): ArchivePlace {
  if (typeof folder !== 'string' || folder === '')
    throw new InvalidOptionError('archive', 'is not the path of a folder', 'Pass file:archive or s3://bucket/prefix.')
  const root = resolve(folder)
  return {
    description: `folder ${root}`,
    async put(name, bytes) {
      const path = join(root, name)
      const parent = dirname(path)
      await mkdir(parent, { recursive: true, mode: 0o700 })
      const temporary = join(parent, `.${randomBytes(8).toString('hex')}.tmp`)
      await writeNewFile(temporary, bytes)
      await rename(temporary, path)
      await flush(parent)
    },
    async get(name) {
      return readFile(join(root, name)).catch(ifMissing(undefined))
    },
    async *list(prefix) {
      // From the innermost folder that all names with this beginning lie in.
      const inner = prefix.includes('/') ? prefix.slice(0, prefix.lastIndexOf('/')) : ''
      for await (const name of walk(root, inner)) {
        if (!name.startsWith(prefix)) continue
        const found = await stat(join(root, name)).catch(ifMissing(undefined))
        if (found !== undefined) yield { name, size: found.size, at: found.mtimeMs }
      }
    },
    async remove(name) {
      await rm(join(root, name), { force: true })
      // Folders that became empty go with it; one that is not empty stays.
      for (let at = dirname(name); at !== '.'; at = dirname(at)) {
        const emptied = await rmdir(join(root, at)).then(
          () => true,
          () => false,
        )
        if (!emptied) return
      }
    },
  }
}

async function* walk(root: string, folder: string): AsyncGenerator<string> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(ifMissing([]))
  for (const entry of entries) {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) yield* walk(root, name)
    else if (!entry.name.endsWith('.tmp')) yield name
  }
}

async function flush(folder: string): Promise<void> {
  // A folder can't be opened for that on Windows, which keeps names by itself.
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => undefined)
  await handle?.close()
}

function ifMissing<Instead>(instead: Instead): (error: NodeJS.ErrnoException) => Instead {
  return (error) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return instead
    throw error
  }
}
