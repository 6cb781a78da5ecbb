import { chainHash, chainIdentity } from '../../codec/chain.js'
import { type Packed, packEntry } from '../../codec/pack/compress.js'
import { bodyContext, type DataKey, encrypt } from '../../codec/secret/data-key.js'
import { type EntryHeader, encodeHeader } from '../../codec/header.js'
import { encodeValue } from '../../codec/value.js'
import { andThen } from '../../core/async/at-once.js'
import type { BlobCollector } from '../read/blob-shelf.js'
import type { Origin, StoredEntry } from '../contract.js'
import { checkDraft, type Draft, draftBody } from './draft.js'
import { hasRecords } from './entry-body.js'
import {
  checkDepth,
  checkReadable,
  type Drafted,
  type EntryContext,
  type SealedEntry,
  type Sealing,
} from './entry-context.js'
import { type OpenedEntry, type OpenedEntries, openEntries, type OpeningPoint } from './entry-opening.js'
import { advanceFold, applyBody, type EntryBody, type Fold } from './fold.js'
import { checkIndexSize } from './index-state.js'
import { addWholeFold, isKeyframeDue } from './keyframe-body.js'
import { makeStandIn } from './stand-in.js'

/** Turns drafts into stored entries of one log and back, each bound to its place in the chain. */
export class EntryCodec {
  readonly #context: EntryContext
  /** After a keyframe that exceeded the limits: at how many bytes of deltas the next one is tried. */
  #keyframeFrom = 0

  constructor(context: EntryContext) {
    this.#context = context
  }

  /**
   * The next entry after `before`, and the fold it leads to. Blobs it needs are stored when this resolves. It takes
   * time only if a key has to be fetched, blobs have to be stored or much has to be packed.
   */
  seal(before: Fold, draft: Draft, sealing: Sealing): SealedEntry | Promise<SealedEntry> {
    const { log, limits, shelf, keys } = this.#context
    checkDraft(draft, before.seq + 1)
    const sink = shelf.sink(false)
    const encoded = encodeValue(draftBody(draft), limits, sink)
    checkDepth(encoded, limits)
    // An entry with many operations, such as that of a run that writes at its end, copies each container once.
    const applied = applyBody(before, encoded.value as EntryBody, sealing.at, shelf.isBlob, new Set())
    if (applied.index !== before.index) checkIndexSize(applied.index)
    const parts: Drafted = {
      before,
      draft,
      sealing,
      encoded,
      applied,
      key: null,
      blobs: NO_BLOBS,
      json: encoded.json,
      isKeyframe: before.seq < 0,
      holdsWholeFold: false,
    }
    const key = keys ? keys.current(log.tenant) : null
    if (key instanceof Promise || sink.items.length > 0) return this.#sealWithBlobs(parts, key, sink)
    parts.key = key
    return this.#sealWithFold(parts)
  }

  /** The blobs of the entry itself come first: a whole fold points to them. */
  async #sealWithBlobs(parts: Drafted, key: DataKey | null | Promise<DataKey | null>, sink: BlobCollector) {
    parts.key = await key
    parts.blobs = await this.#context.shelf.store(sink, parts.key)
    return this.#sealWithFold(parts)
  }

  /** Seals it, with the whole fold if that is due. */
  #sealWithFold(parts: Drafted): SealedEntry | Promise<SealedEntry> {
    const { before, draft, sealing } = parts
    const isDue = isKeyframeDue(before.weight) && before.weight.deltaBytes >= this.#keyframeFrom
    const isAsked = draft.keyframe === true || sealing.base !== undefined
    if (sealing.base === undefined && (before.seq < 0 || !(isAsked || isDue))) return this.#pack(parts)
    return this.#sealKeyframe(parts, isAsked)
  }

  #sealKeyframe(parts: Drafted, isAsked: boolean): SealedEntry | Promise<SealedEntry> {
    const adding = addWholeFold(this.#context, parts, isAsked)
    this.#keyframeFrom = parts.holdsWholeFold ? 0 : 2 * parts.before.weight.deltaBytes
    return andThen(adding, () => this.#pack(parts))
  }

  #pack(parts: Drafted): SealedEntry | Promise<SealedEntry> {
    const raw = Buffer.from(parts.json)
    if (!parts.isKeyframe) checkReadable(parts.before.weight, raw.length, this.#context.limits)
    const packed = packEntry(raw, hasRecords(parts.encoded.value as EntryBody))
    if (packed instanceof Promise) return packed.then((late) => this.#seal(parts, late, raw.length))
    return this.#seal(parts, packed, raw.length)
  }

  #seal(parts: Drafted, packed: Packed, size: number): SealedEntry {
    const { log, keys } = this.#context
    const { before, draft, sealing, key, blobs } = parts
    const seq = before.seq + 1
    const header: EntryHeader = {
      seq,
      epoch: sealing.epoch,
      kind: draft.kind,
      appendId: sealing.appendId,
      at: sealing.at,
      keyframe: parts.isKeyframe ? seq : before.weight.keyframe,
      packing: packed.packing,
      size,
      parent: parts.isKeyframe ? (sealing.base?.hash ?? before.hash) : null,
      base: sealing.base ?? null,
      key: key?.id ?? null,
      encrypted: key !== null && keys?.encrypt === true,
      blobs,
    }
    const headerBytes = encodeHeader(header)
    const identity = chainIdentity(log.tenant, log.thread, log.branch, before.incarnation)
    const body =
      header.encrypted && key
        ? encrypt(key.encryptionKey, packed.bytes, bodyContext(identity, headerBytes))
        : packed.bytes
    const hash = chainHash(identity, header.parent ?? before.hash, headerBytes, body, key?.macKey)
    const entry = { seq, keyframe: header.keyframe, hash, header: headerBytes, body }
    const { epoch, at, key: keyId, base } = header
    const facts = { seq, hash, epoch, at, size, key: keyId, origin: base as Origin | null }
    return { entry, fold: advanceFold(before, parts.applied, facts, parts.holdsWholeFold) }
  }

  /** A keyframe that can take the place of an entry. */
  standIn(before: Fold, entry: OpenedEntry): Promise<StoredEntry> {
    return makeStandIn(this.#context, before, entry)
  }

  /** Verifies and decodes consecutive entries. Stops at the first that does not verify, and says why. */
  open(start: OpeningPoint, entries: readonly StoredEntry[]): Promise<OpenedEntries> {
    return openEntries(this.#context, start, entries)
  }
}

const NO_BLOBS: readonly string[] = []
