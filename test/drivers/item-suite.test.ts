import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import type { Driver } from '#src/log/contract.js'
import type { ItemDriver } from '#src/log/store-contract.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { describe, expect, it } from 'vitest'

type Break = (driver: Driver & ItemDriver) => Partial<Driver>

/** The tests of the suite over a memory driver in which something is broken. */
function collect(spoil: Break): Map<string, () => Promise<void> | void> {
  const tests = new Map<string, () => Promise<void> | void>()
  const setup = async () => {
    const store = createMemoryStore()
    const open = async (): Promise<Driver> => {
      const driver = (await openMemory({ store })) as Driver & ItemDriver
      return { ...driver, ...spoil(driver) }
    }
    return { open, cleanup: async () => {} }
  }
  const framework = {
    describe: (_name: string, body: () => void) => body(),
    it: (name: string, body: () => Promise<void> | void) => void tests.set(name, body),
  }
  driverSuite('broken', setup, { framework, rounds: 20 })
  return tests
}

/** Each way to break a promise, and the test that must notice. */
const faults: readonly (readonly [fault: string, noticedBy: string, spoil: Break])[] = [
  [
    'checks versions before it writes, and not while',
    'lets exactly one of two writers win that expect the same version',
    (driver) => ({
      writeItems: async (tenant, writes, now) => {
        const found = await driver.readItems(tenant, writes[0]!.space, [writes[0]!.key], { now })
        const version = found[0]?.version ?? null
        if (writes[0]!.expect !== undefined && writes[0]!.expect !== version) return [{ status: 'conflict', version }]
        return driver.writeItems(
          tenant,
          writes.map(({ space, key, item }) => ({ space, key, item })),
          now,
        )
      },
    }),
  ],
  [
    'forgets when an item was created',
    'overwrites an item and keeps when it was created',
    (driver) => ({
      writeItems: async (tenant, writes, now) => {
        await driver.writeItems(
          tenant,
          writes.map((write) => ({ ...write, item: null })),
          now,
        )
        return driver.writeItems(tenant, writes, now)
      },
    }),
  ],
  [
    'goes by its own clock',
    'goes by the time it is told, not by a clock of its own',
    (driver) => ({
      readItems: (tenant, space, keys, options) =>
        driver.readItems(tenant, space, keys, { ...options, now: Date.now() }),
    }),
  ],
  [
    'prolongs what has expired',
    'never moves an expiry earlier, nor brings an expired item back',
    (driver) => ({
      readItems: (tenant, space, keys, options) =>
        driver.readItems(tenant, space, keys, options.extendTo === undefined ? options : { ...options, now: 0 }),
    }),
  ],
  [
    'orders keys by UTF-16 units',
    'orders keys by their UTF-8 bytes, not by UTF-16 units',
    (driver) => ({
      scanItems: async (tenant, space, scan, now) => {
        const all = await driver.scanItems(tenant, space, { limit: 1e9 }, now)
        const above = all.filter(({ key }) => scan.after === undefined || key > scan.after)
        return above.toSorted((a, b) => (a.key < b.key ? -1 : 1)).slice(0, scan.limit)
      },
    }),
  ],
  [
    'takes a prefix for a pattern',
    'finds keys by their beginning, of which no character is a pattern',
    (driver) => ({
      scanItems: async (tenant, space, { prefix = '', ...scan }, now) => {
        const like = new RegExp(
          `^${prefix
            .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
            .replaceAll('%', '.*')
            .replaceAll('_', '.')}`,
          'su',
        )
        const all = await driver.scanItems(tenant, space, { ...scan, limit: 1e9 }, now)
        return all.filter(({ key }) => like.test(key)).slice(0, scan.limit)
      },
    }),
  ],
  [
    'leaves out what was not indexed',
    'narrows a scan by fields and never leaves out what it must not',
    (driver) => ({
      scanItems: async (tenant, space, { where, ...scan }, now) => {
        const found = await driver.scanItems(tenant, space, { ...scan, ...(where ? { where } : {}) }, now)
        return where?.length ? found.filter(({ key }) => key !== 'fieldless') : found
      },
    }),
  ],
  [
    'cuts expired items off after it took a page',
    'fills a page though expired items lie between',
    (driver) => ({
      scanItems: async (tenant, space, scan, now) => {
        const page = await driver.scanItems(tenant, space, scan, 0)
        return page.filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
      },
    }),
  ],
  [
    'folds case',
    'keeps odd keys apart, whatever they mean elsewhere',
    (driver) => ({
      writeItems: (tenant, writes, now) =>
        driver.writeItems(
          tenant,
          writes.map((write) => ({ ...write, key: write.key.toLowerCase() })),
          now,
        ),
      readItems: (tenant, space, keys, options) =>
        driver.readItems(
          tenant,
          space,
          keys.map((key) => key.toLowerCase()),
          options,
        ),
    }),
  ],
  [
    'joins spaces and keys',
    'never mixes up spaces and keys that are equal when they are joined',
    (driver) => ({
      writeItems: (tenant, writes, now) =>
        driver.writeItems(
          tenant,
          writes.map((write) => ({ ...write, space: 'x', key: write.space + write.key })),
          now,
        ),
      readItems: (tenant, space, keys, options) =>
        driver.readItems(
          tenant,
          'x',
          keys.map((key) => space + key),
          options,
        ),
    }),
  ],
  [
    'writes items of an append that conflicts',
    'carries nothing with an append that conflicts',
    (driver) => ({
      append: async (batch) => {
        for (const { log, carried = [] } of batch) await driver.writeItems(log.tenant, carried, 0)
        return driver.append(batch)
      },
    }),
  ],
  [
    'applies again what was applied',
    'changes nothing when it applies the same again',
    (driver) => ({
      applyWrites: async (log, incarnation, writes, options) => {
        await driver.writeItems(log.tenant, writes, options.upTo)
        return driver.applyWrites(log, incarnation, writes, options)
      },
    }),
  ],
  [
    'redoes over what others did later',
    'redoes nothing over what others did later',
    (driver) => ({
      applyWrites: (log, incarnation, writes, options) =>
        driver.applyWrites(log, incarnation, writes, { ...options, redo: false }),
    }),
  ],
  [
    'skips by time when it applies first',
    'loses no first application to a clock that runs ahead',
    (driver) => ({
      applyWrites: (log, incarnation, writes, options) =>
        driver.applyWrites(log, incarnation, writes, { ...options, redo: true }),
    }),
  ],
  [
    'applies for a log that is gone',
    'applies nothing for a log that is gone or was made again',
    (driver) => ({
      applyWrites: async (log, incarnation, writes, options) => {
        if (await driver.applyWrites(log, incarnation, writes, options)) return true
        await driver.writeItems(log.tenant, writes, 0)
        return false
      },
    }),
  ],
]

describe('the conformance tests of items', () => {
  for (const [fault, noticedBy, spoil] of faults) {
    it(`notice a driver that ${fault}`, async () => {
      const test = collect(spoil).get(noticedBy)
      if (test === undefined) throw new TypeError(`The suite has no test "${noticedBy}".`)
      await expect(Promise.resolve(test())).rejects.toThrow(/./s)
      await collect(() => ({})).get(noticedBy)?.()
    })
  }

  it('leave a driver without items alone', async () => {
    const tests = collect(({ ...driver }) => ({ ...driver, writeItems: undefined as never }))
    await tests.get('keeps an item byte for byte, with its version and its times')?.()
  })
})
