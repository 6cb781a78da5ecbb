import { ConflictError, isHoldfastError, NotFoundError } from '../core/errors.js'
import { checkOptionNames } from '../core/wording/option-names.js'
import {
  type BranchId,
  parseBranchId,
  parseThreadId,
  type TenantId,
  type ThreadIdInput,
  threadIdInput,
} from '../core/ids.js'
import type { Driver, LogKey } from '../log/contract.js'
import { KEY_THREAD } from '../log/keys/keys.js'
import type { LogStore } from '../log/log-store.js'
import { GroupCommit } from '../log/write/group-commit.js'
import type { Archive } from './archive.js'
import type { ArchivedFile } from './archived-file.js'
import { pastWriter } from './swept-archive.js'

/** An archived stretch of a branch. */
export interface ArchivedPart {
  readonly thread: ThreadIdInput
  readonly branch: string
  /** 'thread': up to where the branch ended. 'past': what was pruned, while the branch continued. */
  readonly kind: 'thread' | 'past'
  /** The numbers of its first and last entry. */
  readonly first: number
  readonly last: number
  readonly entries: number
  readonly blobs: number
  /** Of the file, compressed. */
  readonly bytes: number
  readonly archivedAt: Date
  /** The name of the file in the folder or bucket. */
  readonly file: string
}

/** What a walk through archived files found. */
export interface ArchiveCheck {
  readonly ok: boolean
  readonly files: number
  readonly entries: number
  readonly problems: readonly string[]
}

/** What an archive works with. */
export interface ArchiveParts<View> {
  readonly archive: Archive
  readonly driver: Driver
  /** A store in memory, and whoever looks at what `fill` put into it. */
  readonly openMemory: () => Promise<Driver>
  readonly view: (memory: Driver) => View
}

/** The archive of one tenant: a folder or bucket with threads, or the older history of threads, as compressed files. */
export class ThreadArchive<View> {
  readonly #parts: ArchiveParts<View>
  readonly #logs: LogStore
  readonly #tenant: TenantId

  constructor(parts: ArchiveParts<View>, logs: LogStore, tenant: TenantId) {
    this.#parts = parts
    this.#logs = logs
    this.#tenant = tenant
  }

  /** Where it is. */
  get description(): string {
    return this.#parts.archive.place.description
  }

