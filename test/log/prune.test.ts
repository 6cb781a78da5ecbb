import fc from 'fast-check'
import { type Driver, type LogKey, openDriver, type StoredEntry } from 'holdfast/driver'
import { type Log, LogStore, ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

const { push, set } = ops

const LOG = { tenant: 'acme', thread: 'talk', branch: 'main' } as LogKey

type Kind = 'none' | 'authenticated' | 'encrypted'

function openStore(driver: Driver, kind: Kind): LogStore {
  const master = Buffer.alloc(32, 7).toString('base64')
  const keys = { current: 'k1', masters: { k1: master }, ...(kind === 'authenticated' ? { encrypt: false } : {}) }
  return new LogStore(driver, kind === 'none' ? {} : { keys })
}

async function write(log: Log, count: number, large = false): Promise<void> {
  for (let i = 0; i < count; i++) {
    const text = large && i % 3 === 1 ? `large ${i} `.repeat(9000) : `turn ${i}`
    await log.update(() => [{ kind: 'input', ops: [push('said', text), set(['n', String(i % 5)], i)], data: { i } }])
  }
}

async function statesOf(log: Log): Promise<readonly { readonly hash: string; readonly state: unknown }[]> {
  const found = []
  for await (const { hash, fold } of log.entries(await log.firstKept())) found.push({ hash, state: fold.state })
  return found
}

describe.each(['none', 'authenticated', 'encrypted'] as const)('a log with keys: %s', (kind) => {
  it('is cut where it is told to be: what stays is the same, hash by hash, and the log goes on', async () => {
    const cuts = fc.array(fc.nat(44), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(cuts, fc.boolean(), async (places, large) => {
        const driver = await openDriver('memory:')
        const store = openStore(driver, kind)
        const log = await store.open(LOG)
        await write(log, 45, large)
        const before = await statesOf(log)
        let base = 0
        for (const seq of places) {
          const { removed } = seq < base ? { removed: 0 } : await store.prune(LOG, seq)
          expect(removed).toBe(Math.max(0, seq - base))
          base = Math.max(base, seq)
        }
        for (const opened of [await store.open(LOG), await openStore(driver, kind).open(LOG)]) {
          expect(await opened.firstKept()).toBe(base)
          expect(await statesOf(opened)).toEqual(before.slice(base))
          for (const seq of [base, 44]) expect((await opened.at(seq)).state).toEqual(before[seq]?.state)
          if (base > 0) await expect(opened.at(base - 1)).rejects.toMatchObject({ code: 'not-found' })
        }
        // A handle from before goes on, and so does one that begins at the cut.
        await write(log, 2)
        const fork = await (await store.open(LOG)).fork({ branch: 'side', at: base })
        expect(fork.fold.state).toEqual(before[base]?.state)
        for (const key of [LOG, fork.key]) expect((await store.verify(key))?.problems).toEqual([])
        expect(await store.collectBlobs(LOG.tenant, { graceMs: -1e15 })).toMatchObject({ kept: expect.any(Number) })
        expect((await openStore(driver, kind).open(LOG)).fold.state).toEqual(log.fold.state)
      }),
      randomly(rounds(8)),
    )
  })

  it('keeps the last n of many turns, also where no keyframe was near', async () => {
    const driver = await openDriver('memory:')
    const store = openStore(driver, kind)
    const log = await store.open(LOG)
    await write(log, 45)
    expect(await store.prune(LOG, 35)).toEqual({ removed: 35 })
    expect((await driver.read(LOG, 0, 100)).map(({ seq }) => seq)).toEqual([35, 36, 37, 38, 39, 40, 41, 42, 43, 44])
    await log.tag('kept', 40)
    expect(await store.prune(LOG, 44)).toEqual({ removed: 5 })
    expect(await store.prune(LOG, 44, { evenTagged: true })).toEqual({ removed: 4 })
  })

  it('is told when a single byte of what stands at its base was changed', async () => {
    const driver = await openDriver('memory:')
    const store = openStore(driver, kind)
    await write(await store.open(LOG), 12)
    await store.prune(LOG, 7)
    const [base] = (await driver.read(LOG, 7, 1)) as [StoredEntry]
    for (const part of ['header', 'body'] as const) {
      for (let at = 0; at < base[part].length; at += 7) {
        const bytes = Uint8Array.from(base[part])
        bytes[at] = (bytes[at] ?? 0) ^ 1
        const changed: StoredEntry = { ...base, [part]: bytes }
        const damaged = new Proxy(driver, {
          get: (target, name) =>
            name === 'tail'
              ? async (...args: Parameters<Driver['tail']>) => {
                  const tail = await target.tail(...args)
                  return tail && { ...tail, entries: tail.entries.map((one) => (one.seq === 7 ? changed : one)) }
                }
              : Reflect.get(target, name),
        })
        await expect(openStore(damaged, kind).open(LOG), `${part} ${at}`).rejects.toMatchObject({
          code: expect.stringMatching(/^(corrupt|schema-too-new|missing-key)$/),
        })
      }
    }
  })
})

describe('a keyframe in the place of an entry', () => {
  it('is not taken from somebody without the key, whatever lies above it', async () => {
    const [driver, forger] = [await openDriver('memory:'), await openDriver('memory:')]
    const store = openStore(driver, 'authenticated')
    await write(await store.open(LOG), 12)
    const { incarnation } = (await store.open(LOG)).fold
    const entries = await driver.read(LOG, 0, 100)
    // The same chain in a store without keys, whose base says something else. It takes no secret to make that.
    const plain = new LogStore(forger, { randomId: () => incarnation })
    await write(await plain.open(LOG), 12)
    await plain.prune(LOG, 7)
    const [standIn] = (await forger.read(LOG, 7, 1)) as [StoredEntry]
    const forged = { ...standIn, hash: entries[7]?.hash as string }
    expect(await driver.prune(LOG, incarnation, 7, forged)).toEqual({ removed: 7 })
    await expect(openStore(driver, 'authenticated').open(LOG)).rejects.toMatchObject({ code: 'corrupt' })
  })

  it('stands for one entry of one log only', async () => {
    const driver = await openDriver('memory:')
    const store = openStore(driver, 'none')
    for (const thread of ['one', 'other']) {
      const key = { ...LOG, thread } as LogKey
      await write(await store.open(key), 12)
      if (thread === 'one') await store.prune(key, 7)
    }
    const other = { ...LOG, thread: 'other' } as LogKey
    const [standIn] = (await driver.read({ ...LOG, thread: 'one' } as LogKey, 7, 1)) as [StoredEntry]
    const [entry] = (await driver.read(other, 7, 1)) as [StoredEntry]
    const { incarnation } = (await store.open(other)).fold
    await driver.prune(other, incarnation, 7, { ...standIn, hash: entry.hash })
    await expect(openStore(driver, 'none').open(other)).rejects.toMatchObject({ code: 'corrupt' })
  })
})
