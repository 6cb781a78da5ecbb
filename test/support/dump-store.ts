import type { Driver } from 'holdfast/driver'

/**
 * Everything that a store holds, in one order, without leases, without when blobs were touched, and without what processes
 * note there of their own work.
 */
export async function dumpStore(driver: Driver, now = Date.now()): Promise<Record<string, unknown>> {
  const tenants = [...((await driver.listTenants?.()) ?? [])].filter(isData).sort()
  const logs: Record<string, unknown> = {}
  const items: Record<string, unknown> = {}
  const blobs: Record<string, unknown> = {}
  for (const tenant of tenants) {
    for (let cursor: string | undefined; ; ) {
      const page = await driver.heads({ tenant, limit: 50, ...(cursor ? { cursor } : {}) })
      for (const head of page.heads) {
        const { log, index, seq, hash, epoch, base, incarnation } = head
        const entries = await driver.read(log, 0, 100_000)
        logs[JSON.stringify([tenant, log.thread, log.branch])] = {
          head: { seq, hash, epoch, base: { seq: base.seq, hash: base.hash }, incarnation },
          index: { ...index, metadata: { ...index.metadata }, origin: index.origin && { ...index.origin } },
          entries: entries.map((entry) => [
            entry.seq,
            entry.keyframe,
            entry.hash,
            text(entry.header),
            text(entry.body),
          ]),
        }
        for (const { header } of entries) {
          const names = (JSON.parse(Buffer.from(header).toString()) as { blobs?: string[] }).blobs ?? []
          for (const [name, bytes] of await driver.getBlobs(tenant, names)) blobs[`${tenant} ${name}`] = text(bytes)
        }
      }
      cursor = page.cursor
      if (cursor === undefined) break
    }
    for (const space of (await driver.listSpaces?.(tenant, { limit: 1000 })) ?? []) {
      if (space.startsWith('{holdfast=metrics}')) continue
      for (const item of (await driver.scanItems?.(tenant, space, { limit: 1000, fields: true }, now)) ?? []) {
        const { key, value, fields, ...rest } = item
        const shown = fields?.map((pair) => [...pair])
        items[JSON.stringify([tenant, space, key])] = { ...rest, fields: shown, value: text(value) }
      }
    }
  }
  const tombstones: Record<string, unknown> = {}
  for (let cursor: string | undefined; ; ) {
    const page = await driver.listTombstones?.(cursor ? { cursor } : {})
    for (const { tenant, thread, at, reason } of page?.tombstones ?? [])
      tombstones[`${tenant} ${thread}`] = [at, reason]
    cursor = page?.cursor
    if (cursor === undefined) break
  }
  // A tenant of whom only such notes are left has nothing.
  const used = tenants.filter((tenant) =>
    [...Object.keys(logs), ...Object.keys(items)].some((key) => JSON.parse(key)[0] === tenant),
  )
  return { tenants: used, logs, items, blobs, tombstones }
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

function isData(tenant: string): boolean {
  return tenant !== 'holdfast.metrics'
}
