import { chainIdentity } from '../../codec/chain.js'
import { packEntry } from '../../codec/pack/compress.js'
import { bodyContext, encrypt } from '../../codec/secret/data-key.js'
import { type EntryHeader, encodeHeader } from '../../codec/header.js'
import { sealStandIn } from '../../codec/secret/stand-in.js'
import type { StoredEntry } from '../contract.js'
import { hasRecords } from './entry-body.js'
import type { EntryContext } from './entry-context.js'
import type { OpenedEntry } from './entry-opening.js'
import type { Fold } from './fold.js'
import { encodeKeyframe } from './keyframe-body.js'

/**
 * A keyframe that can take the place of an entry, so that nothing before it is needed anymore. It keeps the entry's
 * identity in the chain, its hash, so checkpoint ids and everything above stay as they are. Blobs it needs are stored
 * when this resolves. Throws TooLargeError if the whole fold can't be written in one piece.
 */
export async function makeStandIn(
  { log, limits, shelf, keys }: EntryContext,
  before: Fold,
  { header, hash, body, fold }: OpenedEntry,
): Promise<StoredEntry> {
  const key = keys ? await keys.current(log.tenant) : null
  const sink = shelf.sink(true)
  const after = { state: fold.state, index: fold.index, stored: fold.stored, freed: 0 }
  const json = encodeKeyframe({ body, before, after, base: undefined, isAsked: true }, limits, sink) as string
  const blobs = sink.items.length === 0 ? [] : await shelf.store(sink, key)
  const raw = Buffer.from(json)
  const packed = await packEntry(raw, hasRecords(body))
  const standing: EntryHeader = {
    ...header,
    keyframe: header.seq,
    packing: packed.packing,
    size: raw.length,
    parent: before.hash,
    key: key?.id ?? null,
    encrypted: key !== null && keys?.encrypt === true,
    blobs,
    stands: { hash, key: header.key },
  }
  const headerBytes = encodeHeader(standing)
  const identity = chainIdentity(log.tenant, log.thread, log.branch, fold.incarnation)
  const bytes =
    standing.encrypted && key
      ? encrypt(key.encryptionKey, packed.bytes, bodyContext(identity, headerBytes))
      : packed.bytes
  const sealed = sealStandIn(identity, hash, headerBytes, bytes, key?.macKey)
  return { seq: header.seq, keyframe: header.seq, hash, header: headerBytes, body: sealed }
}
