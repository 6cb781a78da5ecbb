import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Holdfast, isHoldfastError } from 'holdfast'
import { type ArchivePlace, folderPlace } from 'holdfast/data'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { faultyDriver } from 'holdfast/testing'
import { parsePlaces } from '#src/archive/attach.js'
import { afterAll, describe, expect, it } from 'vitest'
import { dumpStore } from '../support/dump-store.js'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-archive-crash-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let count = 0

/** A place that dies at its nth call, before it did it or after. */
function mortalPlace(place: ArchivePlace, at: number, moment: 'before' | 'after'): ArchivePlace & { calls(): number } {
  let calls = 0
  const call = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const isLast = ++calls >= at
    if (isLast && (moment === 'before' || calls > at)) throw new Error('killed')
    const result = await work()
    if (isLast) throw new Error('killed')
    return result
  }
  return {
    description: place.description,
    put: (name, bytes) => call(() => place.put(name, bytes)),
    get: (name) => call(() => place.get(name)),
    remove: (name) => call(() => place.remove(name)),
    async *list(prefix) {
      await call(async () => undefined)
      yield* place.list(prefix)
    },
    calls: () => calls,
  }
}

function over(driver: Driver, place: ArchivePlace): Holdfast {
  const now = () => Date.now()
  const attached = parsePlaces({ archive: place })(driver, now)
  const store = new LogStore(attached.driver, { blobThreshold: 1024, retryMs: 0 })
  const view = (memory: Driver): Holdfast => new Holdfast(new LogStore(memory))
  const parts = {
    archive: attached.archive as never,
    driver: attached.driver,
    openMemory: () => openDriver('memory:'),
    view,
  }
  return new Holdfast(store, undefined, undefined, { archive: parts })
}

async function filled(): Promise<Driver> {
  const driver = await openDriver('memory:')
  const hf = new Holdfast(new LogStore(driver, { blobThreshold: 1024 }))
  const log = await hf.log('t')
  for (let i = 0; i < 12; i++) {
    await log.update(() => [
      { kind: 'turn', data: { i, text: 'x'.repeat(i === 3 ? 2000 : 10) }, keyframe: i % 4 === 3 },
    ])
  }
  await log.fork({ branch: 'side', at: 5 })
  return driver
}

const works: Record<string, (hf: Holdfast) => Promise<unknown>> = {
  store: (hf) => hf.archive.store('t'),
  prune: (hf) => hf.archive.prune('t', 9),
  'restore after a store': async (hf) => {
    await hf.archive.store('t')
    return hf.archive.restore('t')
  },
}

describe('an archive that is killed at any call of the store or of its place', () => {
  for (const [name, work] of Object.entries(works)) {
    it(`loses nothing: ${name}`, { timeout: 600_000 }, async () => {
      const original = await filled()
      const whole = (await dumpStore(original))['logs'] as Record<string, { entries: unknown[] }>
      const sound = mortalPlace(folderPlace(join(folder, `${count++}`)), Number.POSITIVE_INFINITY, 'after')
      const counted = faultyDriver(original)
      await work(over(counted, sound))
      const limits = { driver: counted.calls, place: sound.calls() }
      for (const side of ['driver', 'place'] as const) {
        for (let call = 1; call <= limits[side]; call++) {
          for (const moment of ['before', 'after'] as const) {
            const driver = await filled()
            const held = (await dumpStore(driver))['logs'] as typeof whole
            const place = folderPlace(join(folder, `${count++}`))
            const mortal = faultyDriver(driver)
            if (side === 'driver') mortal.crashAt(call, moment)
            const dying = side === 'place' ? mortalPlace(place, call, moment) : place
            await work(over(mortal, dying)).catch((error: unknown) => {
              if (!isHoldfastError(error) && (error as Error).message !== 'killed') throw error
            })
            // Whatever is not in the store any more is in the archive, and comes back from there.
            const hf = over(driver, place)
            const isGone = (await hf.threads({ thread: 't' })).threads.length < 2
            if (isGone) await hf.archive.restore('t')
            const what = `${side} call ${call}, ${moment}`
            for (const [log, { entries }] of Object.entries(held)) {
              const branch = JSON.parse(log)[2] as string
              const ids = (await (await hf.log('t', { branch })).history({ limit: 100 })).length
              const kept = await (await hf.log('t', { branch })).firstKept()
              const past = kept > 0 ? await (await hf.log('t', { branch })).history({ limit: 100, before: kept }) : []
              expect(ids + past.length, what).toBe(entries.length)
              expect((await hf.verify('t', { branch }))?.problems, what).toEqual([])
            }
          }
        }
      }
    })
  }
})
