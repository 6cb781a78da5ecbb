import { chainHash, chainIdentity, sameHash } from '../codec/chain.js'
import { decodeHeader, type EntryHeader } from '../codec/header.js'
import { openStandIn } from '../codec/secret/stand-in.js'
import { CorruptError } from '../core/errors.js'
import { nameLog } from '../core/log-name.js'
import type { LogKey, StoredEntry } from '../log/contract.js'

/** Entries of one page, read for the way. */
export interface CheckedPage {
  /** The epoch after the last of them. */
  readonly epoch: number
  /** The blobs that they point to, and whether the entry that does was written under a key. */
  readonly blobs: ReadonlyMap<string, boolean>
  /** How many hashes were recomputed. Under a key, only those who have the key can. */
  readonly verified: number
}

/**
 * Checks entries before they go anywhere: that they follow each other and match their hashes, and which blobs they
 * need. Throws CorruptError for one that is not what was written: damage must not be copied.
 */
export function checkEntries(
  log: LogKey,
  incarnation: string,
  before: { readonly seq: number; readonly hash: string } | undefined,
  entries: readonly StoredEntry[],
): CheckedPage {
  const identity = chainIdentity(log.tenant, log.thread, log.branch, incarnation)
  const blobs = new Map<string, boolean>()
  let { seq, hash: parent } = before ?? { seq: undefined, hash: undefined }
  let verified = 0
  let epoch = 0
  for (const entry of entries) {
    if (seq !== undefined && entry.seq !== seq + 1) throw damaged(log, seq + 1, 'is missing')
    const header = decodeHeader(entry.header)
    if (header.seq !== entry.seq || header.keyframe !== entry.keyframe)
      throw damaged(log, entry.seq, 'contradicts its row')
    const above: string | null = parent ?? header.parent
    if (above === null) throw damaged(log, entry.seq, 'is where the log begins, but is not a keyframe')
    if (header.parent !== null && header.parent !== above) throw damaged(log, entry.seq, 'names another parent')
    if (header.stands && (parent !== undefined || header.stands.hash !== entry.hash))
      throw damaged(log, entry.seq, 'was replaced by a keyframe of another entry')
    if (header.key === null) {
      const isRight = header.stands
        ? openStandIn(identity, entry.hash, entry.header, entry.body, undefined) !== undefined
        : sameHash(chainHash(identity, above, entry.header, entry.body), entry.hash)
      if (!isRight) throw damaged(log, entry.seq, 'does not match its hash')
      verified++
    }
    noteBlobs(blobs, header)
    epoch = header.epoch
    parent = entry.hash
    seq = entry.seq
  }
  return { epoch, blobs, verified }
}

function noteBlobs(blobs: Map<string, boolean>, { blobs: names, key }: EntryHeader): void {
  for (const name of names) blobs.set(name, key !== null)
}

function damaged(log: LogKey, seq: number, problem: string): CorruptError {
  return new CorruptError(`Entry ${seq} of ${nameLog(log)} ${problem}.`, { log, seq })
}
