import { chainHash, chainIdentity, sameHash } from '../../codec/chain.js'
import { decodeHeader } from '../../codec/header.js'
import type { Driver, LogKey } from '../contract.js'
import { unlessCorrupt } from '../read/damage.js'
import type { KeySource } from './keys.js'

const PAGE = 256

/**
 * The plain entries from `from` on that an entry with a key authenticates, by seq: its HMAC covers its parent's hash,
 * which covers the one before. Bodies are hashed and not decoded. Undefined if no entry with a key follows, or the
 * chain to it does not verify.
 */
export async function pinPlainPast(
  driver: Driver,
  log: LogKey,
  keys: KeySource,
  incarnation: string,
  from: number,
): Promise<ReadonlyMap<number, string> | undefined> {
  const identity = chainIdentity(log.tenant, log.thread, log.branch, incarnation)
  const pinned = new Map<number, string>()
  let parent: string | undefined
  for (let next = from; ; next = from + pinned.size) {
    const page = await driver.read(log, next, PAGE).catch(unlessCorrupt)
    if (page === undefined || page.length === 0) return undefined
    for (const entry of page) {
      const header = readHeader(entry.header)
      const before = parent ?? header?.parent
      // The first one may be a delta, whose parent is not known here: what reads it checks it against the one before.
      if (header === undefined || entry.seq !== from + pinned.size) return undefined
      const isFirst = parent === undefined && before == null
      const key = header.key === null ? undefined : await keys.find(log.tenant, header.key).catch(unlessCorrupt)
      if (header.key !== null && key === undefined) return undefined
      if (!isFirst) {
        const hash = chainHash(identity, before as string, entry.header, entry.body, key?.macKey)
        if (!sameHash(hash, entry.hash) || (header.parent !== null && header.parent !== before)) return undefined
      }
      if (key !== undefined) return pinned.size === 0 ? undefined : pinned
      pinned.set(entry.seq, entry.hash)
      parent = entry.hash
    }
  }
}

function readHeader(bytes: Uint8Array) {
  try {
    return decodeHeader(bytes)
  } catch (error) {
    return unlessCorrupt(error)
  }
}
