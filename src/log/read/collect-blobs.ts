import { decodeHeader } from '../../codec/header.js'
import type { TenantId } from '../../core/ids.js'
import type { HeadQuery, LogKey } from '../contract.js'
import type { LogEnvironment } from '../log-environment.js'
import { allHeads } from './heads.js'

/** A blob is spared for this long after it was last written to, so that an append on its way keeps what it points to. */
const DEFAULT_BLOB_GRACE_MS = 60 * 60 * 1000

const PAGE = 500

/**
 * Removes the blobs of a tenant that no entry points to. Headers list what their bodies point to, so nothing is
 * decoded. A blob put or touched while this runs has a new `touchedAt` and stays.
 */
export async function collectBlobs(
  { driver, clock }: LogEnvironment,
  tenant: TenantId,
  options: { readonly graceMs?: number } = {},
): Promise<{ readonly removed: number; readonly kept: number; readonly bytes: number }> {
  // By the clock that `touchedAt` goes by: one of ours that runs ahead would make everything look old.
  const now = (await driver.now?.()) ?? clock.now()
  const before = now - (options.graceMs ?? DEFAULT_BLOB_GRACE_MS)
  // Candidates first, references second: an entry that lands in between touched its blobs before, and is safe.
  const candidates = new Map<string, { size: number; touchedAt: number }>()
  let kept = 0
  for (let after: string | undefined; ; ) {
    const page = await driver.listBlobs(tenant, { limit: PAGE, ...(after === undefined ? {} : { after }) })
    for (const { hash, size, touchedAt } of page) {
      if (touchedAt < before) candidates.set(hash, { size, touchedAt })
      else kept++
    }
    if (page.length < PAGE) break
    after = page.at(-1)?.hash
  }
  if (candidates.size > 0) {
    const query: HeadQuery = { tenant, order: 'created', direction: 'asc', limit: PAGE }
    for await (const head of allHeads((page) => driver.heads(page), query)) {
      for await (const hash of blobsOf(driver, head.log)) if (candidates.delete(hash)) kept++
    }
  }
  let removed = 0
  let bytes = 0
  for (const [hash, { size, touchedAt }] of candidates) {
    if (await driver.removeBlob(tenant, hash, touchedAt)) {
      removed++
      bytes += size
    } else {
      kept++
    }
  }
  return { removed, kept, bytes }
}

async function* blobsOf(driver: LogEnvironment['driver'], log: LogKey): AsyncGenerator<string> {
  for (let before: number | undefined; ; ) {
    const page = await driver.headers(log, { limit: PAGE, ...(before === undefined ? {} : { before }) })
    for (const { header } of page) yield* decodeHeader(header).blobs
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    before = last.seq
  }
}
