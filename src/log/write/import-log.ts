import { chainHash, chainIdentity, NO_PARENT } from '../../codec/chain.js'
import { packEntry } from '../../codec/pack/compress.js'
import { bodyContext, type DataKey, encrypt } from '../../codec/secret/data-key.js'
import { type ChainBase, type EntryHeader, encodeHeader } from '../../codec/header.js'
import { encodeValue } from '../../codec/value.js'
import { ConflictError, InvalidValueError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Expect, LogKey, Origin, StoredEntry } from '../contract.js'
import { draftBody } from '../entry/draft.js'
import { hasRecords, readBody } from '../entry/entry-body.js'
import { type EntryBody, emptyFold, type Fold, foldEntry } from '../entry/fold.js'
import { indexFields } from '../entry/index-state.js'
import type { LogEnvironment } from '../log-environment.js'
import { BlobShelf, patientBlobs } from '../read/blob-shelf.js'

/** An entry of another log, decoded: what remains of it when it is no longer bound to its place. */
export interface PlainEntry {
  readonly seq: number
  readonly epoch: number
  readonly kind: string
  readonly appendId: string
  readonly at: number
  /** Only of the first entry of a fork. */
  readonly base?: ChainBase
  readonly body: EntryBody
}

/** Where an imported log lies, and the hash of each of its entries. */
export interface ImportedLog {
  readonly incarnation: string
  readonly hashes: ReadonlyMap<number, string>
}

const PAGE = 64

/**
 * Creates a log from entries that come from elsewhere: sealed again under this name, with their numbers, times and
 * epochs. What they carry for the store is not applied: it belongs to the store that they come from. Nobody holds the
 * log, and a log that would be due is not: whoever imports it decides when it runs.
 */
export async function importLog(
  environment: LogEnvironment,
  key: LogKey,
  entries: readonly PlainEntry[],
): Promise<ImportedLog> {
  const { driver, commit, keys, limits, blobThreshold, randomId, clock } = environment
  const incarnation = randomId()
  const shelf = new BlobShelf(patientBlobs(environment), key.tenant, {
    threshold: blobThreshold,
    maxBytes: limits.maxBytes,
    keys,
  })
  const hashes = new Map<number, string>()
  let fold = emptyFold(incarnation)
  let at: Expect | null = null
  const dataKey = keys ? await keys.current(key.tenant) : null
  const take = async (plain: PlainEntry): Promise<StoredEntry> => {
    const sealed = await seal(environment, key, shelf, fold, plain, dataKey)
    fold = sealed.fold
    hashes.set(plain.seq, sealed.entry.hash)
    return sealed.entry
  }
  for (let next = 0; next < entries.length; next += PAGE) {
    const page: StoredEntry[] = []
    for (const plain of entries.slice(next, next + PAGE)) page.push(await take(plain))
    if (next + PAGE >= entries.length && fold.index.wakeAt !== null) {
      const { seq, epoch } = fold
      const rest = { kind: 'import', appendId: randomId(), at: Math.max(clock.now(), fold.at) }
      page.push(await take({ ...rest, seq: seq + 1, epoch, body: { index: { wakeAt: null } } }))
    }
    const result = await commit.submit({
      log: key,
      expect: at,
      entries: page,
      incarnation,
      epoch: fold.epoch,
      lease: { kind: 'keep' },
      index: indexFields(fold.index, fold.at, fold.origin),
      labelsChanged: true,
      copied: true,
    })
    if (result.status !== 'appended')
      throw new ConflictError(`${nameLog(key)} exists already.`, { log: key, written: 'nothing' })
    at = { incarnation, seq: fold.seq, hash: fold.hash, epoch: fold.epoch }
    if (!driver.capabilities.storeAtomic) {
      await driver.applyWrites?.(key, incarnation, [], { upTo: fold.seq, redo: true })
    }
  }
  return { incarnation, hashes }
}

async function seal(
  { limits, keys }: LogEnvironment,
  log: LogKey,
  shelf: BlobShelf,
  before: Fold,
  { seq, epoch, kind, appendId, at, base, body }: PlainEntry,
  key: DataKey | null,
): Promise<{ readonly entry: StoredEntry; readonly fold: Fold }> {
  const isFirst = before.seq < 0
  if (!isFirst && seq !== before.seq + 1) throw misplaced(seq, `is where ${before.seq + 1} must be`)
  const isKeyframe = body.fold !== undefined || (seq === 0 && base === undefined)
  if (isFirst && !isKeyframe) throw misplaced(seq, 'is the first, but holds no whole state')
  const sink = shelf.sink(false)
  const { ops, index, data, store, fold } = body
  const draft = { kind, ...(ops ? { ops } : {}), ...(index ? { index } : {}), ...(store ? { store } : {}) }
  const encoded = encodeValue(
    { ...draftBody({ ...draft, ...(data === undefined ? {} : { data }) }), fold },
    limits,
    sink,
  )
  const blobs = sink.items.length === 0 ? [] : await shelf.store(sink, key)
  const raw = Buffer.from(encoded.json)
  const packed = await packEntry(raw, hasRecords(body))
  const header: EntryHeader = {
    seq,
    epoch,
    kind,
    appendId,
    at,
    keyframe: isKeyframe ? seq : before.weight.keyframe,
    packing: packed.packing,
    size: raw.length,
    parent: isKeyframe ? (base?.hash ?? (isFirst ? NO_PARENT : before.hash)) : null,
    base: base ?? null,
    key: key?.id ?? null,
    encrypted: key !== null && keys?.encrypt === true,
    blobs,
  }
  const checked = readBody(encoded.value, header)
  const headerBytes = encodeHeader(header)
  const identity = chainIdentity(log.tenant, log.thread, log.branch, before.incarnation)
  const stored =
    header.encrypted && key
      ? encrypt(key.encryptionKey, packed.bytes, bodyContext(identity, headerBytes))
      : packed.bytes
  const hash = chainHash(identity, header.parent ?? before.hash, headerBytes, stored, key?.macKey)
  const facts = { ...header, hash, origin: header.base as Origin | null }
  return {
    entry: { seq, keyframe: header.keyframe, hash, header: headerBytes, body: stored },
    fold: foldEntry(before, checked, facts, shelf.isBlob),
  }
}

function misplaced(seq: number, problem: string): InvalidValueError {
  return new InvalidValueError(
    'entries',
    `holds entry ${seq}, which ${problem}`,
    'Import what was exported, unchanged.',
  )
}
