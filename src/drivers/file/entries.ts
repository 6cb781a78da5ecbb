import { join } from 'node:path'
import type { LogKey, StoredEntry, StoredHeader, Tail } from '../../log/contract.js'
import { type ChainLink, missingRecord, readLink } from './records/chain.js'
import { headOf } from './records/lease.js'
import { findLog } from './records/logs.js'
import { slotName } from './records/names.js'
import { type LogRecord, parseEntries, parsePreamble, parseRecord, parseStandIn, splitLines } from './records/record.js'
import { type FileStore, type LogState, logName } from './store.js'

const AT_ONCE = 8

/** A log at one moment. Its records never change; at most they are pruned away while they are read. */
interface Snapshot {
  readonly folder: string
  readonly newest: ChainLink<LogRecord>
  readonly slots: readonly number[]
}

/** Thrown while reading when a record is not there: pruned in the meantime, or missing. */
class RecordGone extends Error {
  readonly slot: number
  constructor(slot: number) {
    super(`record ${slot} is gone`)
    this.slot = slot
  }
}

export async function readTail(store: FileStore, key: LogKey, upTo?: number): Promise<Tail | undefined> {
  return read(store, key, async (snapshot, state) => {
    const head = await headOf(store, { ...state, newest: snapshot.newest })
    const end = upTo ?? head.seq
    if (end < head.base.seq || end > head.seq) return { head, entries: [] }
    const last = await findRecord(store, snapshot, end)
    const line = last.record.entries.find((entry) => entry.seq === end)
    if (line === undefined) throw new RecordGone(last.record.slot)
    return { head, entries: await readRange(store, snapshot, Math.max(line.keyframe, head.base.seq), end) }
  })
}

export async function readEntries(store: FileStore, key: LogKey, from: number, limit: number): Promise<StoredEntry[]> {
  const entries = await read(store, key, (snapshot) => {
    const { base, seq } = snapshot.newest.record.row
    const start = Math.max(from, base.seq)
    const end = Math.min(seq, start + limit - 1)
    return start > end ? Promise.resolve([]) : readRange(store, snapshot, start, end)
  })
  return entries ?? []
}

export async function readHeaders(
  store: FileStore,
  key: LogKey,
  { before, limit }: { readonly before?: number; readonly limit: number },
): Promise<StoredHeader[]> {
  const headers = await read(store, key, async (snapshot) => {
    const { base, seq } = snapshot.newest.record.row
    const end = Math.min(seq, (before ?? Number.POSITIVE_INFINITY) - 1)
    const start = Math.max(base.seq, end - limit + 1)
    if (start > end) return []
    const lines = (await collect(store, snapshot, start, end, readHeaderLines)).reverse()
    const oldest = lines.at(-1)
    const standIn = oldest && (await readStandIn(store, snapshot, oldest))
    if (standIn === undefined) return lines
    const { body, ...line } = standIn
    return [...lines.slice(0, -1), { ...line, size: body.length }]
  })
  return headers ?? []
}

/** The record that holds an entry, of a log as `state` knows it. Undefined if the log has changed since. */
export async function findEntryRecord(
  store: FileStore,
  state: LogState,
  seq: number,
): Promise<ChainLink<LogRecord> | undefined> {
  const { folder, newest, slots } = state
  try {
    return await findRecord(store, { folder, newest, slots: [...slots] }, seq)
  } catch (error) {
    if (!(error instanceof RecordGone)) throw error
    const now = await reload(store, state.key)
    if (now === undefined || now.newest.record.slot !== newest.record.slot) return undefined
    throw missingRecord(folder, error.slot)
  }
}

async function read<Result>(
  store: FileStore,
  key: LogKey,
  work: (snapshot: Snapshot, state: LogState) => Promise<Result>,
): Promise<Result | undefined> {
  let state = await findLog(store, key)
  for (let looks = 1; state !== undefined; looks++) {
    const snapshot: Snapshot = { folder: state.folder, newest: state.newest, slots: [...state.slots] }
    try {
      return await work(snapshot, state)
    } catch (error) {
      if (!(error instanceof RecordGone)) throw error
      state = await reload(store, key)
      // Pruned or erased while it was read: look again. Where the log begins as before, it should be there.
      const { base } = snapshot.newest.record.row
      const isSame = state?.folder === snapshot.folder && state.newest.record.row.base.slot === base.slot
      if (isSame && looks > 1) throw missingRecord(snapshot.folder, error.slot)
    }
  }
  return undefined
}

async function reload(store: FileStore, key: LogKey): Promise<LogState | undefined> {
  store.logs.delete(logName(key))
  return findLog(store, key)
}

