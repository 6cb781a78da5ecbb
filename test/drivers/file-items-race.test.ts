import assert from 'node:assert/strict'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { rounds } from '../support/scale.js'
import {
  DAY_MS,
  drivers,
  type FileDriver,
  folder,
  makeItem,
  NOW,
  open,
  prepare,
  put,
  recordsOf,
  remove,
  spaceFolder,
  tenant,
  versionOf,
} from './file-items-setup.js'

prepare()

describe('a writer that was away while its item was forgotten', () => {
  /** Stops a driver before the next system call of that name. */
  function gate() {
    let point: string | undefined
    let stopped = () => {}
    let go = () => {}
    return {
      faults: (next: string) => {
        if (next !== point) return undefined
        point = undefined
        stopped()
        return new Promise<void>((resolve) => (go = resolve))
      },
      stopAt: (next: string) => {
        point = next
        return new Promise<void>((resolve) => (stopped = resolve))
      },
      goOn: () => go(),
    }
  }

  it('is not taken for the item, and keeps nobody from making it again', async () => {
    const [late, sweeper] = [gate(), gate()]
    const writer = await open({ faults: late.faults })
    const forgetful = await open({ faults: sweeper.faults })
    const other = await open()
    await put(other, 'k', 'first')
    await remove(other, 'k')
    const atLink = late.stopAt('link')
    const writing = put(writer, 'k', 'late').catch((error) => error.data.written)
    await atLink
    const cleared = sweeper.stopAt('remove-folder')
    const sweeping = forgetful.sweepItems(NOW + DAY_MS, 10)
    await cleared
    const linked = late.stopAt('remove')
    late.goOn()
    await linked
    assert.equal((await recordsOf('k')).length, 1, 'the record of the late writer is alone in the folder')
    assert.equal(await versionOf(other, 'k'), undefined)
    assert.deepEqual(await other.scanItems(tenant, 's', { limit: 10 }, NOW), [])
    assert.equal(await put(other, 'k', 'new', null), 'written')
    sweeper.goOn()
    assert.equal(await sweeping, 0)
    late.goOn()
    assert.equal(await writing, 'unknown')
    assert.equal(await versionOf(other, 'k'), 'new')
    assert.deepEqual(await readdir(spaceFolder()), ['k'])
    assert.equal((await recordsOf('k')).length, 1)
    assert.deepEqual(await readdir(join(folder, 'tmp')), [])
  })

  it('takes its record back when nobody else came by', async () => {
    const [late, sweeper] = [gate(), gate()]
    const writer = await open({ faults: late.faults })
    const forgetful = await open({ faults: sweeper.faults })
    await put(writer, 'k', 'first')
    await remove(writer, 'k')
    const atLink = late.stopAt('link')
    const writing = put(writer, 'k', 'late')
    await atLink
    const cleared = sweeper.stopAt('remove-folder')
    const sweeping = forgetful.sweepItems(NOW + DAY_MS, 10)
    await cleared
    late.goOn()
    assert.equal(await writing, 'written')
    sweeper.goOn()
    assert.equal(await sweeping, 0)
    assert.equal(await versionOf(forgetful, 'k'), 'late')
    assert.deepEqual(await readdir(spaceFolder()), ['k'])
  })
})

describe('writers of one item that stop anywhere while others go on', () => {
  it('let each version be followed by one other, and never show one that was', async () => {
    for (let seed = 1; seed <= rounds(40, 2000); seed++) {
      await rm(folder, { recursive: true, force: true })
      await race(seed)
    }
  }, 1_200_000)

  const CREW = 3
  /** Where a writer that stops for long may do harm. */
  const CHANGES = new Set(['link', 'rename', 'remove', 'truncate', 'remove-folder', 'make-folder'])

  interface Member {
    driver: FileDriver
    /** Its system calls that wait to be made. */
    waiting: (() => void)[]
    isRunning: boolean
    isOver: boolean
    /** Until this turn of all it does not go on. */
    stoppedUntil: number
  }

  /** One member at a time goes on by one system call; before a change it may be stopped for hundreds of turns. */
  async function race(seed: number): Promise<void> {
    const random = randomBy(seed)
    let turn = 0
    let isStarted = false
    const crew: Member[] = []
    for (let i = 0; i < CREW; i++) {
      const member = { waiting: [], isRunning: false, isOver: false, stoppedUntil: 0 } as unknown as Member
      const faults = (point: string) => {
        if (!isStarted) return undefined
        if (CHANGES.has(point) && random() < 0.15) member.stoppedUntil = turn + Math.floor(random() * 300)
        member.isRunning = false
        return new Promise<void>((resolve) => member.waiting.push(resolve))
      }
      member.driver = await open({ faults })
      crew.push(member)
    }
    isStarted = true
    const followed = new Map<string, number>()
    const over = new Set<string>()

    const work = async ({ driver }: Member, name: string) => {
      for (let i = 0; i < 12; i++) {
        const before = new Set(over)
        const version = (await versionOf(driver, 'k')) ?? null
        assert.ok(version === null || !before.has(version), `seed ${seed}: ${version} was overwritten before`)
        const item = random() < 0.3 ? null : makeItem(`${name}-${i}`)
        try {
          const [result] = await driver.writeItems(tenant, [{ space: 's', key: 'k', item, expect: version }], NOW)
          if (result?.status === 'written' && version !== null) {
            followed.set(version, (followed.get(version) ?? 0) + 1)
            over.add(version)
          }
        } catch (error) {
          // Overtaken so far that it can't tell: fair for one that was stopped, and nothing else is.
          assert.equal((error as { data?: { reason?: string } }).data?.reason, 'overtaken', `seed ${seed}: ${error}`)
        }
        if (random() < 0.4) await driver.sweepItems(NOW + DAY_MS, 10)
      }
    }
    const all = Promise.all(
      crew.map(async (member, i) => {
        member.isRunning = true
        await work(member, `w${i}`).finally(() => (member.isOver = true))
      }),
    )
    all.catch(() => undefined)
    for (; crew.some((member) => !member.isOver); turn++) {
      while (crew.some((member) => member.isRunning && !member.isOver)) await new Promise((go) => setImmediate(go))
      const ready = crew.filter((member) => member.waiting.length > 0)
      if (ready.length === 0) break
      const awake = ready.filter((member) => member.stoppedUntil <= turn)
      const among = awake.length > 0 ? awake : ready
      const chosen = among[Math.floor(random() * among.length)] as Member
      chosen.isRunning = true
      for (const go of chosen.waiting.splice(0)) go()
    }
    await all
    for (const [version, times] of followed) assert.equal(times, 1, `seed ${seed}: ${version} was followed twice`)
    isStarted = false
    const [one, two, three] = crew.map((member) => member.driver) as [FileDriver, FileDriver, FileDriver]
    const last = await versionOf(one, 'k')
    assert.ok(last === undefined || !over.has(last), `seed ${seed}: ends with ${last}`)
    assert.equal(await put(two, 'k', 'end'), 'written')
    assert.equal(await versionOf(three, 'k'), 'end')
    assert.equal((await recordsOf('k')).length <= 2, true, `seed ${seed}: no record of a late writer is left`)
    assert.deepEqual(await readdir(join(folder, 'tmp')), [])
    await Promise.all(drivers.splice(0).map((driver) => driver.close()))
  }

  /** The same numbers for the same seed (mulberry32). */
  function randomBy(seed: number): () => number {
    let state = seed
    return () => {
      state = (state + 0x6d2b79f5) | 0
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
    }
  }
})
