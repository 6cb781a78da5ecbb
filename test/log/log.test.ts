import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Holdfast, openHoldfast } from 'holdfast'
import { type Driver, openDriver, type StoredEntry } from 'holdfast/driver'
import type { CorruptError } from 'holdfast/errors'
import { LogStore, ops } from 'holdfast/log'
import { faultyDriver } from 'holdfast/testing'
import { durableBackends } from '../support/backends.js'
import { until } from '../support/until.js'

const { push, remove, set, splice } = ops

const MEMORY = { name: 'memory', missing: false, fresh: async () => 'memory:', cleanup: async () => {} }
const step = (n: number | string) => [{ kind: 'step', ops: [push('items', n)] }]

for (const backend of [MEMORY, ...(await durableBackends())]) {
  describe.skipIf(backend.missing)(`the log on ${backend.name}`, () => {
    let hf: Holdfast
    let url: string
    let counter = 0
    const fresh = () => `thread-${counter++}`
    beforeEach(async () => {
      url ??= await backend.fresh()
      hf = await openHoldfast(url)
    })
    afterEach(() => hf.close())
    afterAll(() => backend.cleanup())

    it('creates a thread by its first update and folds what follows', async () => {
      const log = await hf.log(fresh())
      expect(log.exists).toBe(false)
      expect(log.checkpoint).toBeUndefined()
      await log.update(() => [{ kind: 'step', ops: [set('name', 'Ada'), push('items', 1, 2, 3)] }])
      const { fold } = await log.update(() => [{ kind: 'step', ops: [splice('items', 1, 1, 'two'), remove('name')] }])
      expect(fold.state).toEqual({ items: [1, 'two', 3] })
      expect(log.checkpoint).toMatch(/^main~1~[0-9a-f]{12}$/)
    })

    it('keeps what an entry that is made with a claim says, and also whose claim it is', async () => {
      const at = new Date(7)
      const given: readonly unknown[] = [{ note: 1 }, { owner: 'ada' }, [1, 2], 'text', null, at, undefined]
      for (const data of given) {
        const log = await hf.log(fresh())
        const draft = { kind: 'step', ops: [set('n', 1)], ...(data === undefined ? {} : { data }) }
        await (await log.claim({ owner: 'w1', ms: 10_000, decide: () => [draft] })).release()
        const told: unknown[] = []
        for await (const { body, header } of log.entries(0)) if (header.epoch > 0) told.push(body.data)
        const isNamed = typeof data === 'object' && data !== null && 'note' in data
        if (data === undefined || isNamed) expect(told[0]).toEqual({ ...(data as object | undefined), owner: 'w1' })
        else expect(told.slice(0, 2)).toEqual([{ owner: 'w1' }, data])
        expect(log.fold.state).toEqual({ n: 1 })
      }
    })

    it('is read backwards, from keyframe to keyframe, without reading anything twice', async () => {
      const thread = fresh()
      const log = await hf.log(thread)
      for (let n = 0; n < 10; n++) {
        await log.update(() => step(n).map((draft) => ({ ...draft, keyframe: n === 4 || n === 7 })))
      }
      const parts: unknown[][] = []
      for (let to = log.fold.seq; to >= 0; ) {
        const entries = await log.tail(to)
        parts.push(entries.map(({ fold }) => (fold.state.items as number[]).length))
        to = (entries[0]?.header.seq ?? 0) - 1
      }
      expect(parts).toEqual([
        [8, 9, 10],
        [5, 6, 7],
        [1, 2, 3, 4],
      ])
      expect((await log.tail(5)).map(({ header }) => header.seq)).toEqual([4, 5])
      await hf.prune(thread, 7)
      expect(await log.tail(6)).toEqual([])
      expect(await (await hf.log(fresh())).tail(0)).toEqual([])
    })

    it('continues where it left off from another handle', async () => {
      const thread = fresh()
      await (await hf.log(thread)).update(() => step(1))
      const again = await hf.log(thread)
      await again.update((fold) => step((fold.state.items as number[]).length + 1))
      expect((await hf.log(thread)).fold.state.items).toEqual([1, 2])
    })

    it('decides again when another writer was faster', async () => {
      const thread = fresh()
      const [a, b] = [await hf.log(thread), await hf.log(thread)]
      await a.update(() => step('a'))
      const seen: number[] = []
      await b.update((fold) => {
        seen.push(fold.seq)
        return step(`b after ${fold.seq}`)
      })
      expect(seen).toEqual([-1, 0])
      expect((await a.refresh()).state.items).toEqual(['a', 'b after 0'])
    })

    it('appends nothing when a decision is nothing, or throws', async () => {
      const log = await hf.log(fresh())
      await log.update(() => step(1))
      expect((await log.update(() => undefined)).entries).toEqual([])
      await expect(
        log.update(() => {
          throw new Error('changed my mind')
        }),
      ).rejects.toThrow('changed my mind')
      expect(log.fold.seq).toBe(0)
    })

    it('carries updates that wait together as one append, and fails only the one that throws', async () => {
      const log = await hf.log(fresh())
      const results = await Promise.allSettled([
        log.update(() => step(1)),
        log.update(() => step(2)),
        log.update(() => {
          throw new Error('no')
        }),
        log.update((fold) => step((fold.state.items as number[]).length * 10)),
      ])
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
      expect(log.fold.state.items).toEqual([1, 2, 20])
    })

    it('raises the epoch with every claim and fences the one before', async () => {
      const thread = fresh()
      const [a, b] = [await hf.log(thread), await hf.log(thread)]
      const first = await a.claim({ owner: 'a', ms: 60_000 })
      await first.update(() => step('a'))
      await expect(b.claim({ owner: 'b', ms: 60_000 })).rejects.toMatchObject({ code: 'held', data: { owner: 'a' } })
      const second = await b.claim({ owner: 'b', ms: 60_000, force: true })
      expect([first.epoch, second.epoch]).toEqual([1, 2])
      await expect(first.update(() => step('late'))).rejects.toMatchObject({
        code: 'fenced',
        data: { epoch: 1, current: 2 },
      })
      await expect(first.renew()).rejects.toMatchObject({ code: 'fenced' })
      await second.renew()
      await second.release(() => step('b'))
      await a.claim({ owner: 'a', ms: 1000 })
      expect((await hf.log(thread)).fold.state.items).toEqual(['a', 'b'])
    })

    it('lets guests append only inputs, answers, cancellations, signals and tags to a claimed log', async () => {
      const log = await hf.log(fresh())
      const claim = await log.claim({ owner: 'a', ms: 60_000 })
      await expect(log.update(() => step(1))).rejects.toMatchObject({ code: 'claim-required' })
      for (const kind of ['input', 'answer', 'cancel', 'signal', 'tag']) {
        await log.update(() => [{ kind, ops: [push('items', kind)] }])
      }
      await claim.update(() => step('owner'))
      expect(log.fold.state.items).toEqual(['input', 'answer', 'cancel', 'signal', 'tag', 'owner'])
    })

    it('reads any past state by seq or checkpoint id, and refuses an id of another past', async () => {
      const log = await hf.log(fresh())
      const ids: string[] = []
      for (let i = 0; i < 5; i++) ids.push((await log.update(() => step(i))).entries[0]?.id as string)
      expect((await log.at(2)).state.items).toEqual([0, 1, 2])
      expect((await log.at(ids[3] as string)).state.items).toEqual([0, 1, 2, 3])
      await expect(log.at(5)).rejects.toMatchObject({ code: 'not-found', data: { newest: 4 } })
      await expect(log.at('main~2~000000000000')).rejects.toMatchObject({ code: 'not-found' })
      await expect(log.at('other~2~000000000000')).rejects.toMatchObject({ code: 'not-found' })
      await expect(log.at('nonsense')).rejects.toMatchObject({ code: 'invalid-id' })
    })

    it('lists history newest first, by page', async () => {
      const log = await hf.log(fresh())
      for (let i = 0; i < 5; i++) await log.update(() => step(i))
      const page = await log.history({ limit: 2 })
      expect(page.map(({ header }) => header.seq)).toEqual([4, 3])
      expect((await log.history({ limit: 10, before: 3 })).map(({ header }) => header.seq)).toEqual([2, 1, 0])
      await expect(log.history({ limit: 0 })).rejects.toMatchObject({
        code: 'invalid-option',
        data: { field: 'limit' },
      })
    })

    it('forks from any entry; branches never touch each other', async () => {
      const thread = fresh()
      const main = await hf.log(thread)
      for (let i = 0; i < 4; i++) await main.update(() => step(i))
      const fork = await main.fork({ at: 1, branch: 'what if', draft: { ops: [set('edited', true)] } })
      await Promise.all([fork.update(() => step('fork')), main.update(() => step('main'))])
      expect(fork.fold.state).toEqual({ items: [0, 1, 'fork'], edited: true })
      expect(main.fold.state).toEqual({ items: [0, 1, 2, 3, 'main'] })
      const again = await hf.log(thread, { branch: 'what if' })
      expect(again.fold.origin).toMatchObject({ branch: 'main', seq: 1 })
      await expect(main.fork({ branch: 'what if' })).rejects.toMatchObject({ code: 'conflict' })
      const deeper = await again.fork({ at: 0, branch: 'deeper' })
      expect(deeper.fold.state).toEqual({ items: [0, 1], edited: true })
      for (const branch of ['main', 'what if', 'deeper'])
        expect((await hf.verify(thread, { branch }))?.problems).toEqual([])
    })

    it('keeps tagged entries when it prunes, and tells what was pruned', async () => {
      const thread = fresh()
      const log = await hf.log(thread)
      const big = 'x'.repeat(20_000)
      for (let i = 0; i < 12; i++)
        await log.update(() => [{ kind: 'step', ops: [push('items', i), set('pad', big + i)] }])
      await log.tag('keep', 3)
      await hf.prune(thread, 11)
      expect((await log.at(3)).state.items).toEqual([0, 1, 2, 3])
      await log.untag('keep')
      const { removed } = await hf.prune(thread, 11)
      expect(removed).toBeGreaterThan(3)
      await expect(log.at(0)).rejects.toMatchObject({ code: 'not-found' })
      expect((await log.at(11)).state.items).toHaveLength(12)
      expect((await hf.verify(thread))?.problems).toEqual([])
      await log.update(() => step('after'))
      await expect(log.fork({ at: 0, branch: 'too late' })).rejects.toMatchObject({ code: 'not-found' })
    })

    it('shows status, tags, metadata and times in the index, and finds by them', async () => {
      const tenant = hf.tenant(`tenant-${backend.name}-${counter++}`)
      const log = await tenant.log({ user: 'u', session: 's' })
      const expiresAt = Date.now() + 86_400_000
      await log.update(() => [
        { kind: 'step', index: { status: 'active', expiresAt, metadata: { region: 'US', n: 1, vip: true } } },
      ])
      await log.tag('gold')
      await (await tenant.log('other')).update(() => [
        { kind: 'step', index: { status: 'completed', metadata: { n: '1' } } },
      ])
      const { threads } = await tenant.threads({ status: 'active', tags: ['gold'], metadata: { n: 1, vip: true } })
      expect(threads).toHaveLength(1)
      expect(threads[0]).toMatchObject({
        thread: { user: 'u', session: 's' },
        branch: 'main',
        status: 'active',
        tags: ['gold'],
        metadata: { region: 'US', n: 1, vip: true },
        expiresAt: expect.any(Date),
      })
      // The tag was a use: it puts off the end by as much time as has passed since the entry before.
      expect(threads[0]?.expiresAt?.getTime()).toBeGreaterThanOrEqual(expiresAt)
      expect((await tenant.threads({ metadata: { n: '1' } })).threads.map(({ thread }) => thread)).toEqual(['other'])
      await log.update(() => [{ kind: 'step', index: { metadata: { region: null } } }])
      expect((await tenant.threads({ metadata: { region: 'US' } })).threads).toEqual([])
      expect((await hf.tenant('nobody').threads()).threads).toEqual([])
    })

    it('tells an erased thread from a lost one, and a new one of that name from the old', async () => {
      const thread = fresh()
      const old = await hf.log(thread)
      await old.update(() => step('old'))
      expect(await hf.erase(thread, { reason: 'expired' })).toEqual({ erased: 1 })
      expect(await hf.tombstone(thread)).toMatchObject({ reason: 'expired' })
      await expect(old.update(() => step('zombie'))).rejects.toMatchObject({
        code: 'not-found',
        message: expect.stringContaining('expired'),
      })
      const anew = await hf.log(thread)
      expect(anew.exists).toBe(false)
      await anew.update(() => step('new'))
      await expect(old.update(() => step('zombie'))).rejects.toMatchObject({ code: 'conflict' })
      expect((await hf.log(thread)).fold.state.items).toEqual(['new'])
    })

    it('stores a large value once and lets it go when nothing points to it', async () => {
      const tenant = hf.tenant(`blobs-${backend.name}-${counter++}`)
      const document = { pages: Array.from({ length: 3000 }, (_, i) => `page ${i} with some text on it`) }
      const picture = new Uint8Array(200_000).map((_, i) => (i * 7919) % 251)
      for (const thread of ['a', 'b']) {
        const log = await tenant.log(thread)
        await log.update(() => [
          { kind: 'step', ops: [set('document', document), push('pictures', picture), set('small', 1)] },
        ])
        for (let i = 0; i < 40; i++)
          await log.update(() => [{ kind: 'step', ops: [set('note', 'x'.repeat(1000) + i)] }])
      }
      const a = await tenant.log('a')
      expect(a.fold.state.document).toEqual(document)
      expect(Buffer.from((a.fold.state.pictures as Uint8Array[])[0] as Uint8Array).equals(picture)).toBe(true)
      expect(await tenant.collectBlobs({ graceMs: -1e15 })).toMatchObject({ removed: 0, kept: 2 })
      await tenant.erase('a')
      expect(await tenant.collectBlobs({ graceMs: -1e15 })).toMatchObject({ removed: 0, kept: 2 })
      expect((await tenant.log('b')).fold.state.document).toEqual(document)
      await tenant.erase('b')
      expect(await tenant.collectBlobs()).toMatchObject({ removed: 0, kept: 2 })
      expect(await tenant.collectBlobs({ graceMs: -1e15 })).toMatchObject({ removed: 2, kept: 0 })
    })

    it('refuses what it could not read back, with the path, and writes nothing', async () => {
      const log = await hf.log(fresh())
      await log.update(() => step(1))
      const cyclic: Record<string, unknown> = {}
      cyclic.self = { deeper: cyclic }
      const refused: [unknown, string, string][] = [
        [() => 1, 'invalid-value', '$.ops[0][2][0]'],
        [{ a: [1, undefined] }, 'invalid-value', '$.ops[0][2][0].a[1]'],
        [cyclic, 'invalid-value', '$.ops[0][2][0].self.deeper'],
        [new Map(), 'invalid-value', '$.ops[0][2][0]'],
        [Symbol('s'), 'invalid-value', '$.ops[0][2][0]'],
      ]
      for (const [value, code, path] of refused) {
        await expect(log.update(() => [{ kind: 'step', ops: [push('items', value)] }])).rejects.toMatchObject({
          code,
          data: { path },
        })
      }
      await expect(log.update(() => [{ kind: 'Bad Kind' }])).rejects.toMatchObject({ data: { field: 'kind' } })
      await expect(log.update(() => [{ kind: 'step', ops: [['explode'] as never] }])).rejects.toMatchObject({
        data: { field: 'ops' },
      })
      await expect(log.update(() => [{ kind: 'step', ops: [push(['items', 0], 1)] }])).rejects.toMatchObject({
        code: 'invalid-value',
      })
      await expect(log.update(() => [{ kind: 'step', index: { metadata: { x: {} as never } } }])).rejects.toMatchObject(
        { code: 'invalid-value' },
      )
      await expect(log.tag('future', 99)).rejects.toMatchObject({ code: 'invalid-value' })
      expect((await hf.log('x'.repeat(10))).exists).toBe(false)
      expect((await log.refresh()).seq).toBe(0)
    })

    it('rebuilds the row of the thread index from the log', async () => {
      const tenantId = `repair-${backend.name}-${counter++}`
      const tenant = hf.tenant(tenantId)
      const log = await tenant.log('t')
      await log.update(() => [{ kind: 'step', index: { status: 'active', metadata: { a: 1 } } }])
      const driver: Driver | undefined = backend.name === 'memory' ? undefined : await openDriver(url)
      if (driver === undefined) return
      try {
        const head = await driver.head(log.key)
        if (!head) throw new Error('no head')
        await driver.reindex(log.key, head, { ...head.index, status: 'wrong', metadata: {}, tags: ['bogus'] })
        expect((await tenant.verify('t'))?.problems).toEqual(['The row in the thread index does not match the log.'])
        expect(await tenant.verify('t', { repair: true })).toMatchObject({ ok: true, repairedIndex: true })
        expect((await tenant.threads({ metadata: { a: 1 } })).threads).toHaveLength(1)
      } finally {
        await driver.close()
      }
    })

    it('is closed after close, and closing twice is no error', async () => {
      const other = await openHoldfast(url === 'memory:' ? 'memory:' : url)
      const log = await other.log(fresh())
      await other.close()
      await other.close()
      await expect(other.log('x')).rejects.toMatchObject({ code: 'closed' })
      await expect(log.update(() => step(1))).rejects.toMatchObject({ code: 'closed' })
    })
  })
}

