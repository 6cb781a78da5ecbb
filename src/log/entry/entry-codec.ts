import { chainHash, chainIdentity } from '../../codec/chain.js'
import { pack } from '../../codec/compress.js'
import { bodyContext, type DataKey, encrypt } from '../../codec/data-key.js'
import { type ChainBase, type EntryHeader, encodeHeader } from '../../codec/header.js'
import type { Limits } from '../../codec/limits.js'
import { encodeValue } from '../../codec/value.js'
import type { BlobCollector, BlobShelf } from '../read/blob-shelf.js'
import type { LogKey, Origin, StoredEntry } from '../contract.js'
import { checkDraft, type Draft, draftBody } from './draft.js'
import { type OpenedRun, openRun, type RunStart } from './entry-opening.js'
import { advanceFold, applyBody, type EntryBody, type Fold } from './fold.js'
import { checkIndexSize } from './index-state.js'
import { checkDepth, checkReadable } from './entry-limits.js'
import { encodeKeyframe } from './keyframe-body.js'
import { isKeyframeDue } from './keyframes.js'
import type { KeySource } from '../keys/keys.js'

/** Circumstances of an entry that its writer knows. */
export interface Sealing {
  readonly appendId: string
  readonly epoch: number
  readonly at: number
  /** For the first entry of a fork: the entry it continues. */
  readonly base?: ChainBase
}

/** What reading and writing the entries of one log needs. */
export interface EntryContext {
  readonly log: LogKey
  readonly limits: Limits
  readonly shelf: BlobShelf
  readonly keys: KeySource | undefined
}

/** Turns drafts into stored entries of one log and back, each bound to its place in the chain. */
export class EntryCodec {
  readonly #context: EntryContext
  /** After a keyframe that was over the limits: with how many bytes of deltas the next one is tried. */
  #keyframeFrom = 0

  constructor(context: EntryContext) {
    this.#context = context
  }

  /** The next entry after `before`, and the fold it leads to. Blobs it needs are stored when this resolves. */
  async seal(before: Fold, draft: Draft, sealing: Sealing): Promise<{ entry: StoredEntry; fold: Fold }> {
    const { log, limits, shelf, keys } = this.#context
    const seq = before.seq + 1
    checkDraft(draft, seq)
    const delta = shelf.sink(false)
    const encoded = encodeValue(draftBody(draft), limits, delta)
    checkDepth(encoded, limits)
    // An entry of many operations, as of a run that writes at its end, copies each container once.
    const applied = applyBody(before, encoded.value as EntryBody, sealing.at, shelf.isBlob, new Set())
    checkIndexSize(applied.index)
    const key = keys ? await keys.current(log.tenant) : null
    let json = encoded.json
    let blobs = await storeBlobs(shelf, delta, key)

    const isDue = isKeyframeDue(before.weight) && before.weight.deltaBytes >= this.#keyframeFrom
    const isAsked = draft.keyframe === true || sealing.base !== undefined
    const mayHoldFold = sealing.base !== undefined || (seq > 0 && (isAsked || isDue))
    const whole = mayHoldFold ? shelf.sink(true) : delta
    const keyframe = { body: encoded.value as object, before, after: applied, base: sealing.base, isAsked }
    const wholeJson = mayHoldFold ? encodeKeyframe(keyframe, limits, whole) : undefined
    const holdsWholeFold = wholeJson !== undefined
    const isKeyframe = seq === 0 || holdsWholeFold
    if (holdsWholeFold) {
      json = wholeJson
      blobs = await storeBlobs(shelf, whole, key)
    }
    if (mayHoldFold) this.#keyframeFrom = holdsWholeFold ? 0 : 2 * before.weight.deltaBytes

    const raw = Buffer.from(json)
    if (!isKeyframe) checkReadable(before.weight, raw.length, limits)
    const packing = pack(raw)
    const packed = packing instanceof Promise ? await packing : packing
    const header: EntryHeader = {
      seq,
      epoch: sealing.epoch,
      kind: draft.kind,
      appendId: sealing.appendId,
      at: sealing.at,
      keyframe: isKeyframe ? seq : before.weight.keyframe,
      packing: packed.packing,
      size: raw.length,
      parent: isKeyframe ? (sealing.base?.hash ?? before.hash) : null,
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
    const facts = { ...header, hash, origin: header.base as Origin | null }
    return { entry, fold: advanceFold(before, applied, facts, holdsWholeFold) }
  }

  /** Verifies and decodes consecutive entries. Stops at the first that does not verify, and says why. */
  open(start: RunStart, entries: readonly StoredEntry[]): Promise<OpenedRun> {
    return openRun(this.#context, start, entries)
  }
}

function storeBlobs(
  shelf: BlobShelf,
  sink: BlobCollector,
  key: DataKey | null,
): readonly string[] | Promise<readonly string[]> {
  return sink.items.length === 0 ? [] : shelf.store(sink, key)
}
