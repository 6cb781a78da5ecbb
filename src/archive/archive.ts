import { decodeHeader } from '../codec/header.js'
import { checkEntries } from '../copy/check-entries.js'
import { ConflictError, CorruptError, NotFoundError } from '../core/errors.js'
import type { BranchId, TenantId, ThreadId } from '../core/ids.js'
import { nameLog } from '../core/log-name.js'
import type { Driver, Head, LogKey, StoredEntry } from '../log/contract.js'
import { aboutName, type ArchivedFile, branchFolder, FILE, fileName, folderOf } from './archived-file.js'
import { newestChain, newestLife } from './newest-files.js'
import type { ArchivePlace } from './place.js'
import { readSegment, readSegmentHead, type Segment, type SegmentHead, writeSegment } from './segment.js'

const MAIN = 'main' as BranchId
const PAGE = 64
/** A file is cut at the first keyframe after this many bytes of entries. */
const SEGMENT_BYTES = 8 * 1024 * 1024
/** Files that are kept unpacked in memory: whoever looks at one old state usually looks at the next one too. */
const KEPT = 4

/** The archived files of a store: written from its logs, found again by branch and number, loaded into another store. */
export class Archive {
  readonly place: ArchivePlace
  readonly #driver: Driver
  readonly #now: () => number
  #stamped = 0
  readonly #kept = new Map<string, Promise<Segment>>()

  constructor(driver: Driver, place: ArchivePlace, now: () => number) {
    this.#driver = driver
    this.place = place
    this.#now = now
  }

  /**
   * Writes entries of a branch starting with its first kept one: all ('thread'), or those before a keyframe ('past').
   * Each file is read back before this resolves. Entries that do not verify are refused: an archive of damage helps
   * nobody.
   */
  async write(head: Head, kind: SegmentHead['kind'], before = head.seq + 1): Promise<readonly ArchivedFile[]> {
    const { log: key, incarnation } = head
    const files: ArchivedFile[] = []
    let parts: StoredEntry[] = []
    let bytes = 0
    let at: { readonly seq: number; readonly hash: string } | undefined
    const life = await this.#lifeOf(head)
    const flush = async (): Promise<void> => {
      const previous = files.at(-1)
      const from = previous && { seq: previous.last, hash: previous.hash }
      if (parts.length > 0) files.push(await this.#writeOne(head, { kind, ...life }, from, parts))
      parts = []
      bytes = 0
    }
    for (let next = head.base.seq; next < before; ) {
      const page = (await this.#driver.read(key, next, PAGE)).filter((entry) => entry.seq < before)
      if (page[0]?.seq !== next) throw changed(key)
      checkEntries(key, incarnation, at, page)
      for (const entry of page) {
        if (bytes > SEGMENT_BYTES && entry.keyframe === entry.seq) await flush()
        parts.push(entry)
        bytes += entry.header.length + entry.body.length
        at = { seq: entry.seq, hash: entry.hash }
      }
      next = (page.at(-1) as StoredEntry).seq + 1
    }
    await flush()
    return files
  }

  /** Later with each file, even within one millisecond: the newest is what is restored. */
  #stamp(): number {
    this.#stamped = Math.max(this.#stamped + 1, this.#now())
    return this.#stamped
  }

  async #lifeOf({ log, incarnation }: Head): Promise<Pick<SegmentHead, 'life'>> {
    if (log.branch === MAIN) return { life: incarnation }
    const main = await this.#driver.head({ ...log, branch: MAIN })
    return main === undefined ? {} : { life: main.incarnation }
  }

