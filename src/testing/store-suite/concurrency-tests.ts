import assert from 'node:assert/strict'
import { isHoldfastError } from '../../index.js'
import { systemClock } from '../../driver.js'
import { faultyDriver } from '../faulty-driver.js'
import { notes, refuses, type StoreTest } from './store-context.js'

export const concurrencyTests: readonly StoreTest[] = [
  {
    name: 'loses no update of many writers that expect what they read',
    async run({ hf, open }) {
      const processes = [hf, await open(), await open()]
      const count = async (one: typeof hf): Promise<void> => {
        const collection = notes(one)
        for (let done = 0; done < 15; ) {
          const before = await collection.get('counter')
          try {
            await collection.put('counter', Number(before?.value ?? 0) + 1, { expect: before?.version ?? null })
            done++
          } catch (error) {
            if (!isHoldfastError(error, 'conflict')) throw error
          }
        }
      }
      await Promise.all([...processes, ...processes].map(count))
      assert.equal((await notes(hf).get('counter'))?.value, 90)
    },
  },
  {
    name: 'lets exactly one of many creators win, and exactly one of many removers',
    async run({ hf, open }) {
      const processes = [hf, await open(), await open()]
      for (let round = 0; round < 20; round++) {
        const creating = await Promise.allSettled(processes.map((one, i) => notes(one).put('k', i, { expect: null })))
        assert.equal(creating.filter(({ status }) => status === 'fulfilled').length, 1)
        const item = await notes(hf).get('k')
        assert.equal(creating[Number(item?.value)]?.status, 'fulfilled')
        const expect = item?.version ?? null
        const removing = await Promise.allSettled(processes.map((one) => notes(one).delete('k', { expect })))
        assert.equal(removing.filter(({ status }) => status === 'fulfilled').length, 1)
        assert.equal(await notes(hf).get('k'), undefined)
      }
    },
  },
  {
    name: 'never shows a reader half of what was written',
    async run({ hf, open }) {
      const writer = notes(await open())
      const reader = notes(hf)
      let isWriting = true
      const write = async () => {
        for (let i = 0; i < 60; i++) {
          await writer.batch(
            ['a', 'b', 'c'].map((key) => ({ put: key, value: { i, again: i, long: String(i).repeat(500) } })),
          )
        }
        isWriting = false
      }
      const read = async () => {
        while (isWriting) {
          for (const { value } of (await reader.list()).items) {
            const { i, again, long } = value as { i: number; again: number; long: string }
            assert.ok(i === again && long === String(i).repeat(500))
          }
        }
      }
      await Promise.all([write(), read()])
    },
  },
  {
    name: 'writes once when a reply is lost, and tells its own work from that of others',
    async run({ open, driver, hf }) {
      const mine = faultyDriver(await driver())
      const lossy = await open({ clock: systemClock(), retryMs: 5000 }, mine)
      const collection = notes(lossy)
      for (const moment of ['before', 'after'] as const) {
        mine.loseNext('writeItems', moment)
        const first = await collection.put('k', moment, { expect: null })
        assert.equal((await notes(hf).get('k'))?.version, first.version)
        mine.loseNext('writeItems', moment)
        const second = await collection.put('k', 2, { expect: first.version })
        mine.loseNext('writeItems', moment)
        await refuses(() => collection.put('k', 3, { expect: first.version }), 'conflict')
        mine.loseNext('writeItems', moment)
        await collection.delete('k', { expect: second.version })
        assert.equal(await notes(hf).get('k'), undefined)
      }
    },
  },
]