describe('lost acknowledgements and losses', () => {
  const open = async () => {
    const driver = await openDriver('memory:')
    const faulty = faultyDriver(driver)
    return {
      driver,
      faulty,
      store: new LogStore(faulty, { retryMs: 2000 }),
      key: { tenant: 't', thread: 'x', branch: 'main' } as never,
    }
  }

  it('finds its own append after a lost reply and does not repeat it', async () => {
    const { faulty, store, key } = await open()
    const log = await store.open(key)
    faulty.loseNext('append', 'after')
    await log.update(() => step(1))
    faulty.loseNext('append', 'before')
    await log.update(() => step(2))
    expect((await store.open(key)).fold.state.items).toEqual([1, 2])
  })

  it('finds its own append behind later ones of others', async () => {
    const { driver, faulty, store, key } = await open()
    const log = await store.open(key)
    await log.update(() => step(0))
    const other = await new LogStore(driver).open(key)
    // The reply is lost, and so is the first look; meanwhile another writer goes on.
    faulty.loseNext('append', 'after')
    faulty.loseNext('read', 'before')
    const first = log.update(() => step('mine'))
    await until(async () => (await driver.head(key))?.seq === 1)
    await other.update(() => step('theirs'))
    await first
    expect((await store.open(key)).fold.state.items).toEqual([0, 'mine', 'theirs'])
  })

  it('says so when it can not find out, and looks before it decides again', async () => {
    const driver = await openDriver('memory:')
    const faulty = faultyDriver(driver)
    const store = new LogStore(faulty, { retryMs: 0 })
    const key = { tenant: 't', thread: 'x', branch: 'main' } as never
    const log = await store.open(key)
    await log.update(() => step(0))
    faulty.loseNext('append', 'after')
    faulty.loseNext('read', 'before')
    await expect(log.update(() => step('mine'))).rejects.toMatchObject({
      code: 'unavailable',
      data: { written: 'unknown' },
    })
    const seen: unknown[] = []
    await log.update((fold) => {
      seen.push(fold.state.items)
      return step('next')
    })
    expect(seen).toEqual([[0, 'mine']])
  })

  it('reports a backend that came back empty or older as data loss, never as a fresh thread', async () => {
    const { driver, store, key } = await open()
    const log = await store.open(key)
    for (let i = 0; i < 3; i++) await log.update(() => step(i))
    await driver.erase({ tenant: 't' as never, thread: 'x' as never, tombstone: null })
    await expect(log.update(() => step(3))).rejects.toMatchObject({ code: 'data-loss', data: { acknowledged: 2 } })
    await expect(log.refresh()).rejects.toMatchObject({ code: 'data-loss' })
  })

  it('never moves back what a handle knows when a refresh crosses an append', async () => {
    const { store, key } = await open()
    const log = await store.open(key)
    for (let i = 0; i < 50; i++) {
      const before = log.fold.seq
      await Promise.all([log.refresh(), log.update(() => step(i)), log.refresh()])
      expect(log.fold.seq).toBe(before + 1)
    }
  })
})

