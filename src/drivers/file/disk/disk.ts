import { randomBytes } from 'node:crypto'
import {
  type BigIntStats,
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
} from 'node:fs'
import * as fs from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import { LoopTurn } from '../../shared/loop-turn.js'
import { writerName } from '../records/names.js'

/**
 * Internal, for tests: called with the name of a system call before it is made, so that a test can end the process
 * there or throw an error in its place. Not part of the public API.
 */
export type FaultHook = (point: string) => void | Promise<void>

/** Readable only by their owner: other users of this machine must not read what agents were told. */
export const FOLDER_MODE = 0o700
const FILE_MODE = 0o600

/** Tells a file from every other one that ever had its name. */
export interface FileIdentity {
  readonly inode: bigint
  readonly modified: bigint
  readonly size: bigint
}

/** What the driver asks of the system, with a fault point in front of each change and of each look. Errors are the system's own. */
export interface Disk {
  readonly root: string
  readonly bootId: string
  /** A new name in the folder for unfinished files. */
  temporary(): string
  /** A name that no other attempt uses, with the process in it. */
  unique(): string
  /** Writes a new file whole, and flushes it unless told otherwise. */
  writeNew(path: string, bytes: Uint8Array, options?: { readonly flush?: boolean }): Promise<FileIdentity>
  link(from: string, to: string): Promise<void>
  rename(from: string, to: string): Promise<void>
  /** If it is already absent, that is no error. */
  remove(path: string): Promise<void>
  /** Cuts a file off behind its first `size` bytes. One that is absent, or another by now, is left alone. */
  truncate(path: string, size: number, identity: FileIdentity): Promise<void>
  /** True if it is gone, false if something is in it. */
  removeFolder(path: string): Promise<boolean>
  removeTree(path: string): Promise<void>
  makeFolder(path: string): Promise<void>
  /** Creates a folder and its parents up to the root, and flushes the names. Cheap once done. */
  ensureFolder(path: string): Promise<void>
  /** Makes names in a folder durable. */
  flushFolder(path: string): Promise<void>
  /** Undefined if there is none. */
  list(path: string): Promise<string[] | undefined>
  identify(path: string): Promise<FileIdentity | undefined>
  read(path: string): Promise<Buffer | undefined>
  /** At least the first `size` bytes, as far as the file has them. */
  readStart(
    path: string,
    size: number,
  ): Promise<{ readonly bytes: Buffer; readonly identity: FileIdentity } | undefined>
}

