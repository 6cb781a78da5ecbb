import { flow, Holdfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RunState } from '#src/runtime/run/state/run-state.js'
import { openRuntimeFixture } from '../../support/runtime-fixture.js'
import { until } from '../../support/until.js'

let clock: VirtualClock
let driver: Driver
let hf: Holdfast
let ran: string[]

beforeEach(async () => {
  clock = virtualClock()
  driver = await openDriver('memory:', { clock })
  hf = process()
  ran = []
})

afterEach(() => hf.close())

/** Another process on the same store: it remembers nothing. */
const process = () => new Holdfast(new LogStore(driver, { clock }))

const pay = flow({ name: 'pay', version: '1.0.0' }, (ctx, what: string) =>
  ctx.step('pay', () => {
    ran.push(what)
    return `paid ${what}`
  }),
)

const stateOf = async (thread = 't', branch = 'main') => (await hf.log(thread, { branch })).fold.state as RunState

describe('an input key', () => {
  it('is known for as long as its thread lives, however many inputs came after it', async () => {
    const thread = hf.thread(pay, 't')
    for (let i = 0; i < 230; i++) await thread.run({ input: `${i}`, key: `m-${i}` })
    const { length } = ran
    for (const i of [0, 1, 50, 129, 130, 131, 228, 229]) {
      const again = await process()
        .thread(pay, 't')
        .run({ input: 'changed', key: `m-${i}` })
      expect(again).toMatchObject({ status: 'completed', output: `paid ${i}`, input: 'taken' })
      expect(await thread.enqueue('changed', { key: `m-${i}` })).toMatchObject({ input: 'taken' })
    }
    expect(ran).toHaveLength(length)
    expect(await thread.run()).toMatchObject({ output: 'paid 229' })
  })

  it.each([['with a key', { key: 'w' }] as const, ['without one', {}] as const])(
    'or place in the queue is not lost by a request that waits, %s: 150 inputs behind it do not bring it back',
    async (_, named) => {
      let leave = () => {}
      let begun = () => {}
      const left = new Promise<void>((resolve) => (leave = resolve))
      const began = new Promise<void>((resolve) => (begun = resolve))
      const held = flow({ name: 'held', version: '1.0.0' }, (ctx, what: string) =>
        ctx.step('pay', async () => {
          if (what === 'hold') {
            begun()
            await left
          }
          ran.push(what)
          return what
        }),
      )
      const holder = hf.thread(held, 't').run({ input: 'hold', key: 'hold' })
      await began
      const other = process()
      const waiter = other.thread(held, 't').run({ input: 'w', ...named, busy: 'queue' })
      await until(async () => ((await stateOf()).inputs ?? []).length === 1)
      for (let i = 0; i < 150; i++) await hf.thread(held, 't').enqueue(`${i}`, { key: `m-${i}` })
      leave()
      await holder
      // One call takes all that waits, while the one that waits for its own sleeps between two looks.
      await hf.thread(held, 't').run()
      expect(ran).toHaveLength(152)
      await clock.advance(1000)
      expect(await waiter).toMatchObject({ status: 'completed', output: 'w', input: 'taken' })
      expect(ran.filter((what) => what === 'w')).toEqual(['w'])
    },
  )

  it('is still known when the entry that tells its outcome was pruned, and says what is left to say', async () => {
    const thread = hf.thread(pay, 't')
    await thread.run({ input: 'a', key: 'a' })
    for (let i = 0; i < 120; i++) await thread.run({ input: 'x'.repeat(2000), key: `m-${i}` })
    const [newest] = await thread.history({ limit: 1 })
    const { removed } = await hf.prune('t', newest?.seq ?? 0)
    expect(removed).toBeGreaterThan(10)
    const { length } = ran
    expect(await process().thread(pay, 't').run({ input: 'a', key: 'a' })).toMatchObject({
      status: 'pruned',
      input: 'taken',
      ended: 'completed',
    })
    expect(await thread.enqueue('a', { key: 'a' })).toMatchObject({ input: 'taken' })
    expect(ran).toHaveLength(length)
  })

  it('is known on a fork if it was taken before it, and is its own after it', async () => {
    const thread = hf.thread(pay, 't')
    await thread.run({ input: 'a', key: 'a' })
    const [at] = await thread.history({ limit: 1 })
    await thread.run({ input: 'b', key: 'b' })
    const fork = await thread.at(at?.id ?? '').fork({ name: 'f', effects: 'allow' })
    const inner = await fork.at((await fork.history({ limit: 1 }))[0]?.id ?? '').fork({ name: 'g', effects: 'allow' })
    for (const branch of [fork, inner]) {
      expect(await branch.run({ input: 'a', key: 'a' })).toMatchObject({ output: 'paid a', branch: 'main' })
      expect(await branch.run({ input: 'b', key: 'b' })).toMatchObject({ output: 'paid b', branch: branch.branch })
      expect(await branch.run({ input: 'b', key: 'b' })).toMatchObject({ output: 'paid b', branch: branch.branch })
    }
    expect(ran).toEqual(['a', 'b', 'b', 'b'])
  })

  it('of a cancelled run is known, with how it ended', async () => {
    const asks = flow({ name: 'asks', version: '1.0.0' }, (ctx) => ctx.pause('?'))
    const thread = hf.thread(asks, 't')
    await thread.run({ input: 1, key: 'a' })
    await thread.cancel()
    expect(await thread.run({ input: 1, key: 'a' })).toMatchObject({
      status: 'failed',
      error: { code: 'cancelled' },
      input: 'taken',
    })
  })

  it('costs each set one small bucket: the index is spread by the hash of the key', async () => {
    const thread = hf.thread(pay, 't')
    for (let i = 0; i < 100; i++) await thread.run({ input: `${i}`, key: `m-${i}` })
    const { keys = {}, taken } = await stateOf()
    expect(taken).toBeUndefined()
    const buckets = Object.values(keys)
    expect(buckets.reduce((sum, bucket) => sum + Object.keys(bucket).length, 0)).toBe(100)
    expect(Math.max(...buckets.map((bucket) => Object.keys(bucket).length))).toBeLessThan(8)
    expect(JSON.stringify(keys)).not.toContain('m-1')
  })
})

describe('keys that 0.1 kept in a list', () => {
  it('are known at once, and carried over with the next run', async () => {
    const { hf: old } = await openRuntimeFixture('order-completed')
    const before = (await old.log('completed')).fold.state as RunState
    const keyed = before.taken?.filter(({ key }) => key !== undefined) ?? []
    expect(keyed.length).toBeGreaterThan(0)
    const order = flow({ name: 'order', version: '1.1.0' }, async (ctx, { stage }: { stage: string }) =>
      ctx.step('again', () => ran.push(stage)),
    )
    const thread = old.thread(order, 'completed')
    const again = () => thread.run({ input: { stage: 'again' }, key: keyed[0]?.key ?? '' })
    const first = await again()
    expect(first).toMatchObject({ status: 'completed', input: 'taken' })
    await thread.run({ input: { stage: 'new' }, key: 'new' })
    const after = (await old.log('completed')).fold.state as RunState
    expect(after.taken).toBeUndefined()
    expect(await again()).toEqual(first)
    expect(ran).toEqual(['new'])
  })
})