  /**
   * Moves a whole thread there: written, read back, and then removed from the store if nobody used it in the meantime.
   * A tombstone with the reason 'archived' stays. With `keep`, the thread stays as well. Throws ConflictError if it was
   * used.
   */
  async store(thread: ThreadIdInput, options: { readonly keep?: boolean } = {}): Promise<readonly ArchivedPart[]> {
    checkOptionNames('hf.archive.store()', options, { keep: true })
    const id = parseThreadId(thread)
    const { heads } = await this.#logs.list({ tenant: this.#tenant, thread: id, limit: 10_000 })
    if (heads.length === 0) throw new NotFoundError(`There is no thread ${id}.`, 'Check the id.', { thread: id })
    const held = heads.find(({ lease }) => lease !== null)
    if (held && !options.keep) {
      throw new ConflictError(`Thread ${id} is being run. Archive it when it is at rest.`, { thread: id })
    }
    const files: ArchivedFile[] = []
    for (const head of heads) files.push(...(await this.#parts.archive.write(head, 'thread')))
    if (!options.keep) {
      const expect = heads.map(({ log, incarnation, seq }) => ({ branch: log.branch, incarnation, seq }))
      const tombstone = { at: this.#logs.clock.now(), reason: 'archived' }
      const result = await this.#logs.erase({ tenant: this.#tenant, thread: id, expect, tombstone })
      if (result === 'conflict') {
        for (const { name } of files) await this.#parts.archive.removeFile(name)
        throw new ConflictError(`Thread ${id} was used while it was archived. It stays where it is.`, { thread: id })
      }
    }
    return files.map(partOf)
  }

  /**
   * Moves the older history of a branch there: like `prune`, but what it removes is written first. The thread's `at()`
   * and `history()` still reach it, as long as the store is opened with this archive.
   */
  async prune(
    thread: ThreadIdInput,
    seq: number,
    options: { readonly branch?: string; readonly evenTagged?: boolean } = {},
  ): Promise<{ readonly removed: number; readonly archived: readonly ArchivedPart[] }> {
    checkOptionNames('hf.archive.prune()', options, { branch: true, evenTagged: true })
    const branch = options.branch === undefined ? ('main' as BranchId) : parseBranchId(options.branch)
    const key: LogKey = { tenant: this.#tenant, thread: parseThreadId(thread), branch }
    const files: ArchivedFile[] = []
    const { removed } = await this.#logs.prune(key, seq, {
      evenTagged: options.evenTagged ?? false,
      beforeRemoval: pastWriter(this.#parts.archive, this.#parts.driver, key, (written) => files.push(...written)),
    })
    return { removed, archived: files.map(partOf) }
  }

  /** What is archived, for one thread or for all. */
  async list(thread?: ThreadIdInput): Promise<readonly ArchivedPart[]> {
    const files = await this.#parts.archive.list(this.#tenant, thread === undefined ? undefined : parseThreadId(thread))
    return files.map(partOf)
  }

  /**
   * Brings a thread back as it was, with every hash. Its files stay; `remove` removes them. An existing thread with the
   * same name is not touched: then it throws ConflictError.
   */
  async restore(thread: ThreadIdInput): Promise<{ readonly branches: readonly string[]; readonly entries: number }> {
    const { driver, archive } = this.#parts
    const { copyLog, Tally } = await loadCopy()
    const memory = await this.#parts.openMemory()
    const tally = new Tally(undefined)
    const commit = new GroupCommit(driver)
    try {
      const id = parseThreadId(thread)
      const keys = await archive.load(this.#tenant, id, memory)
      await this.#refuseOther(id, memory)
      const sides = { from: memory, to: driver, commit, tally, deleteMissing: false }
      for (const key of keys) {
        await copyLog(sides, key)
        const [refused] = tally.refused
        // Before any branch that could be brought: half of one thread beside another is neither.
        if (refused) throw new ConflictError(refused.message, { thread: refused.thread, reason: refused.reason })
      }
      return { branches: keys.map(({ branch }) => branch), entries: tally.counts.entries }
    } finally {
      await commit.close()
      await memory.close()
    }
  }

  /** An existing thread may only be what an interrupted restore of the same one left behind. */
  async #refuseOther(thread: LogKey['thread'], archived: Driver): Promise<void> {
    const { heads } = await this.#logs.list({ tenant: this.#tenant, thread, limit: 10_000 })
    for (const { log, incarnation } of heads) {
      if ((await archived.head(log))?.incarnation === incarnation) continue
      throw new ConflictError(`Thread ${thread} exists, and is not the one that is archived.`, { thread })
    }
  }

  /**
   * Opens an archived thread for reading, without restoring it: a store in memory that holds it alone. Close it at the
   * end.
   */
  async look(thread: ThreadIdInput): Promise<View> {
    const { archive, driver } = this.#parts
    const { copyLog, Tally } = await loadCopy()
    const memory = await this.#parts.openMemory()
    try {
      const commit = new GroupCommit(memory)
      const sides = { from: driver, to: memory, commit, tally: new Tally(undefined), deleteMissing: false }
      await copyLog(sides, { tenant: this.#tenant, thread: KEY_THREAD, branch: 'main' as BranchId })
      await archive.load(this.#tenant, parseThreadId(thread), memory)
      return this.#parts.view(memory)
    } catch (error) {
      await memory.close()
      throw error
    }
  }

  /** Reads every file, checks its sum, and recomputes the hash of every entry that has no key. */
  async verify(thread?: ThreadIdInput): Promise<ArchiveCheck> {
    const { archive } = this.#parts
    const problems: string[] = []
    let entries = 0
    const files = await archive.list(this.#tenant, thread === undefined ? undefined : parseThreadId(thread))
    for (const { name } of files) {
      try {
        entries += (await archive.read(name)).entries.length
      } catch (error) {
        if (!isHoldfastError(error)) throw error
        problems.push(error.message)
      }
    }
    return { ok: problems.length === 0, files: files.length, entries, problems }
  }

  /** Removes the archived files of a thread, for good. */
  remove(thread: ThreadIdInput): Promise<{ readonly removed: number }> {
    return this.#parts.archive.remove(this.#tenant, parseThreadId(thread))
  }
}

// When it is used: whoever opens a store need not wait for it.
async function loadCopy() {
  const [{ copyLog }, { Tally }] = await Promise.all([import('../copy/copy-log.js'), import('../copy/copy-report.js')])
  return { copyLog, Tally }
}

function partOf(file: ArchivedFile): ArchivedPart {
  const { thread, branch, kind, first, last, entries, blobs, bytes, archivedAt, name } = file
  return {
    thread: threadIdInput(thread),
    branch,
    kind,
    first,
    last,
    entries,
    blobs,
    bytes,
    archivedAt: new Date(archivedAt),
    file: name,
  }
}
