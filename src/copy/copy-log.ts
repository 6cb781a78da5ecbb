import { isHoldfastError } from '../core/errors.js'
import { threadIdInput } from '../core/ids.js'
import { nameLog } from '../core/log-name.js'
import type { Driver, Expect, Head, IndexFields, LogKey, StoredEntry } from '../log/contract.js'
import type { GroupCommit } from '../log/write/group-commit.js'
import { checkEntries } from './check-entries.js'
import { copyBlobs } from './copy-blobs.js'
import type { CopyRefusal, CopyRefusalReason, Tally } from './copy-report.js'

/** How many entries are read at a time, and how many bytes one append holds at most unless one entry alone has more. */
const PAGE = 64
const APPEND_BYTES = 4 * 1024 * 1024

/** How often a log that changes under the copy is looked at again. */
const MAX_LOOKS = 20

/** Both sides of a copy. */
export interface Sides {
  readonly from: Driver
  readonly to: Driver
  /** Appends to `to`, those of several logs together. */
  readonly commit: GroupCommit
  readonly tally: Tally
  readonly deleteMissing: boolean
}

class Refused extends Error {
  readonly reason: CopyRefusalReason
  constructor(reason: CopyRefusalReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/**
 * Copies one branch, or what is new in it. A part that was copied before is recognized by the hash where it ends; the
 * destination is never overwritten. Refusals and damage are noted, and leave the other branches alone.
 */
export async function copyLog(sides: Sides, key: LogKey): Promise<void> {
  try {
    await bringOver(sides, key)
  } catch (error) {
    const refusal = refusalOf(key, error)
    if (refusal === undefined) throw error
    sides.tally.refuse(refusal)
  }
  sides.tally.add({ branches: 1 })
}

async function bringOver(sides: Sides, key: LogKey): Promise<void> {
  const { from, to, tally } = sides
  let moved = false
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const source = await from.head(key)
    if (source === undefined) return
    const target = await to.head(key)
    if (target !== undefined && sides.deleteMissing && isBehindBase(source, target)) {
      const { tenant, thread, branch } = key
      const expect = [{ branch, incarnation: target.incarnation, seq: target.seq }]
      const gone = await to.erase({ tenant, thread, branch, expect, tombstone: null })
      if (gone !== 'conflict') tally.add({ removed: gone.erased })
      continue
    }
    if (target !== undefined) await checkJoint(sides, key, source, target)
    if (target === undefined || target.seq < source.seq) {
      moved = true
      // Others may prune the source in the meantime, or a second copy may write the same: what is there now decides.
      if (!(await bringPages(sides, key, source, target))) continue
    } else if (!isSameIndex(source.index, target.index)) {
      moved = true
      if (!(await to.reindex(key, expectOf(target), source.index))) continue
    }
    await markApplied(to, key, source)
    if (sides.deleteMissing && target !== undefined && target.base.seq < source.base.seq) {
      const [base] = await from.read(key, source.base.seq, 1)
      // What stands at the base may be a keyframe that only the source has there. Pruned on in the meantime: the next
      // copy sees.
      if (base?.seq !== source.base.seq) return
      await copyBlobs(from, to, key, checkEntries(key, source.incarnation, undefined, [base]).blobs, tally)
      const pruned = await to.prune(key, source.incarnation, source.base.seq, base)
      if (pruned !== 'conflict') tally.add({ removed: pruned.removed })
    }
    if (!moved) tally.add({ same: 1 })
    return
  }
  throw new Refused('diverged', `${nameLog(key)} changes faster than it can be copied. Copy again when it is at rest.`)
}

/** The source was pruned past the end of what was copied: nothing that it still has connects. */
function isBehindBase(source: Head, target: Head): boolean {
  return target.incarnation === source.incarnation && target.seq < source.base.seq
}

/** Whether what the destination has is a beginning of what the source has. */
async function checkJoint({ from }: Sides, key: LogKey, source: Head, target: Head): Promise<void> {
  const name = nameLog(key)
  if (target.incarnation !== source.incarnation) {
    throw new Refused('exists', `The destination has another ${name}. Erase it there, or copy to another store.`)
  }
  if (target.seq > source.seq || target.epoch > source.epoch) {
    throw new Refused(
      'ahead',
      `${name} was run at the destination after it was copied. Stop running it on one of the two sides.`,
    )
  }
  if (target.seq === source.seq) {
    if (target.hash === source.hash) return
    throw diverged(name)
  }
  if (isBehindBase(source, target)) {
    throw new Refused(
      'gap',
      `${name} was pruned in the source beyond entry ${target.seq}, where the copy ends. Erase it there and copy again.`,
    )
  }
  const [joint] = await from.read(key, target.seq, 1)
  if (joint?.seq === target.seq && joint.hash !== target.hash) throw diverged(name)
}

function diverged(name: string): Refused {
  return new Refused('diverged', `${name} has entries on each side that the other lacks. Erase it on one side.`)
}

/** False if either side changed in the meantime. */
async function bringPages(sides: Sides, key: LogKey, source: Head, target: Head | undefined): Promise<boolean> {
  const { from, to, tally } = sides
  let at: Expect | null = target === undefined ? null : expectOf(target)
  let next = target === undefined ? source.base.seq : target.seq + 1
  while (next <= source.seq) {
    const page = (await from.read(key, next, PAGE)).filter((entry) => entry.seq <= source.seq)
    if (page[0]?.seq !== next) return false
    for (const entries of cut(page)) {
      const last = entries.at(-1) as StoredEntry
      const { epoch, blobs, verified } = checkEntries(key, source.incarnation, at ?? undefined, entries)
      await copyBlobs(from, to, key, blobs, tally)
      const isEnd = last.seq === source.seq
      const result = await sides.commit.submit({
        log: key,
        expect: at,
        entries,
        incarnation: source.incarnation,
        epoch: isEnd ? source.epoch : epoch,
        lease: { kind: 'keep' },
        index: isEnd ? source.index : unfinished(source.index),
        labelsChanged: true,
        copied: true,
      })
      if (result.status !== 'appended') return false
      await compare(to, key, entries)
      at = { incarnation: source.incarnation, seq: last.seq, hash: last.hash, epoch: isEnd ? source.epoch : epoch }
      tally.add({ entries: entries.length, verified, bytes: sizeOf(entries) })
      await markApplied(to, key, { incarnation: source.incarnation, seq: last.seq })
      next = last.seq + 1
    }
  }
  return true
}

/** Until its last entry is there, nobody finds a thread that looks finished, and no worker finds anything to do. */
function unfinished(index: IndexFields): IndexFields {
  return { ...index, status: 'copying', wakeAt: null, expiresAt: null }
}

/**
 * What entries carry for the store is in its items, which are copied themselves: applying it again would bring back
 * what was deleted since.
 */
async function markApplied(
  to: Driver,
  key: LogKey,
  { incarnation, seq }: Pick<Head, 'incarnation' | 'seq'>,
): Promise<void> {
  if (to.capabilities.storeAtomic) return
  await to.applyWrites?.(key, incarnation, [], { upTo: seq, redo: true })
}

async function compare(to: Driver, key: LogKey, sent: readonly StoredEntry[]): Promise<void> {
  const back = await to.read(key, (sent[0] as StoredEntry).seq, sent.length)
  for (const [i, entry] of sent.entries()) {
    const arrived = back[i]
    const isSame =
      arrived?.seq === entry.seq &&
      arrived.hash === entry.hash &&
      arrived.keyframe === entry.keyframe &&
      Buffer.compare(arrived.header, entry.header) === 0 &&
      Buffer.compare(arrived.body, entry.body) === 0
    if (isSame) continue
    throw new Refused(
      'damaged',
      `The destination returned other bytes for entry ${entry.seq} of ${nameLog(key)} than were sent.`,
    )
  }
}

function* cut(page: readonly StoredEntry[]): Generator<readonly StoredEntry[]> {
  let part: StoredEntry[] = []
  for (const entry of page) {
    if (part.length > 0 && sizeOf(part) + sizeOf([entry]) > APPEND_BYTES) {
      yield part
      part = []
    }
    part.push(entry)
  }
  if (part.length > 0) yield part
}

function sizeOf(entries: readonly StoredEntry[]): number {
  return entries.reduce((sum, { header, body }) => sum + header.length + body.length, 0)
}

function expectOf({ incarnation, seq, hash, epoch }: Head): Expect {
  return { incarnation, seq, hash, epoch }
}

function isSameIndex(a: IndexFields, b: IndexFields): boolean {
  const comparable = ({ status, createdAt, updatedAt, expiresAt, wakeAt, tags, metadata, origin }: IndexFields) =>
    JSON.stringify([
      [status, createdAt, updatedAt, expiresAt, wakeAt, tags],
      Object.entries(metadata).sort(([x], [y]) => (x < y ? -1 : 1)),
      origin && [origin.branch, origin.incarnation, origin.seq, origin.hash],
    ])
  return comparable(a) === comparable(b)
}

function refusalOf(key: LogKey, error: unknown): CopyRefusal | undefined {
  const { tenant, branch } = key
  const thread = threadIdInput(key.thread)
  if (error instanceof Refused) return { tenant, thread, branch, reason: error.reason, message: error.message }
  if (!isHoldfastError(error, 'corrupt')) return undefined
  return { tenant, thread, branch, reason: 'damaged', message: error.message }
}
