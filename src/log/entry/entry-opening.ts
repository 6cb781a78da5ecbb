import { chainHash, chainIdentity, sameHash } from '../../codec/chain.js'
import { unpack } from '../../codec/pack/compress.js'
import { bodyContext, type DataKey, decrypt } from '../../codec/secret/data-key.js'
import { decodeValue } from '../../codec/decode/decode.js'
import { openStandIn } from '../../codec/secret/stand-in.js'
import { decodeHeader, type EntryHeader } from '../../codec/header.js'
import type { Limits } from '../../codec/limits.js'
import { CorruptError, isHoldfastError, MissingKeyError } from '../../core/errors.js'
import type { BlobContents } from '../read/blob-shelf.js'
import type { Origin, StoredEntry } from '../contract.js'
import { readBody } from './entry-body.js'
import type { EntryContext } from './entry-context.js'
import { type EntryBody, type Fold, foldEntry } from './fold.js'
import { HOW_TO_ADOPT } from '../keys/key-options.js'

/** Where consecutive entries begin. */
export interface OpeningPoint {
  /** The fold before the first entry. Its seq and hash must match, unless `fromKeyframe`. */
  readonly before: Fold
  /** They begin with a keyframe, which names its parent itself and needs no state before it. */
  readonly fromKeyframe: boolean
  /** Hashes of plain entries, by seq, that are known to be below an entry with a key. */
  readonly pinned?: ReadonlyMap<number, string>
  /** Only the last fold is wanted: the ones between share containers that are changed in place, and are not returned. */
  readonly onlyLast?: boolean
}

/** An entry that was read, verified and decoded. */
export interface OpenedEntry {
  readonly header: EntryHeader
  readonly hash: string
  readonly body: EntryBody
  /** The fold after this entry. */
  readonly fold: Fold
}

export interface OpenedEntries {
  /** Empty if only the last fold was wanted. */
  readonly entries: readonly OpenedEntry[]
  /** The fold after the last entry that verifies, if any does. */
  readonly last: Fold | undefined
  /** Why the entry after the last one above does not verify. */
  readonly failure?: CorruptError
}

interface Verified {
  readonly header: EntryHeader
  readonly hash: string
  readonly entry: StoredEntry
  readonly key: DataKey | null
}

