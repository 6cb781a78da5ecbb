import { Holdfast, isHoldfastError } from 'holdfast'
import { copyStore } from 'holdfast/data'
import { type Driver, openDriver, systemClock } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { afterAll, describe, expect, it } from 'vitest'
import { dumpStore } from '../support/dump-store.js'
import { fillStore, order, over } from '../support/filled-store.js'
import { seeded } from '../support/seeded.js'

const opened: Driver[] = []
afterAll(() => Promise.all(opened.map((driver) => driver.close())))

async function memory(): Promise<Driver> {
  const driver = await openDriver('memory:')
  opened.push(driver)
  return driver
}

const run = (driver: Driver, id: string, ask = false) => over(driver).thread(order, id).run({ input: { id, ask } })
const keys = (secret: number) => ({ masters: { [`k${secret}`]: Buffer.alloc(32, secret) }, current: `k${secret}` })

describe('a copy', () => {
  it('leaves another thread of the same name alone, says so, and brings all others', async () => {
    const [from, to] = [await memory(), await memory()]
    await run(from, 'shared')
    await run(from, 'other')
    await run(to, 'shared')
    const before = await to.heads({ limit: 10 })
    const report = await copyStore(from, to)
    expect(report.refused).toMatchObject([
      { thread: 'shared', branch: 'main', reason: 'exists' },
      { item: { key: 'last' }, reason: 'exists' },
    ])
    expect(report.refused[0]?.message).toContain('Erase it there')
    expect((await to.heads({ limit: 10 })).heads.map(({ log }) => log.thread).sort()).toEqual(['other', 'shared'])
    const [shared] = before.heads
    expect(shared && (await to.head(shared.log))?.hash).toBe(shared?.hash)
  })

  it('leaves a thread alone that went on at the destination, or on both sides', async () => {
    const [from, to] = [await memory(), await memory()]
    for (const id of ['ahead', 'both']) await run(from, id)
    await copyStore(from, to)
    await over(to)
      .log('ahead')
      .then((log) => log.tag('there'))
    await over(to)
      .log('both')
      .then((log) => log.tag('there'))
    await over(from)
      .log('both')
      .then((log) => log.tag('here'))
    const reasons = (await copyStore(from, to)).refused.map(({ thread, reason }) => [thread, reason])
    expect(reasons.sort()).toEqual([
      ['ahead', 'ahead'],
      ['both', 'diverged'],
    ])
  })

  it('says where the source was pruned past the end of what was copied', async () => {
    const [from, to] = [await memory(), await memory()]
    const log = await over(from).log('long')
    await log.update(() => [{ kind: 'turn' }])
    await copyStore(from, to)
    for (let i = 0; i < 3; i++) await log.update(() => [{ kind: 'turn', keyframe: true }])
    await over(from).prune('long', 3)
    expect((await copyStore(from, to)).refused).toMatchObject([{ thread: 'long', reason: 'gap' }])
  })

  it('does not carry damage over', async () => {
    const [from, to] = [await memory(), await memory()]
    await run(from, 'good')
    await run(from, 'bad')
    const damaged = new Proxy(from, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (name !== 'read') return typeof value === 'function' ? value.bind(target) : value
        return async (...[log, first, limit]: Parameters<Driver['read']>) => {
          const entries = await target.read(log, first, limit)
          if (log.thread === 'bad') entries.at(-1)?.body.fill(0x20, 0, 1)
          return entries
        }
      },
    })
    const report = await copyStore(damaged, to)
    expect(report.refused).toMatchObject([{ thread: 'bad', reason: 'damaged' }])
    expect((await over(to).verify('good'))?.ok).toBe(true)
  })

  it('leaves another item alone, and replaces it in a second pass if it is older', async () => {
    const [from, to] = [await memory(), await memory()]
    const facts = (driver: Driver, now: number) => {
      const clock = { ...systemClock(), now: () => now }
      return new Holdfast(new LogStore(driver, { clock })).store.scope({ user: 'a' }).collection<string>('facts')
    }
    await facts(to, 1000).put('k', 'theirs')
    await facts(from, 2000).put('k', 'ours')
    await facts(from, 2000).put('newer', 'ours')
    await facts(to, 3000).put('newer', 'theirs')
    const held = { item: { key: 'newer' }, reason: 'exists' }
    expect((await copyStore(from, to)).refused).toMatchObject([{ item: { key: 'k' }, reason: 'exists' }, held])
    expect((await facts(to, 4000).get('k'))?.value).toBe('theirs')
    expect((await copyStore(from, to, { since: new Date(0) })).refused).toMatchObject([held])
    expect((await facts(to, 4000).get('k'))?.value).toBe('ours')
    expect((await facts(to, 4000).get('newer'))?.value).toBe('theirs')
  })

  it('brings in a second pass what changed since, and removes what is gone where it is told to', async () => {
    const [from, to] = [await memory(), await memory()]
    await fillStore(from, seeded(11))
    const begun = new Date()
    await copyStore(from, to)
    const hf = over(from).tenant('one')
    await run(from, 'new')
    await hf.erase({ user: 'u1', session: 's:1' }, { reason: 'asked' })
    const facts = hf.store.scope({ user: 'ada' }).collection<{ n: number }>('facts', { index: ['n'] })
    for (const { key } of (await facts.list()).items) await facts.delete(key)
    await facts.put('k0', { n: 5 })
    const log = await hf.log('plain-0')
    await log.update(() => [{ kind: 'turn', keyframe: true }])
    await hf.prune('plain-0', log.fold.seq, { evenTagged: true })

    const kept = await copyStore(from, to, { since: new Date(begun.getTime() - 1) })
    expect(kept.refused.map(({ reason, thread }) => [reason, thread])).toEqual([
      ['gap', 'plain-0'],
      ['exists', { session: 's:1', user: 'u1' }],
    ])
    expect(kept.removed).toBe(0)
    expect(
      (
        await over(to)
          .tenant('one')
          .threads({ thread: { user: 'u1', session: 's:1' } })
      ).threads,
    ).not.toEqual([])

    const mirrored = await copyStore(from, to, { since: new Date(begun.getTime() - 1), deleteMissing: true })
    expect(mirrored.refused).toEqual([])
    expect(mirrored.removed).toBeGreaterThan(0)
    expect(await dumpStore(to)).toEqual(await dumpStore(from))
  })

  it('of one tenant brings nothing of others', async () => {
    const [from, to] = [await memory(), await memory()]
    await fillStore(from, seeded(5))
    await copyStore(from, to, { tenant: 'one' })
    expect(await to.listTenants?.()).toEqual(['one'])
  })

  it('refuses the same store twice, and options that mean nothing', async () => {
    const from = await memory()
    await expect(copyStore(from, from)).rejects.toThrow('is the store to copy from')
    await expect(copyStore(from, await memory(), { since: new Date('soon') })).rejects.toThrow('not a valid Date')
    await expect(copyStore(from, await memory(), { concurrency: 0 })).rejects.toThrow('concurrency')
    const misspelt = { deleteMising: true } as object
    await expect(copyStore(from, await memory(), misspelt)).rejects.toThrow('Did you mean deleteMissing?')
  })
})

