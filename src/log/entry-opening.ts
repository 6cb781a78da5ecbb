import { chainHash, chainIdentity, sameHash } from '../codec/chain.js'
import { unpack } from '../codec/compress.js'
import { type DataKey, decrypt } from '../codec/data-key.js'
import { decodeValue } from '../codec/decode.js'
import { decodeHeader, type EntryHeader } from '../codec/header.js'
import { CorruptError, MissingKeyError } from '../core/errors.js'
import type { BlobContents } from './blob-shelf.js'
import type { Origin, StoredEntry } from './contract.js'
import { readBody } from './entry-body.js'
import type { EntryContext } from './entry-codec.js'
import { type EntryBody, type Fold, foldEntry } from './fold.js'

/** Where a run of entries begins. */
export interface RunStart {
  /** The fold before the first entry. Its seq and hash must fit, unless `fromKeyframe`. */
  readonly before: Fold
  /** The run begins with a keyframe, which names its parent itself and needs no state before it. */
  readonly fromKeyframe: boolean
}

export interface OpenedEntry {
  readonly header: EntryHeader
  readonly hash: string
  readonly body: EntryBody
  /** The fold after this entry. */
  readonly fold: Fold
}

export interface OpenedRun {
  readonly entries: readonly OpenedEntry[]
  /** Why the entry after the last one above does not verify. */
  readonly failure?: CorruptError
}

interface Verified {
  readonly header: EntryHeader
  readonly hash: string
  readonly stored: Uint8Array
  readonly key: DataKey | null
}

/** Verifies hashes first, then fetches all blobs at once, then decodes and folds. */
export async function openRun(context: EntryContext, start: RunStart, entries: readonly StoredEntry[]): Promise<OpenedRun> {
  const { log, keys, shelf } = context
  const identity = chainIdentity(log.tenant, log.thread, log.branch, start.before.incarnation)
  const plainUntil = keys ? await keys.plainUntil(log.tenant) : null
  const verified: Verified[] = []
  let failure: CorruptError | undefined
  let parent = start.fromKeyframe ? undefined : start.before.hash
  let seq = start.fromKeyframe ? entries[0]?.seq : start.before.seq + 1
  for (const entry of entries) {
    try {
      verified.push(await verifyEntry(context, identity, entry, { parent, seq, plainUntil }))
      parent = entry.hash
      seq = entry.seq + 1
    } catch (error) {
      failure = asCorrupt(error)
      break
    }
  }

  const names = verified.flatMap(({ header }) => header.blobs)
  const contents = names.length === 0 ? NO_BLOBS : await shelf.load(names, keys !== undefined && plainUntil === null)
  const opened: OpenedEntry[] = []
  let fold = start.before
  for (const entry of verified) {
    try {
      const body = await decodeBody(context, identity, entry, contents)
      const { header, hash } = entry
      fold = foldEntry(fold, body, { ...header, hash, origin: header.base as Origin | null }, shelf.isBlob)
      opened.push({ header, hash, body, fold })
    } catch (error) {
      failure = asCorrupt(error)
      break
    }
  }
  return failure ? { entries: opened, failure } : { entries: opened }
}

const NO_BLOBS: BlobContents = new Map()

async function verifyEntry(
  { log, keys }: EntryContext,
  identity: string,
  entry: StoredEntry,
  expected: { parent: string | undefined; seq: number | undefined; plainUntil: number | null },
): Promise<Verified> {
  if (entry.seq !== expected.seq) throw corrupt(expected.seq ?? 0, `is missing; entry ${entry.seq} follows`)
  const header = decodeHeader(entry.header)
  if (header.seq !== entry.seq) throw corrupt(entry.seq, `says that it is entry ${header.seq}`)
  if (header.keyframe !== entry.keyframe) throw corrupt(entry.seq, 'and its row name different keyframes')
  const parent = expected.parent ?? header.parent
  if (parent === null) throw corrupt(entry.seq, 'is read as a keyframe but is none')
  if (header.parent !== null && header.parent !== parent) throw corrupt(entry.seq, 'names another parent')
  const key = await findKey(header, keys, log.tenant, expected.plainUntil)
  // The hash covers all that is stored; nothing of the body is decompressed or parsed before it matched.
  if (!sameHash(chainHash(identity, parent, entry.header, entry.body, key?.macKey), entry.hash)) {
    throw corrupt(entry.seq, 'does not match its hash')
  }
  return { header, hash: entry.hash, stored: entry.body, key }
}

async function findKey(
  header: EntryHeader,
  keys: EntryContext['keys'],
  tenant: EntryContext['log']['tenant'],
  plainUntil: number | null,
): Promise<DataKey | null> {
  if (header.key === null) {
    if (!keys || (plainUntil !== null && header.at <= plainUntil)) return null
    throw corrupt(header.seq, 'is not authenticated, though keys were in use when it was written')
  }
  if (keys) return keys.find(tenant, header.key)
  throw new MissingKeyError(`Entry ${header.seq} was written under key "${header.key}", but no keys are configured.`, {
    key: header.key,
  })
}

async function decodeBody(
  { limits, shelf }: EntryContext,
  identity: string,
  { header, stored, key }: Verified,
  contents: BlobContents,
): Promise<EntryBody> {
  if (header.size > limits.maxBytes) throw corrupt(header.seq, `is over the limit of ${limits.maxBytes} bytes`)
  const packed = header.encrypted && key ? decrypt(key.encryptionKey, stored, identity) : stored
  const unpacking = unpack(header.packing, packed, header.size)
  const raw = unpacking instanceof Promise ? await unpacking : unpacking
  return readBody(decodeValue(raw, limits, shelf.source(header.blobs, contents)), header)
}

function corrupt(seq: number, problem: string): CorruptError {
  return new CorruptError(`Entry ${seq} ${problem}.`, { seq })
}

/** A failure to fetch is no damage: only corruption ends a run early, anything else is the caller's error. */
function asCorrupt(error: unknown): CorruptError {
  if (error instanceof CorruptError) return error
  throw error
}
