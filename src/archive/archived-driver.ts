import type { Driver, Head, LogKey, StoredEntry, StoredHeader } from '../log/contract.js'
import { overlay } from '../log/overlay.js'
import type { Archive } from './archive.js'

/**
 * A driver whose pruned history is read from an archive: `tail`, `read` and `headers` for what comes before the base of
 * a log continue there. Everything else, and every read of what is kept, is the driver's own and costs nothing extra.
 */
export function withArchive(driver: Driver, archive: Archive): Driver {
  const overrides: Partial<Driver> = {
    async tail(log, upTo) {
      const found = await driver.tail(log, upTo)
      if (found === undefined || upTo === undefined || found.entries.length > 0) return found
      if (upTo >= found.head.base.seq) return found
      const segment = await archive.find(log, found.head.incarnation, upTo)
      const last = segment?.entries.find(({ seq }) => seq === upTo)
      const first = segment?.entries[0]
      if (segment === undefined || last === undefined || first === undefined) return found
      const entries = segment.entries.filter(({ seq }) => seq >= last.keyframe && seq <= upTo)
      return { head: { ...found.head, base: { seq: first.seq, hash: first.hash } }, entries }
    },

    async read(log, from, limit) {
      const kept = await driver.read(log, from, limit)
      if (limit <= 0 || from < 0 || kept[0]?.seq === from) return kept
      const head = await driver.head(log)
      if (head === undefined || from >= head.base.seq) return kept
      const past = await pastFrom(archive, head, from, limit)
      const last = past.at(-1)
      if (last === undefined) return kept
      const all = [...past, ...kept.filter(({ seq }) => seq > last.seq)]
      // One more where the page would end right before the base: read from there, the base is a keyframe on its own.
      return all.slice(0, all[limit - 1]?.seq === head.base.seq - 1 ? limit + 1 : limit)
    },

    async headers(log, { before, limit }) {
      const kept = await driver.headers(log, { limit, ...(before === undefined ? {} : { before }) })
      // Only callers that ask for what comes before the base get it: walking through a log ends where the log does.
      if (kept.length > 0 || before === undefined || before <= 0 || limit <= 0) return kept
      const head = await driver.head(log)
      if (head === undefined || before > head.base.seq) return kept
      return pastBefore(archive, log, head, before, limit)
    },

    async getBlobs(tenant, hashes) {
      const found = await driver.getBlobs(tenant, hashes)
      if (hashes.every((hash) => found.has(hash))) return found
      const all = new Map(found)
      for (const hash of hashes) {
        const archived = all.has(hash) ? undefined : await archive.blob(tenant, hash)
        if (archived !== undefined) all.set(hash, archived)
      }
      return all
    },
  }
  return overlay(driver, overrides)
}

async function pastFrom(archive: Archive, head: Head, from: number, limit: number): Promise<readonly StoredEntry[]> {
  const entries: StoredEntry[] = []
  // Up to the entry at the base, if it was replaced by a keyframe: what follows the past is the entry itself.
  for (let next = from; entries.length < limit && next < head.base.seq; ) {
    const segment = await archive.find(head.log, head.incarnation, next)
    const some = segment?.entries.filter(({ seq }) => seq >= next && seq <= head.base.seq) ?? []
    const last = some.at(-1)
    // A gap: what lies behind it does not follow what lies before.
    if (last === undefined) return next === from ? [] : entries
    entries.push(...some)
    next = last.seq + 1
  }
  return entries
}

async function pastBefore(
  archive: Archive,
  log: LogKey,
  head: Head,
  before: number,
  limit: number,
): Promise<readonly StoredHeader[]> {
  const headers: StoredHeader[] = []
  for (let upTo = before - 1; upTo >= 0 && headers.length < limit; ) {
    const segment = await archive.find(log, head.incarnation, upTo)
    const some = segment?.entries.filter(({ seq }) => seq <= upTo) ?? []
    const first = some[0]
    if (first === undefined) break
    for (const { seq, keyframe, hash, header, body } of some.reverse())
      headers.push({ seq, keyframe, hash, header, size: body.length })
    upTo = first.seq - 1
  }
  return headers.slice(0, limit)
}
