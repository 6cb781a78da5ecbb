import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import type { BranchId } from '../core/ids.js'
import type { Append, Driver, Expect, Hash, IndexFields, LeaseChange, LogKey, StoredEntry } from '../log/contract.js'

/** Bytes that look random and are the same for the same seed. */
export function makeBytes(seed: string, size: number): Uint8Array {
  const bytes = new Uint8Array(size)
  // xorshift32: hashing a megabyte piece by piece would take longer than the tests that need it.
  let state = createHash('sha256').update(seed).digest().readUInt32LE(0) || 1
  for (let i = 0; i < size; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    bytes[i] = state & 0xff
  }
  return bytes
}

/** 64 hex digits, the same for the same seed. */
export function makeHash(seed: string): Hash {
  return createHash('sha256').update(seed).digest('hex')
}

export interface EntryOptions {
  /** Default 0. */
  readonly seq?: number
  /** Default: its own seq, which makes it a keyframe. */
  readonly keyframe?: number
  /** The same seed and seq make the same entry. Default: random. */
  readonly seed?: string
  /** Default 40. */
  readonly bodySize?: number
  readonly body?: Uint8Array
}

/** An entry of arbitrary bytes, as a driver sees it: header, body and hash mean nothing to it. */
export function makeEntry(options: EntryOptions = {}): StoredEntry {
  const { seq = 0, seed = randomUUID(), bodySize = 40 } = options
  return {
    seq,
    keyframe: options.keyframe ?? seq,
    hash: makeHash(`${seed}:${seq}`),
    header: makeBytes(`header:${seed}:${seq}`, 60),
    body: options.body ?? makeBytes(`body:${seed}:${seq}`, bodySize),
  }
}

/** An index row; by default of a log that is neither labelled, nor waiting, nor expiring. */
export function makeIndex(fields: Partial<IndexFields> = {}): IndexFields {
  return {
    status: 'idle',
    createdAt: 1_700_000_000_000,
    updatedAt: 1_700_000_000_000,
    expiresAt: null,
    wakeAt: null,
    tags: [],
    metadata: {},
    origin: null,
    ...fields,
  }
}

export interface AppendOptions {
  /** How many entries. Default 1; ignored when `entries` is given. */
  readonly count?: number
  readonly entries?: readonly StoredEntry[]
  /** The keyframe of made entries. Default: each is its own. */
  readonly keyframe?: number
  readonly seed?: string
  readonly lease?: LeaseChange
  /** Merged over the fields of `makeIndex()`. */
  readonly index?: Partial<IndexFields>
  /** When creating. Default: random. */
  readonly incarnation?: string
  readonly requires?: { readonly branch: BranchId; readonly incarnation: string }
}

/** A well-formed append to a log that ends at `expect`, or that is created when `expect` is null. */
export function makeAppend(log: LogKey, expect: Expect | null, options: AppendOptions = {}): Append {
  const { lease = { kind: 'keep' }, seed = randomUUID(), count = 1, keyframe } = options
  const first = expect === null ? 0 : expect.seq + 1
  const entries =
    options.entries ??
    Array.from({ length: count }, (_, i) =>
      makeEntry({ seq: first + i, seed, ...(keyframe === undefined ? {} : { keyframe }) }),
    )
  return {
    log,
    // Only its four fields: a Head may be passed for it.
    expect: expect && { incarnation: expect.incarnation, seq: expect.seq, hash: expect.hash, epoch: expect.epoch },
    entries,
    incarnation: expect?.incarnation ?? options.incarnation ?? randomUUID(),
    epoch: (expect?.epoch ?? 0) + (lease.kind === 'claim' ? 1 : 0),
    lease,
    index: makeIndex(options.index),
    labelsChanged: true,
    ...(options.requires === undefined ? {} : { requires: options.requires }),
  }
}

/** Where a log ends once this append has landed. */
export function expectAfter(append: Append): Expect {
  const last = append.entries.at(-1)
  if (last === undefined) throw new RangeError('An append has at least one entry.')
  return { incarnation: append.incarnation, seq: last.seq, hash: last.hash, epoch: append.epoch }
}

/** Sends one append alone and returns where the log ends; anything but success is an error. */
export async function mustAppend(driver: Driver, append: Append): Promise<Expect> {
  const [result] = await driver.append([append])
  assert.equal(result?.status, 'appended')
  return expectAfter(append)
}
