import { copyStore } from 'holdfast/data'
import { type Driver, openDriver } from 'holdfast/driver'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dumpStore } from '../support/dump-store.js'
import { everyBackend } from '../support/every-backend.js'
import { fillStore, order, over } from '../support/filled-store.js'
import { seeded } from '../support/seeded.js'

const backends = (await everyBackend()).filter(({ missing }) => !missing)
const opened: Driver[] = []
const sources = new Map<string, Driver>()

async function open(backend: (typeof backends)[number]): Promise<Driver> {
  const driver = await openDriver(await backend.fresh())
  opened.push(driver)
  return driver
}

beforeAll(async () => {
  for (const [i, backend] of backends.entries()) {
    const driver = await open(backend)
    await fillStore(driver, seeded(100 + i))
    sources.set(backend.name, driver)
  }
}, 600_000)

afterAll(async () => {
  await Promise.all(opened.map((driver) => driver.close()))
  await Promise.all(backends.map((backend) => backend.cleanup()))
})

describe('a copy between backends', () => {
  for (const source of backends) {
    for (const target of backends) {
      it(`holds what ${source.name} held, hash by hash, on ${target.name}`, { timeout: 600_000 }, async () => {
        const from = sources.get(source.name) as Driver
        const to = await open(target)
        const report = await copyStore(from, to)
        expect(report).toMatchObject({ refused: [], complete: true })
        expect(report.verified).toBe(report.entries)
        expect(await dumpStore(to)).toEqual(await dumpStore(from))

        const again = await copyStore(from, to)
        expect(again).toMatchObject({ entries: 0, items: 0, blobs: 0, tombstones: 0, refused: [] })
        expect(again.same).toBe(report.branches)
      })
    }
  }

  for (const target of backends) {
    it(`goes on where it came from: runs, verifies and answers on ${target.name}`, { timeout: 600_000 }, async () => {
      const from = sources.get('memory') as Driver
      const to = await open(target)
      await copyStore(from, to)
      const hf = over(to).tenant('one')
      for (const { thread, branch } of (await hf.threads({ limit: 100 })).threads) {
        expect((await hf.verify(thread, { branch }))?.problems).toEqual([])
      }
      const asked = await hf.pauses()
      expect(asked.pauses.length).toBeGreaterThan(0)
      for (const { thread, branch, id } of asked.pauses) {
        if (branch !== 'main') continue
        await hf.inspect(thread).answer(id, 'yes')
        const outcome = await hf.thread(order, thread).run()
        expect(outcome).toMatchObject({ status: 'completed', output: { answer: 'yes' } })
      }
      const gone = await hf.thread(order, 'gone').run({ input: { id: 'gone', ask: false }, expect: 'existing' })
      expect(gone).toMatchObject({ restarted: true })
      // What a deleted item's entries once carried does not come back.
      const source = over(from).tenant('one').store.scope({ user: 'ada' }).collection('facts')
      const copied = hf.store.scope({ user: 'ada' }).collection('facts')
      expect((await copied.list()).items.map(({ key }) => key)).toEqual(
        (await source.list()).items.map(({ key }) => key),
      )
    })
  }
})
