import { blobHash } from '../codec/chain.js'
import { CorruptError } from '../core/errors.js'
import { nameLog } from '../core/log-name.js'
import type { Driver, LogKey } from '../log/contract.js'
import type { Tally } from './copy-report.js'

/** Blobs are large by nature: this many are in memory at once. */
const AT_ONCE = 4

/**
 * Copies the blobs that entries need before the entries themselves, so that no entry ever points to nothing. Existing
 * ones are touched, so that no collection removes them before the entries arrive.
 */
export async function copyBlobs(
  from: Driver,
  to: Driver,
  log: LogKey,
  blobs: ReadonlyMap<string, boolean>,
  tally: Tally,
): Promise<void> {
  if (blobs.size === 0) return
  const missing = await to.touchBlobs(log.tenant, [...blobs.keys()])
  for (let at = 0; at < missing.length; at += AT_ONCE) {
    const some = missing.slice(at, at + AT_ONCE)
    const found = await from.getBlobs(log.tenant, some)
    const bytes = some.map((hash) => ({ hash, bytes: checkBlob(log, hash, found.get(hash), blobs.get(hash) === true) }))
    await to.putBlobs(log.tenant, bytes)
    const back = await to.getBlobs(log.tenant, some)
    for (const { hash, bytes: sent } of bytes) {
      const arrived = back.get(hash)
      if (arrived === undefined || Buffer.compare(arrived, sent) !== 0) {
        throw new CorruptError(
          `The destination returned other bytes for blob ${hash} of ${nameLog(log)} than were sent.`,
          {
            log,
            blob: hash,
          },
        )
      }
    }
    tally.add({ blobs: some.length, bytes: bytes.reduce((sum, blob) => sum + blob.bytes.length, 0) })
  }
}

// The name of a blob under a key is an HMAC, which only who has the key can check.
function checkBlob(log: LogKey, hash: string, bytes: Uint8Array | undefined, keyed: boolean): Uint8Array {
  if (bytes === undefined) {
    throw new CorruptError(`A blob that ${nameLog(log)} points to is missing: ${hash}.`, { log, blob: hash })
  }
  if (!keyed && blobHash(bytes) !== hash) {
    throw new CorruptError(`A blob that ${nameLog(log)} points to does not match its hash: ${hash}.`, {
      log,
      blob: hash,
    })
  }
  return bytes
}
