import type { Head } from '../log/contract.js'
import type { LogStore } from '../log/log-store.js'

const PAGE = 500

/** What a stretch of a branch takes. */
export interface Measured {
  readonly entries: number
  /** Of their bodies, as stored. */
  readonly bytes: number
  /** Whether one of them points to a blob. */
  readonly hasBlobs: boolean
}

/** Counts the kept entries of a branch before one, by their headers alone. */
export async function measureEntries(logs: LogStore, head: Head, before: number = head.seq + 1): Promise<Measured> {
  const log = logs.unread(head.log)
  let entries = 0
  let bytes = 0
  let hasBlobs = false
  for (let upTo = before; upTo > head.base.seq; ) {
    const page = await log.history({ before: upTo, limit: PAGE })
    for (const { header, storedBytes } of page) {
      // What lies before the base is in an archive, and takes nothing here.
      if (header.seq < head.base.seq) break
      entries++
      bytes += storedBytes
      hasBlobs ||= header.blobs.length > 0
    }
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) break
    upTo = last.header.seq
  }
  return { entries, bytes, hasBlobs }
}