  async #writeOne(
    head: Head,
    as: Pick<SegmentHead, 'kind' | 'life'>,
    from: { readonly seq: number; readonly hash: string } | undefined,
    entries: readonly StoredEntry[],
  ): Promise<ArchivedFile> {
    const { tenant, thread, branch } = head.log
    const first = entries[0] as StoredEntry
    const last = entries.at(-1) as StoredEntry
    const { blobs, epoch } = checkEntries(head.log, head.incarnation, from, entries)
    const contents = await this.#driver.getBlobs(tenant, [...blobs.keys()])
    const missing = [...blobs.keys()].find((hash) => !contents.has(hash))
    if (missing !== undefined)
      throw new CorruptError(`A blob that ${nameLog(head.log)} points to is missing: ${missing}.`, { blob: missing })
    const about: SegmentHead = {
      tenant,
      thread,
      branch,
      incarnation: head.incarnation,
      ...as,
      first: first.seq,
      last: last.seq,
      hash: last.hash,
      start: first.hash,
      parent: decodeHeader(first.header).parent ?? from?.hash ?? '',
      epoch: last.seq === head.seq ? head.epoch : epoch,
      index: { ...head.index, metadata: { ...head.index.metadata } },
      archivedAt: this.#stamp(),
      entries: entries.length,
      blobs: contents.size,
    }
    const bytes = await writeSegment({ head: about, entries, blobs: contents })
    const name = fileName(about)
    await this.place.put(name, bytes)
    const back = await this.place.get(name)
    if (back === undefined)
      throw new CorruptError(`${this.place.description} lost ${name} right after it was written.`, { archive: name })
    await readSegment(name, back)
    const file = { ...about, name, bytes: bytes.length }
    // For lists, which need not read the file itself. Without it they do.
    await this.place.put(aboutName(name), Buffer.from(JSON.stringify(file)))
    return file
  }

  /** The archived files of a tenant, or of one of its threads. */
  async list(tenant: TenantId, thread?: ThreadId): Promise<readonly ArchivedFile[]> {
    const found: ArchivedFile[] = []
    for await (const { name, size } of this.place.list(folderOf(tenant, thread))) {
      if (!name.endsWith(FILE)) continue
      const about = await this.place.get(aboutName(name))
      const file =
        about === undefined
          ? { ...readSegmentHead(name, (await this.place.get(name)) ?? new Uint8Array()), name, bytes: size }
          : (JSON.parse(Buffer.from(about).toString()) as ArchivedFile)
      // A shortened name is shared by nobody, but only the file itself says whose it is.
      if (file.tenant === tenant && (thread === undefined || file.thread === thread)) found.push(file)
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** The file that holds an entry of a branch, as far as it is archived. */
  async find(log: LogKey, incarnation: string, seq: number): Promise<Segment | undefined> {
    for await (const { name } of this.place.list(`${branchFolder(log, incarnation)}/`)) {
      const range = /(\d+)-(\d+)\.hfa$/.exec(name)
      if (range === null || seq < Number(range[1]) || seq > Number(range[2])) continue
      return this.read(name)
    }
    return undefined
  }

  /** A file, checked. */
  read(name: string): Promise<Segment> {
    const known = this.#kept.get(name)
    if (known !== undefined) return known
    const reading = this.#load(name)
    this.#kept.set(name, reading)
    reading.catch(() => this.#kept.delete(name))
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest)
    return reading
  }

  async #load(name: string): Promise<Segment> {
    const bytes = await this.place.get(name)
    if (bytes === undefined) throw new NotFoundError(`There is no archive ${name}.`, 'List what there is.', { name })
    const segment = await readSegment(name, bytes)
    const { head, entries } = segment
    // A file begins with a keyframe, which names what lies before it.
    checkEntries(head, head.incarnation, undefined, entries)
    return segment
  }

  /** A blob of a recently read file: an entry that came from there points to it. */
  async blob(tenant: TenantId, hash: string): Promise<Uint8Array | undefined> {
    for (const one of this.#kept.values()) {
      const segment = await one.catch(() => undefined)
      const found = segment?.head.tenant === tenant ? segment.blobs.get(hash) : undefined
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Writes an archived thread into another store, as it was. Throws NotFoundError if none of it is archived. */
  async load(tenant: TenantId, thread: ThreadId, into: Driver): Promise<readonly LogKey[]> {
    const files = newestLife(await this.list(tenant, thread))
    const keys: LogKey[] = []
    for (const branch of new Set(files.map((file) => file.branch))) {
      const chain = await this.#loadable(newestChain(files.filter((file) => file.branch === branch)))
      const key = { tenant, thread, branch }
      await this.#loadBranch(key, chain, into)
      keys.push(key)
    }
    if (keys.length > 0) return keys
    throw new NotFoundError(
      `Nothing of thread "${thread}" is in ${this.place.description}.`,
      'List what is archived.',
      {
        thread,
      },
    )
  }

  /**
   * The files that can be one log again. Where a branch was trimmed, a keyframe took the place of an entry, and what
   * came later may build on it: then the log begins with that keyframe, and what comes before stays in the archive, as
   * it did before.
   */
  async #loadable(chain: readonly ArchivedFile[]): Promise<readonly ArchivedFile[]> {
    const named = new Set<number>()
    for (let i = chain.length - 1; i > 0; i--) {
      const { entries } = await this.read((chain[i] as ArchivedFile).name)
      for (const { seq, keyframe } of entries) if (keyframe !== seq) named.add(keyframe)
      const [first] = entries
      if (first === undefined || decodeHeader(first.header).stands === undefined) continue
      // The entry itself must be in the file before, which it is not where the branch was pruned without an archive.
      const isThere = chain[i - 1]?.last === first.seq
      if (!isThere || named.has(first.seq)) return chain.slice(i)
    }
    return chain
  }

  async #loadBranch(key: LogKey, chain: readonly ArchivedFile[], into: Driver): Promise<void> {
    let at: { incarnation: string; seq: number; hash: string; epoch: number } | null = null
    for (const { name } of chain) {
      const { head, entries: all, blobs } = await this.read(name)
      const last: number = at?.seq ?? -1
      // Where a file joins at an entry that was replaced by a keyframe, the entry itself is in the one before.
      const entries = all.filter(({ seq }) => seq > last)
      if (entries.length === 0) continue
      await into.putBlobs(
        key.tenant,
        [...blobs].map(([hash, bytes]) => ({ hash, bytes })),
      )
      const [result] = await into.append([
        {
          log: key,
          expect: at,
          entries,
          incarnation: head.incarnation,
          epoch: head.epoch,
          lease: { kind: 'keep' },
          index: head.index,
          labelsChanged: true,
          copied: true,
        },
      ])
      if (result?.status !== 'appended') throw changed(key)
      at = { incarnation: head.incarnation, seq: head.last, hash: head.hash, epoch: head.epoch }
    }
  }

  /** Removes the archived files of a thread, or of all threads of a tenant. */
  async remove(tenant: TenantId, thread?: ThreadId): Promise<{ readonly removed: number }> {
    const files = await this.list(tenant, thread)
    for (const { name } of files) await this.removeFile(name)
    return { removed: files.length }
  }

  async removeFile(name: string): Promise<void> {
    this.#kept.delete(name)
    await this.place.remove(name)
    await this.place.remove(aboutName(name))
  }
}

function changed(key: LogKey): ConflictError {
  return new ConflictError(`${nameLog(key)} changed in the meantime. Try again.`, { log: key })
}
