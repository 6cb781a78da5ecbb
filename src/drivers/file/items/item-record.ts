import type { TenantId } from '../../../core/ids.js'
import type { Hash } from '../../../log/contract.js'
import type { NewItem } from '../../../log/store-contract.js'
import {
  type ChainRecord,
  checkBodies,
  damaged,
  parsePreamble,
  parseRecord,
  type Preamble,
  type RecordPart,
} from '../records/record.js'

/** How many logs an item remembers. */
const MAX_LOGS = 16
/** How many records before it a record names. */
const MAX_PAST = 16

/** What is known of an item besides its value, which is the body of the record. */
export interface ItemMeta {
  readonly version: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly expiresAt: number | null
  readonly fields: NewItem['fields']
}

/** What a change of an item leaves behind. */
export interface ItemState {
  /** Null once removed. */
  readonly item: ItemMeta | null
  /** When it was last written or removed, and by which log's incarnation; null for a write that no entry carried. */
  readonly last: { readonly at: number; readonly by: string | null }
  /** From when on a removed item is remembered; null for one that is there. */
  readonly removedAt: number | null
  /** The newest seq of each log that wrote it, by incarnation; the one that wrote last comes last. */
  readonly logs: readonly (readonly [incarnation: string, seq: number])[]
}

/** One version of an item. */
export interface ItemRecord extends ChainRecord, ItemState {
  /** 'end' is the last record of a chain: the item is forgotten, and one of its name begins in a new folder. */
  readonly kind: 'item' | 'end'
  readonly tenant: TenantId
  readonly space: string
  readonly key: string
  /** Tells this record from every other that was written for its slot. */
  readonly id: string
  /** The ids of the records before it, newest first. A writer that was overtaken finds its own here. */
  readonly past: readonly string[]
}

/** A record as it was read. */
export interface ParsedItem {
  readonly record: ItemRecord
  readonly preamble: Preamble
  /** Undefined if the bytes end before it. */
  readonly value: Uint8Array | undefined
}

const NOTHING = new Uint8Array(0)

/** The parts of a record's file behind the record: the value is its one body. */
export function itemParts(value: Uint8Array): RecordPart[] {
  return [{ header: NOTHING, body: value }]
}

/** The place of a record in its chain, behind `before`. */
export function placeBehind(
  before: { readonly record: ItemRecord; readonly sum: Hash },
  id: string,
): Pick<ItemRecord, 'slot' | 'next' | 'prev' | 'id' | 'past'> {
  const { slot, next, id: last, past } = before.record
  return {
    slot: next,
    next: next + 1,
    prev: { slot, sum: before.sum },
    id,
    past: [last, ...past].slice(0, MAX_PAST),
  }
}

/** The position of the first record of a chain. */
export function placeFirst(id: string): Pick<ItemRecord, 'slot' | 'next' | 'prev' | 'id' | 'past'> {
  // By the wall clock, so that an item that is forgotten and created again continues from where no late writer can
  // still be.
  const slot = Date.now() * 1000 + Math.floor(Math.random() * 1000)
  return { slot, next: slot + 1, prev: null, id, past: [] }
}

/** What an item remembers after a log wrote it. */
export function rememberLog(logs: ItemState['logs'], incarnation: string, seq: number): ItemState['logs'] {
  const others = logs.filter(([known]) => known !== incarnation)
  return [...others.slice(1 - MAX_LOGS), [incarnation, Math.max(seq, seqOf(logs, incarnation))]]
}

/** The newest seq of a log that is in an item; -1 for none. */
export function seqOf(logs: ItemState['logs'], incarnation: string): number {
  return logs.find(([known]) => known === incarnation)?.[1] ?? -1
}

/** Whether there is an item, and it has not expired. */
export function isThere<State extends Pick<ItemState, 'item'>>(
  state: State | undefined,
  now: number,
): state is State & { readonly item: ItemMeta } {
  if (state === undefined || state.item === null) return false
  return state.item.expiresAt === null || now < state.item.expiresAt
}

/** `bytes` must reach to the value at least. A value that was cut off is undefined, one that was changed is damage. */
export function parseItem(path: string, bytes: Buffer): ParsedItem {
  const preamble = parsePreamble(path, bytes)
  const record = parseRecord<ItemRecord>(path, bytes, preamble)
  if (bytes.length > preamble.end) throw damaged(path, `has more than the ${preamble.end} bytes that were written`)
  if (bytes.length < preamble.end) return { record, preamble, value: undefined }
  checkBodies(path, bytes, preamble, record.bodies)
  // A copy: the value must not keep the rest of the file in memory, nor change with what the caller does to it.
  return { record, preamble, value: new Uint8Array(bytes.subarray(preamble.bodiesAt, preamble.end - 1)) }
}
