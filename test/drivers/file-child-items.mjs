// What the processes of file-child.mjs do to items.

/** The wall time of these tests. */
export const NOW = 1_700_000_000_000
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * An item that is the same for the same version.
 * @param {string} version
 * @param {number | null} [expiresAt]
 */
export function makeItem(version, expiresAt = null) {
  return { value: Buffer.from(`value of ${version}`), version, at: NOW, expiresAt, fields: [] }
}

/** The writes that the newest entry of the log carries. */
export function carriedWrites(seq) {
  return [
    { seq, space: 's', key: 'k', item: makeItem('applied'), at: NOW },
    { seq, space: 's', key: 'kept', item: null, at: NOW },
    { seq, space: 't', key: 'new', item: makeItem('applied'), at: NOW },
  ]
}

/** Operations on items by name. Each takes the driver and the head of the log. */
export function itemOperations({ log, name, count, report }) {
  const writeOne = async (driver, write) => (await driver.writeItems(log.tenant, [write], NOW))[0].status
  return {
    put: (driver) => writeOne(driver, { space: 's', key: 'k', item: makeItem(name), expect: 'old' }),
    putNew: (driver) => writeOne(driver, { space: 'new space', key: 'new', item: makeItem(name), expect: null }),
    remove: (driver) => writeOne(driver, { space: 's', key: 'k', item: null, expect: 'old' }),
    extend: (driver) => driver.readItems(log.tenant, 's', ['expiring'], { now: NOW, extendTo: NOW + 1000 }),
    apply: (driver, head) =>
      driver.applyWrites(log, head.incarnation, carriedWrites(head.seq), { upTo: head.seq, redo: false }),
    /** Sweeps what expires, and forgets what was removed a day before. */
    sweep: (driver) => driver.sweepItems(NOW + DAY_MS, 10),

    /** Counts up `count` times in an item in which others count as well. */
    async count(driver) {
      for (let i = 0; i < count; ) {
        const [found] = await driver.readItems(log.tenant, 's', ['counter'], { now: NOW })
        const value = Buffer.from(String(Number(Buffer.from(found?.value ?? '0')) + 1))
        const item = { ...makeItem(`${name}-${i}`), value }
        const write = { space: 's', key: 'counter', item, expect: found?.version ?? null }
        if ((await writeOne(driver, write)) !== 'written') continue
        report({ acknowledged: [item.version] })
        i++
      }
    },
  }
}
