import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isHoldfastError } from 'holdfast'
import { copyStore } from 'holdfast/data'
import { type Driver, openDriver } from 'holdfast/driver'
import { faultyDriver } from 'holdfast/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { dumpStore } from '../support/dump-store.js'
import { fillStore } from '../support/filled-store.js'
import { full } from '../support/scale.js'
import { seeded } from '../support/seeded.js'

const child = fileURLToPath(new URL('copy-child.mjs', import.meta.url))
const backends = (await durableBackends()).filter(({ missing }) => !missing)
const opened: Driver[] = []
let source: Driver
let held: unknown

async function open(url: string): Promise<Driver> {
  const driver = await openDriver(url)
  opened.push(driver)
  return driver
}

beforeAll(async () => {
  source = await open('memory:')
  await fillStore(source, seeded(7))
  held = await dumpStore(source)
})

afterAll(async () => {
  await Promise.all(opened.map((driver) => driver.close()))
  await Promise.all(backends.map((backend) => backend.cleanup()))
})

describe('a copy that is cut off', () => {
  it('at any call to the destination goes on and ends as if nothing had happened', { timeout: 600_000 }, async () => {
    const counted = faultyDriver(await open('memory:'))
    await copyStore(source, counted, { concurrency: 1 })
    const step = full ? 1 : Math.ceil(counted.calls / 60)
    for (let call = 1; call <= counted.calls; call += step) {
      for (const moment of ['before', 'after'] as const) {
        const store = await open('memory:')
        const mortal = faultyDriver(store)
        mortal.crashAt(call, moment)
        await copyStore(source, mortal, { concurrency: 4 }).catch((error: unknown) => {
          if (!isHoldfastError(error)) throw error
        })
        expect(await copyStore(source, store)).toMatchObject({ refused: [], complete: true })
        expect(await dumpStore(store), `cut off ${moment} call ${call}`).toEqual(held)
      }
    }
  })

  it('shows half a thread to nobody as one that has something to do', async () => {
    const store = await open('memory:')
    let appends = 0
    const stopping = new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (name !== 'append') return typeof value === 'function' ? value.bind(target) : value
        return async (...args: Parameters<Driver['append']>) => {
          if (++appends > 4) throw new Error('stopped')
          return target.append(...args)
        }
      },
    })
    const long = await open('memory:')
    await fillStore(long, seeded(3))
    await expect(copyStore(long, stopping, { concurrency: 1 })).rejects.toThrow('stopped')
    const { heads } = await store.heads({ limit: 1000 })
    for (const head of heads) {
      const whole = (await long.head(head.log))?.seq === head.seq
      expect(whole || (head.index.status === 'copying' && head.index.wakeAt === null)).toBe(true)
    }
  })

  it('by its signal says that it is not complete', async () => {
    const stop = new AbortController()
    const store = await open('memory:')
    const report = await copyStore(source, store, {
      concurrency: 1,
      signal: stop.signal,
      onProgress: ({ branches }) => branches >= 2 && stop.abort(),
    })
    expect(report).toMatchObject({ complete: false, branches: 2, items: 0 })
    expect(await copyStore(source, store)).toMatchObject({ complete: true })
    expect(await dumpStore(store)).toEqual(held)
  })

  for (const backend of backends) {
    it(`by a kill of its process goes on, onto ${backend.name}`, { timeout: 600_000 }, async () => {
      const sqlite = (await backends.find(({ name }) => name === 'SQLite')?.fresh()) as string
      const from = await open(sqlite)
      await copyStore(source, from)
      const target = await backend.fresh()
      const copying = fork(child, [sqlite, target], { execArgv: [] })
      const [branches] = (await once(copying, 'message')) as [number]
      copying.kill('SIGKILL')
      await once(copying, 'exit')
      expect(branches).toBeGreaterThan(0)
      const to = await open(target)
      expect(await copyStore(from, to)).toMatchObject({ refused: [], complete: true })
      expect(await dumpStore(to)).toEqual(held)
    })
  }
})