describe('a copy of an encrypted store', () => {
  it('needs no key, keeps every hash, and opens with the same keys', async () => {
    const [from, to] = [await memory(), await memory()]
    await fillStore(from, seeded(21), keys(1))
    const report = await copyStore(from, to)
    expect(report).toMatchObject({ refused: [], verified: 0 })
    expect(await dumpStore(to)).toEqual(await dumpStore(from))
    const hf = over(to, keys(1)).tenant('one')
    for (const { thread, branch } of (await hf.threads()).threads) {
      expect((await hf.verify(thread, { branch }))?.problems).toEqual([])
    }
    await expect(over(to, keys(2)).tenant('one').log('plain-0')).rejects.toSatisfy((error) => isHoldfastError(error))
  })

  it('verifies every HMAC where it has the keys', async () => {
    const [from, to] = [await memory(), await memory()]
    await fillStore(from, seeded(22), keys(1))
    const report = await copyStore(from, to, { keys: keys(1) })
    expect(report.refused).toEqual([])
    expect(report.verified).toBeGreaterThanOrEqual(report.entries - 4)
  })

  it('is refused where the destination has keys of its own, or plain threads of that tenant', async () => {
    const [from, keyed, plain] = [await memory(), await memory(), await memory()]
    await fillStore(from, seeded(23), keys(1))
    await fillStore(keyed, seeded(24), keys(1))
    await fillStore(plain, seeded(25))
    for (const to of [keyed, plain]) {
      const before = await dumpStore(to)
      const report = await copyStore(from, to)
      expect(report.refused.length).toBe(2)
      expect(await dumpStore(to)).toEqual(before)
    }
    const back = await copyStore(plain, keyed)
    expect(back.refused.map(({ reason }) => reason)).toEqual(['keys', 'keys'])
  })
})