/** Verifies hashes first, then fetches all blobs at once, then decodes and folds. */
export async function openEntries(
  context: EntryContext,
  start: OpeningPoint,
  entries: readonly StoredEntry[],
): Promise<OpenedEntries> {
  const { log, keys, shelf } = context
  const owned = start.onlyLast ? new Set<object>() : undefined
  const identity = chainIdentity(log.tenant, log.thread, log.branch, start.before.incarnation)
  const plainUntil = keys ? await keys.plainUntil(log.tenant) : null
  const verified: Verified[] = []
  let failure: CorruptError | undefined
  let parent = start.fromKeyframe ? undefined : start.before.hash
  let seq = start.fromKeyframe ? entries[0]?.seq : start.before.seq + 1
  let keyed = start.before.key !== null
  let unkeyed: number | undefined
  let before = start.before.key
  for (const entry of entries) {
    try {
      const header = readHeader(entry, seq)
      if (keyed && header.key === null) throw unauthenticated(header.seq)
      // Awaiting only where a key must be fetched: a long tail without keys verifies in one go.
      const key = header.key === null ? null : await findKey(header.key, header.seq, keys, log.tenant)
      if (key && before !== null) checkAge(header.seq, keys, log.tenant, before, key.id)
      const held = header.stands ? verifyStandIn(identity, entry, header, parent, key, keys) : entry
      if (held === entry) verifyHash(identity, entry, header, parent, key)
      // The HMAC of an entry covers its parent's hash, and so everything below it in this chain.
      if (key !== null) unkeyed = undefined
      else if (keys && !isAdopted(header, plainUntil) && start.pinned?.get(header.seq) !== entry.hash)
        unkeyed ??= verified.length
      verified.push({ header, hash: entry.hash, entry: held, key })
      parent = entry.hash
      seq = entry.seq + 1
      // What follows continues from the entry itself, not from what later took its place.
      before = header.stands ? header.stands.key : (key?.id ?? null)
      keyed = before !== null
    } catch (error) {
      failure = asCorrupt(error)
      break
    }
  }

  if (unkeyed !== undefined) {
    failure = unauthenticated(verified[unkeyed]?.header.seq ?? 0)
    verified.length = unkeyed
  }

  const { fits, bytes } = withinBudget(verified, context.limits)
  if (fits < verified.length) {
    failure = overBudget(verified[fits]?.header.seq ?? 0, context.limits)
    verified.length = fits
  }

  const names = verified.flatMap(({ header }) => header.blobs)
  const contents = names.length === 0 ? NO_BLOBS : await shelf.load(names, context.limits.maxReadBytes - bytes)
  const opened: OpenedEntry[] = []
  let fold = start.before
  let last: Fold | undefined
  const withoutBlobs = shelf.source([], contents)
  const bodies = verified.map((entry) => unpackBody(context, identity, entry))
  for (const [i, { header, hash }] of verified.entries()) {
    try {
      const unpacking = bodies[i] as Unpacking
      const raw = unpacking instanceof Promise ? await unpacking : unpacking
      if (raw instanceof Error) throw raw
      const source = header.blobs.length === 0 ? withoutBlobs : shelf.source(header.blobs, contents)
      const body = readBody(decodeValue(raw, context.limits, source), header)
      const { seq, epoch, at, size, base, stands } = header
      const key = stands ? stands.key : header.key
      fold = foldEntry(
        fold,
        body,
        { seq, hash, epoch, at, size, origin: base as Origin | null, key },
        shelf.isBlob,
        owned,
      )
      last = fold
      if (owned === undefined) opened.push({ header, hash, body, fold })
    } catch (error) {
      failure = asCorrupt(error)
      break
    }
  }
  return failure ? { entries: opened, last, failure } : { entries: opened, last }
}

const NO_BLOBS: BlobContents = new Map()

/** How many of these may be unpacked together, by what their headers claim: no body unpacks to more than that. */
function withinBudget(verified: readonly Verified[], { maxReadBytes }: Limits): { fits: number; bytes: number } {
  let bytes = 0
  for (const [i, { header }] of verified.entries()) {
    if (bytes + header.size > maxReadBytes) return { fits: i, bytes }
    bytes += header.size
  }
  return { fits: verified.length, bytes }
}

/** `data.overBudget`: what comes before is good, and a caller that reads part by part can continue from there. */
function overBudget(seq: number, { maxReadBytes }: Limits): CorruptError {
  const remedy = 'If it is yours, raise limits.maxReadBytes. If it is not, somebody else wrote it.'
  const message = `Entry ${seq} takes this read over the limit of ${maxReadBytes} bytes.`
  return new CorruptError(message, { seq, overBudget: true }, undefined, remedy)
}

function readHeader(entry: StoredEntry, seq: number | undefined): EntryHeader {
  if (entry.seq !== seq) throw corrupt(seq ?? 0, `is missing; entry ${entry.seq} follows`)
  const header = decodeHeader(entry.header)
  if (header.seq !== entry.seq) throw corrupt(entry.seq, `says that it is entry ${header.seq}`)
  if (header.keyframe !== entry.keyframe) throw corrupt(entry.seq, 'and its row name different keyframes')
  return header
}

// The hash covers all that is stored; nothing of the body is decompressed or parsed before it matched.
function verifyHash(
  identity: string,
  entry: StoredEntry,
  header: EntryHeader,
  before: string | undefined,
  key: DataKey | null,
): void {
  const parent = before ?? header.parent
  if (parent === null) throw corrupt(entry.seq, 'is read as a keyframe but is not one')
  if (header.parent !== null && header.parent !== parent) throw corrupt(entry.seq, 'names another parent')
  const hash = chainHash(identity, parent, entry.header, entry.body, key?.macKey)
  // Without a key there is no secret that the time of a comparison could tell.
  if (key === null ? hash !== entry.hash : !sameHash(hash, entry.hash)) {
    throw corrupt(entry.seq, 'does not match its hash')
  }
}

