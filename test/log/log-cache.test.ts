import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gate } from '../support/gate.js'

const { push, set } = ops

const key = { tenant: 'default', thread: 't', branch: 'main' } as never
const note = (text: string) => () => [{ kind: 'input', ops: [push('notes', text)] }]

describe('logs that a process keeps for their next use', () => {
  let driver: Driver
  let calls: string[]
  let mine: LogStore
  let others: LogStore
  const clock = virtualClock()

  beforeEach(async () => {
    driver = await openDriver('memory:', { clock })
    calls = []
    mine = new LogStore(counted(driver), { clock })
    others = new LogStore(driver, { clock, blobThreshold: 1_000_000 })
    const log = await mine.borrow(key)
    await log.update(note('one'))
    mine.giveBack(log)
    calls.length = 0
  })
  afterEach(() => driver.close())

  function counted(target: Driver): Driver {
    return new Proxy(target, {
      get(_, name) {
        const value = Reflect.get(target, name, target) as unknown
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          calls.push(String(name))
          return value.apply(target, args)
        }
      },
    })
  }

  const reads = () => calls.filter((name) => ['head', 'read', 'tail'].includes(name)).sort()

  it('are read on from where they were, with what others appended since', async () => {
    await (await others.open(key)).update(note('two'))
    const log = await mine.borrow(key)
    expect(log.fold.state).toEqual({ notes: ['one', 'two'] })
    expect(reads()).toEqual(['head', 'read'])
    expect(log.fold).toEqual((await others.open(key)).fold)
    await log.update(note('three'))
    expect((await others.open(key)).fold.state).toEqual({ notes: ['one', 'two', 'three'] })
  })

  it('are read on with one read, once their head is known', async () => {
    const log = await mine.borrow(key)
    mine.giveBack(log)
    await (await others.open(key)).update(note('two'))
    calls.length = 0
    expect((await mine.borrow(key)).fold.state).toEqual({ notes: ['one', 'two'] })
    expect(reads()).toEqual(['read'])
  })

  it('do not read back what they write themselves while they look for what others wrote', async () => {
    const arrived = gate()
    const acknowledged = gate()
    const held: Driver = {
      ...counted(driver),
      append: async (batch) => {
        const results = await driver.append(batch)
        arrived.open()
        await acknowledged.passed
        return results
      },
    }
    const log = await new LogStore(held, { clock }).open(key)
    calls.length = 0
    const writing = log.update(note('two'))
    await arrived.passed
    await log.refresh()
    expect(reads()).toEqual(['head'])
    expect(log.fold.state).toEqual({ notes: ['one'] })
    acknowledged.open()
    await writing
    expect(log.fold.state).toEqual({ notes: ['one', 'two'] })
    await (await others.open(key)).update(note('three'))
    expect((await log.refresh()).state).toEqual({ notes: ['one', 'two', 'three'] })
  })

  it('belong to one borrower at a time; a second one reads for itself', async () => {
    const first = await mine.borrow(key)
    const second = await mine.borrow(key)
    expect(second).not.toBe(first)
    expect(reads()).toEqual(['head', 'read', 'tail'])
    await second.update(note('two'))
    mine.giveBack(second)
    // What is older than what is kept is not kept instead of it.
    mine.giveBack(first)
    expect(await mine.borrow(key)).toBe(second)
  })

  it('are opened anew after the thread was erased, pruned, or has moved on too far', async () => {
    const log = await others.open(key)
    for (let i = 0; i < 300; i++) await log.update((fold) => [{ kind: 'input', ops: [set('n', fold.seq)] }])
    const far = await mine.borrow(key)
    expect(far.fold.seq).toBe(300)
    mine.giveBack(far)
    // Enough for a keyframe, before which everything can go.
    for (let i = 0; i < 20; i++) await log.update(() => [{ kind: 'input', ops: [set('n', `${i}`.repeat(10_000))] }])
    const { removed } = await others.prune(key, log.fold.seq)
    expect(removed).toBeGreaterThan(301)
    const pruned = await mine.borrow(key)
    expect(pruned.fold).toEqual((await others.open(key)).fold)
    mine.giveBack(pruned)
    await others.erase({ ...(key as object), reason: 'erased' } as never)
    expect((await mine.borrow(key)).exists).toBe(false)
  })

  it.each(['less', 'another past'])(
    'tell, once, when the backend came back with %s where entries were acknowledged',
    async (what) => {
      const older = await openDriver('memory:', { clock })
      const elsewhere = new LogStore(older, { clock })
      await (await elsewhere.open(key)).update(note('one'))
      const { incarnation } = (await elsewhere.open(key)).fold
      const store = new LogStore(
        new Proxy(older, {
          get(target, name) {
            const value = Reflect.get(lost ? empty : target, name, target) as unknown
            return typeof value === 'function' ? value.bind(target) : value
          },
        }),
        { clock },
      )
      let lost = false
      const empty = {
        ...older,
        head: async () => ({ ...(await older.head(key)), seq: what === 'less' ? 0 : 7, hash: 'another', incarnation }),
        read: async (...args: Parameters<Driver['read']>) =>
          what === 'less' ? [] : (await older.read(...args)).map((entry) => ({ ...entry, hash: 'another' })),
      } as unknown as Driver
      const log = await store.borrow(key)
      await log.update(note('two'))
      store.giveBack(log)
      lost = true
      await expect(store.borrow(key)).rejects.toMatchObject({ code: 'data-loss' })
      lost = false
      expect((await store.borrow(key)).fold.state).toEqual({ notes: ['one', 'two'] })
      await older.close()
    },
  )

  it('count with their large values, which lie in blobs, and with what a handle takes itself', async () => {
    const store = new LogStore(counted(driver), { clock, cacheBytes: 250_000 })
    const named = (thread: string) => ({ ...(key as object), thread }) as never
    const use = async (thread: string, value: string) => {
      const log = await store.borrow(named(thread))
      await log.update(() => [{ kind: 'input', ops: [set('value', value)] }])
      store.giveBack(log)
      return log
    }
    const first = await use('a', 'x'.repeat(100_000))
    const second = await use('b', 'y'.repeat(100_000))
    expect(await store.borrow(named('a'))).toBe(first)
    store.giveBack(first)
    await use('c', 'z'.repeat(100_000))
    expect(await store.borrow(named('a'))).toBe(first)
    expect(await store.borrow(named('b'))).not.toBe(second)
    // Also when they were read and not written here.
    const reader = new LogStore(driver, { clock, cacheBytes: 150_000 })
    const [one, two] = [await reader.borrow(named('a')), await reader.borrow(named('b'))]
    reader.giveBack(one)
    reader.giveBack(two)
    expect(await reader.borrow(named('a'))).not.toBe(one)

    const handles = []
    for (let i = 0; i < 200; i++) handles.push(await use(`small${i}`, ''))
    expect(await store.borrow(named('small199'))).toBe(handles[199])
    expect(await store.borrow(named('small0'))).not.toBe(handles[0])
  })

  it('are let go when they are too large, not wanted for long, or the thread is erased here', async () => {
    const small = new LogStore(counted(driver), { clock, cacheBytes: 100 })
    for (const [store, spoil] of [
      [small, () => {}],
      [mine, () => clock.advance(11 * 60 * 1000)],
      [mine, () => mine.erase({ tenant: 'default', thread: 't', reason: 'erased' } as never)],
    ] as const) {
      const log = await store.borrow(key)
      await log.update(note('z'.repeat(200)))
      store.giveBack(log)
      await spoil()
      const other = await store.borrow({ ...(key as object), thread: 'other' } as never)
      await other.update(note('a'))
      store.giveBack(other)
      expect(await store.borrow(key)).not.toBe(log)
    }
  })
})