describe('a damaged thread', () => {
  it('can be forked at its last good checkpoint by a process that never saw it whole', async () => {
    const driver = await openDriver('memory:')
    const key = { tenant: 'default', thread: 'x', branch: 'main' } as never
    const log = await new LogStore(driver).open(key)
    for (let i = 0; i < 5; i++) await log.update(() => step(i))
    const flip = (entry: StoredEntry): StoredEntry =>
      entry.seq === 3 ? { ...entry, body: entry.body.map((byte, i) => (i === 5 ? byte ^ 1 : byte)) } : entry
    const damaged = Object.assign(Object.create(driver) as Driver, {
      tail: async (...args: Parameters<Driver['tail']>) => {
        const tail = await driver.tail(...args)
        return tail && { ...tail, entries: tail.entries.map(flip) }
      },
    })
    const hf = new Holdfast(new LogStore(damaged))
    const error = await hf.log('x').catch((thrown: unknown) => thrown as CorruptError)
    expect(error).toMatchObject({ code: 'corrupt', data: { seq: 3, lastGood: expect.stringMatching(/^main~2~/) } })
    const rescued = await hf.fork('x', { at: (error as CorruptError).data.lastGood as string, branch: 'rescued' })
    expect(rescued.fold.state.items).toEqual([0, 1, 2])
    await rescued.update(() => step('on'))
    expect((await hf.log('x', { branch: 'rescued' })).fold.state.items).toEqual([0, 1, 2, 'on'])
  })
})