/**
 * The record that holds `seq`. A record's slot is the seq of its first entry plus the number of records without
 * entries before it; where there are none the slot is known at once, and otherwise it is searched for between.
 */
async function findRecord(store: FileStore, snapshot: Snapshot, seq: number): Promise<ChainLink<LogRecord>> {
  const { slots, newest, folder } = snapshot
  const shift = newest.record.next - newest.record.row.seq - 1
  let low = Math.max(0, countUpTo(slots, seq) - 1)
  let high = Math.max(low, countUpTo(slots, seq + shift) - 1)
  for (;;) {
    // The first record after which the log ends at or behind `seq` is the one that holds it.
    const middle = low + ((high - low) >> 1)
    const slot = slots[middle] ?? 0
    const link = await readLink<LogRecord>(store.disk, folder, slot)
    if (link === undefined) throw new RecordGone(slot)
    if (low < high) {
      if (link.record.row.seq >= seq) high = middle
      else low = middle + 1
      continue
    }
    if (link.record.entries.some((entry) => entry.seq === seq)) return link
    // The file that held it is not in the list: what should follow the record before it.
    throw new RecordGone(link.record.row.seq < seq ? link.record.next : (link.record.prev?.slot ?? 0))
  }
}

function countUpTo(slots: readonly number[], limit: number): number {
  let low = 0
  let high = slots.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((slots[middle] ?? 0) <= limit) low = middle + 1
    else high = middle
  }
  return low
}

async function readRange(store: FileStore, snapshot: Snapshot, from: number, to: number): Promise<StoredEntry[]> {
  const entries = await collect(store, snapshot, from, to, async (path) => {
    const bytes = await store.disk.read(path)
    return bytes && parseEntries(path, bytes)
  })
  const standIn = entries[0] && (await readStandIn(store, snapshot, entries[0]))
  return standIn ? [standIn, ...entries.slice(1)] : entries
}

/** The keyframe that a prune put in the place of the first entry that is kept, where it did. */
async function readStandIn(
  store: FileStore,
  { folder, newest }: Snapshot,
  { seq }: { readonly seq: number },
): Promise<StoredEntry | undefined> {
  const { base } = newest.record.row
  if (base.standIn === undefined || base.seq !== seq) return undefined
  const path = join(folder, slotName(base.standIn))
  const bytes = await store.disk.read(path)
  if (bytes === undefined) throw new RecordGone(base.standIn)
  return parseStandIn(path, bytes)
}

interface Lines<Item> {
  readonly record: LogRecord
  readonly entries: readonly Item[]
}

/** What `load` finds in the records that hold the entries `from` to `to`, with every gap noticed. */
async function collect<Item extends { readonly seq: number }>(
  store: FileStore,
  snapshot: Snapshot,
  from: number,
  to: number,
  load: (path: string, store: FileStore) => Promise<Lines<Item> | undefined>,
): Promise<Item[]> {
  const { slots, folder } = snapshot
  const first = await findRecord(store, snapshot, from)
  const found: Item[] = []
  let expected = first.record.slot
  let at = countUpTo(slots, expected) - 1
  for (;;) {
    const chunk = slots.slice(at, at + Math.min(AT_ONCE, to - from + 1))
    if (chunk.length === 0) throw new RecordGone(expected)
    // Read ahead, perhaps beyond what is asked for: a damaged file counts only when it is come to.
    const records = await Promise.allSettled(chunk.map((slot) => load(join(folder, slotName(slot)), store)))
    for (const [i, loaded] of records.entries()) {
      if (loaded.status === 'rejected') throw loaded.reason
      const lines = loaded.value
      if (lines === undefined || chunk[i] !== expected) throw new RecordGone(expected)
      for (const item of lines.entries) if (item.seq >= from && item.seq <= to) found.push(item)
      if (lines.record.row.seq >= to) return found
      expected = lines.record.next
    }
    at += chunk.length
  }
}

async function readHeaderLines(path: string, { disk }: FileStore): Promise<Lines<StoredHeader> | undefined> {
  let start = await disk.readStart(path, 4096)
  if (start === undefined) return undefined
  const { bodiesAt } = parsePreamble(path, start.bytes)
  if (start.bytes.length < bodiesAt) start = await disk.readStart(path, bodiesAt)
  if (start === undefined) return undefined
  const preamble = parsePreamble(path, start.bytes)
  const record = parseRecord<LogRecord>(path, start.bytes, preamble)
  const headers = splitLines(start.bytes, preamble.headersAt, record.entries, 'header')
  const entries = record.entries.map(({ seq, keyframe, hash, body }, i) => ({
    seq,
    keyframe,
    hash,
    header: headers[i] as Uint8Array,
    size: body,
  }))
  return { record, entries }
}