/**
 * A keyframe in the place of an entry is what its seal says, and can only be where reading begins. With keys it must
 * have a seal, whatever is above it: the chain covers the entry that it stands for, and not what it holds itself.
 */
function verifyStandIn(
  identity: string,
  entry: StoredEntry,
  header: EntryHeader,
  before: string | undefined,
  key: DataKey | null,
  keys: EntryContext['keys'],
): StoredEntry {
  if (before !== undefined) throw corrupt(entry.seq, 'was replaced by a keyframe, but entries before it are there')
  if (header.stands?.hash !== entry.hash) throw corrupt(entry.seq, 'was replaced by a keyframe of another entry')
  if (keys && key === null) throw unauthenticated(entry.seq)
  const body = openStandIn(identity, entry.hash, entry.header, entry.body, key?.macKey)
  if (body === undefined) throw corrupt(entry.seq, 'does not match its seal')
  return { ...entry, body }
}

async function findKey(
  id: string,
  seq: number,
  keys: EntryContext['keys'],
  tenant: EntryContext['log']['tenant'],
): Promise<DataKey> {
  if (keys) return keys.find(tenant, id)
  throw new MissingKeyError(
    `Entry ${seq} was written under the data key "${id}", but this store was opened without keys.`,
    { key: id },
  )
}

// Whoever appends has read the entry before, and with it the newer key: an older one comes from an older key log, or
// from somebody who got hold of a retired key.
function checkAge(
  seq: number,
  keys: EntryContext['keys'],
  tenant: EntryContext['log']['tenant'],
  before: string,
  key: string,
): void {
  if (before === key || keys === undefined) return
  const [older, newer] = [keys.generation(tenant, key), keys.generation(tenant, before)]
  if (older === undefined || newer === undefined || older >= newer) return
  throw corrupt(seq, `is under data key "${key}", which was retired before the entry below it was written`)
}

function isAdopted({ at }: EntryHeader, plainUntil: number | null): boolean {
  return plainUntil !== null && at <= plainUntil
}

/** `data.plain` distinguishes it from damage: it may be data from before there were keys. */
function unauthenticated(seq: number): CorruptError {
  const message = `Entry ${seq} is not authenticated: keys are configured, and it was written without one.`
  return new CorruptError(message, { seq, plain: true }, undefined, PLAIN_REMEDY)
}

/** What to do about data without a key where keys are configured. */
export const PLAIN_REMEDY = `If it is yours, from before there were keys, ${HOW_TO_ADOPT} If it is not, somebody else wrote it.`

type Unpacking = Uint8Array | Error | Promise<Uint8Array | Error>

// All bodies of a run begin at once: while a keyframe inflates in the thread pool, the deltas after it do here. A
// failure is kept until its entry's turn, so that everything before it still counts.
function unpackBody({ limits }: EntryContext, identity: string, { header, entry, key }: Verified): Unpacking {
  const { encrypted, packing, size, seq } = header
  if (size > limits.maxBytes)
    return corrupt(
      seq,
      `is over the limit of ${limits.maxBytes} bytes; if it was written under a higher one, raise limits.maxBytes`,
    )
  try {
    const context = key && encrypted ? bodyContext(identity, entry.header) : undefined
    const packed = key && context !== undefined ? decrypt(key.encryptionKey, entry.body, context) : entry.body
    const unpacking = unpack(packing, packed, size)
    return unpacking instanceof Promise ? unpacking.catch((error: Error) => error) : unpacking
  } catch (error) {
    return error as Error
  }
}

function corrupt(seq: number, problem: string): CorruptError {
  return new CorruptError(`Entry ${seq} ${problem}.`, { seq })
}

/** A failure to fetch is not damage: only corruption ends a run early, anything else is the caller's error. */
function asCorrupt(error: unknown): CorruptError {
  if (error instanceof CorruptError) return error
  // An operation that does not fit the state it is applied to was never acknowledged by a correct writer.
  if (isHoldfastError(error, 'invalid-value')) return new CorruptError(error.message, error.data, error)
  throw error
}