export function openDisk(options: {
  readonly root: string
  readonly bootId: string
  readonly fsync: boolean
  readonly faults?: FaultHook | undefined
}): Disk {
  const { root, bootId, fsync, faults } = options
  const ensured = new Set<string>()
  const tag = randomBytes(6).toString('hex')
  let count = 0

  async function at<Result>(point: string, call: () => Promise<Result>): Promise<Result> {
    if (faults !== undefined) await faults(point)
    return call()
  }

  // What is looked at is in the system's memory, mostly: the look itself takes a few microseconds, and to ask another
  // thread for it many times as long. Whatever takes many looks lets the event loop turn.
  const turn = new LoopTurn()
  async function look<Result>(point: string, call: () => Result): Promise<Result> {
    if (faults !== undefined) await faults(point)
    if (!turn.begin(performance.now()) && turn.isLong) await immediate()
    return call()
  }

  const unique = () => writerName(bootId, process.pid, `${tag}${(count++).toString(16).padStart(6, '0')}`)

  async function flushFolder(path: string): Promise<void> {
    // Windows can't flush a folder; its filesystem writes names through its own journal.
    if (!fsync || process.platform === 'win32') return
    const handle = await at('open-folder', () => fs.open(path, 'r'))
    try {
      await at('flush-folder', () => handle.sync())
    } finally {
      await handle.close()
    }
  }

  async function ensureFolder(path: string): Promise<void> {
    if (ensured.has(path) || path === root) return
    await ensureFolder(dirname(path))
    await at('make-folder', () => fs.mkdir(path, { mode: FOLDER_MODE })).catch(ignore('EEXIST'))
    // Even if another process created it: that one may not have gotten around to flushing the name.
    await flushFolder(dirname(path))
    if (ensured.size > 100_000) ensured.clear()
    ensured.add(path)
  }

  return {
    root,
    bootId,
    unique,
    temporary: () => join(root, 'tmp', unique()),

    async writeNew(path, bytes, { flush = true } = {}) {
      const handle = await at('create-file', () => fs.open(path, 'wx', FILE_MODE))
      try {
        await at('write-file', () => handle.writeFile(bytes))
        if (flush && fsync) await at('flush-file', () => handle.sync())
        return identityOf(await at('stat-file', () => handle.stat({ bigint: true })))
      } finally {
        await handle.close()
      }
    },

    link: (from, to) => at('link', () => fs.link(from, to)),
    rename: (from, to) => at('rename', () => fs.rename(from, to)),
    remove: (path) => at('remove', () => fs.unlink(path)).catch(ignore('ENOENT')),

    async truncate(path, size, identity) {
      const handle = await at('open-file', () => fs.open(path, 'r+')).catch(ignore('ENOENT'))
      if (handle === undefined) return
      try {
        const seen = identityOf(await at('stat-file', () => handle.stat({ bigint: true })))
        if (isSameFile(seen, identity)) await at('truncate', () => handle.truncate(size))
      } finally {
        await handle.close()
      }
    },

    async removeFolder(path) {
      try {
        await at('remove-folder', () => fs.rmdir(path))
        ensured.delete(path)
        return true
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return true
        if (hasCode(error, 'ENOTEMPTY', 'EEXIST')) return false
        throw error
      }
    },

    removeTree: (path) => at('remove-tree', () => fs.rm(path, { recursive: true, force: true })),
    makeFolder: (path) => at('make-folder', () => fs.mkdir(path, { mode: FOLDER_MODE })),
    ensureFolder,
    flushFolder,
    // A file where a folder would be is not ours.
    list: (path) => look('list', () => orAbsent(path, () => readdirSync(path), 'ENOENT', 'ENOTDIR')),

    async identify(path) {
      const stats = await look('stat', () => statSync(path, { bigint: true, throwIfNoEntry: false }))
      return stats && identityOf(stats)
    },

    read: (path) => look('read', () => orAbsent(path, () => readFileSync(path), 'ENOENT')),

    readStart: (path, size) =>
      look('open-file', () =>
        orAbsent(
          path,
          () => {
            const file = openSync(path, 'r')
            try {
              const identity = identityOf(fstatSync(file, { bigint: true }))
              const bytes = Buffer.alloc(Math.min(size, Number(identity.size)))
              let filled = 0
              while (filled < bytes.length) {
                const count = readSync(file, bytes, filled, bytes.length - filled, filled)
                if (count === 0) break
                filled += count
              }
              return { bytes: bytes.subarray(0, filled), identity }
            } finally {
              closeSync(file)
            }
          },
          'ENOENT',
        ),
      ),
  }
}

/** What a look returns, or undefined if there is nothing of that name, which is asked first: an error takes far longer. */
function orAbsent<Result>(path: string, look: () => Result, ...codes: readonly string[]): Result | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined ? undefined : look()
  } catch (error) {
    return ignore(...codes)(error)
  }
}

export function isSameFile(a: FileIdentity | undefined, b: FileIdentity): boolean {
  return a !== undefined && a.inode === b.inode && a.modified === b.modified && a.size === b.size
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}

function ignore(...codes: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!hasCode(error, ...codes)) throw error
    return undefined
  }
}

function identityOf(stats: BigIntStats): FileIdentity {
  return { inode: stats.ino, modified: stats.mtimeNs, size: stats.size }
}
