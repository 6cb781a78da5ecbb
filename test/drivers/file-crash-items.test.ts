import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Head } from 'holdfast/driver'
import { describe, it } from 'vitest'
import { rounds } from '../support/scale.js'
import { carriedWrites, makeItem, NOW } from './file-child-items.mjs'
import {
  copyOf,
  type FileDriver,
  killEverywhere,
  LAST,
  log,
  makeTemplate,
  open,
  prepare,
  start,
  stopEverywhere,
  tenant,
} from './file-crash-setup.js'

const DAY_MS = 24 * 60 * 60 * 1000

prepare()

/** The version of an item that is whole; undefined for none. */
async function versionOf(driver: FileDriver, key: string, space = 's', now = NOW): Promise<string | undefined> {
  const [item] = await driver.readItems(tenant, space, [key], { now })
  if (item === undefined) return undefined
  assert.equal(Buffer.from(item.value).toString(), `value of ${item.version}`)
  return item.version
}

async function put(driver: FileDriver, key: string, version: string | null, space = 's'): Promise<void> {
  const write = { space, key, item: version === null ? null : makeItem(version) }
  assert.deepEqual(await driver.writeItems(tenant, [write], NOW), [{ status: 'written' }])
}

async function keysOf(driver: FileDriver, space = 's'): Promise<string[]> {
  return (await driver.scanItems(tenant, space, { limit: 100 }, NOW)).map(({ key }) => key)
}

describe('a process killed at any system call', () => {
  it('leaves an item as it was or as it wrote it, and never loses what was acknowledged', async () => {
    const points = await killEverywhere(
      'put',
      async (driver, { acknowledged, point }) => {
        const version = await versionOf(driver, 'k')
        assert.ok(acknowledged ? version === 'child' : version === 'child' || version === 'old', `${point}: ${version}`)
        assert.deepEqual(await keysOf(driver), ['expiring', 'k', 'kept'])
      },
      { flushes: true },
    )
    for (const call of ['create-file', 'write-file', 'flush-file', 'link', 'remove', 'flush-folder', 'truncate']) {
      assert.ok(points.includes(call), `${call} is one of ${points}`)
    }
  })

  it('makes an item whole or not at all, and its space with it', async () => {
    const points = await killEverywhere('putNew', async (driver, { acknowledged }) => {
      const version = await versionOf(driver, 'new', 'new space')
      assert.ok(acknowledged ? version === 'child' : version === 'child' || version === undefined)
      assert.deepEqual(await keysOf(driver, 'new space'), version === undefined ? [] : ['new'])
      if (version === undefined) await put(driver, 'new', 'other', 'new space')
      assert.deepEqual(await driver.listSpaces(tenant, { limit: 10 }), ['new space', 's'])
    })
    for (const call of ['make-folder', 'rename']) assert.ok(points.includes(call), `${call} is one of ${points}`)
  })

  it('removes an item or does not', async () => {
    await killEverywhere('remove', async (driver, { acknowledged }) => {
      const version = await versionOf(driver, 'k')
      assert.ok(acknowledged ? version === undefined : version === 'old' || version === undefined)
    })
  })

  it('moves an expiry or does not, and loses nothing of the item', async () => {
    await killEverywhere('extend', async (driver, { acknowledged }) => {
      const [item] = await driver.readItems(tenant, 's', ['expiring'], { now: NOW })
      assert.ok(item?.expiresAt === NOW + 1000 || (!acknowledged && item?.expiresAt === NOW + 10))
      assert.equal(await versionOf(driver, 'expiring'), 'expiring')
    })
  })

  it('applies each write or does not, says so only after all, and repairs it when done again', async () => {
    await killEverywhere('apply', async (driver, { acknowledged, point }) => {
      const look = async () => [
        await versionOf(driver, 'k'),
        await versionOf(driver, 'kept'),
        await versionOf(driver, 'new', 't'),
      ]
      const applied = ['applied', undefined, 'applied']
      const before = ['old', 'kept', undefined]
      const found = await look()
      for (const [i, version] of found.entries()) assert.ok(version === applied[i] || version === before[i], point)
      const head = (await driver.head(log)) as Head
      assert.ok(head.applied === LAST || (head.applied === undefined && !acknowledged), point)
      if (head.applied === LAST) assert.deepEqual(found, applied)
      for (const redo of [true, true, false]) {
        assert.equal(await driver.applyWrites(log, 'one', carriedWrites(LAST), { upTo: LAST, redo }), true)
        assert.deepEqual(await look(), applied, point)
      }
      assert.equal((await driver.head(log))?.applied, LAST)
      await put(driver, 'kept', 'again')
      await driver.applyWrites(log, 'one', carriedWrites(LAST), { upTo: LAST, redo: true })
      assert.equal(await versionOf(driver, 'kept'), 'again', 'what was applied is not applied again')
    })
  })

  it('sweeps an item or does not, and nothing else', async () => {
    await killEverywhere('sweep', async (driver, { acknowledged }) => {
      const version = await versionOf(driver, 'expiring')
      assert.ok(acknowledged ? version === undefined : version === 'expiring' || version === undefined)
      assert.equal(await versionOf(driver, 'k'), 'old')
      assert.equal(await versionOf(driver, 'kept'), 'kept')
      assert.equal(await versionOf(driver, 'removed'), undefined)
    })
  })
})

describe('a process stopped at any system call, and woken after the world went on', () => {
  it('never writes over what came meanwhile, however often', async () => {
    let landed: string | undefined
    await stopEverywhere(
      'put',
      async (driver) => {
        landed = await versionOf(driver, 'k')
        for (let i = 0; i < 20; i++) await put(driver, 'k', `meanwhile-${i}`)
      },
      async (driver, report, point) => {
        const outcome = String(report.result ?? report.data?.written)
        // Between the last look and the link, or just behind it, twenty others are more than a record remembers.
        const fair =
          landed === 'child' ? ['written', 'unknown'] : ['conflict', ...(point.startsWith('link ') ? ['unknown'] : [])]
        assert.ok(fair.includes(outcome), `${point}: ${JSON.stringify(report)}`)
        assert.equal(await versionOf(driver, 'k'), 'meanwhile-19', point)
      },
    )
  })

  it('always knows whether it wrote when only a few came meanwhile', async () => {
    let landed: string | undefined
    await stopEverywhere(
      'put',
      async (driver) => {
        landed = await versionOf(driver, 'k')
        for (let i = 0; i < 5; i++) await put(driver, 'k', `meanwhile-${i}`)
      },
      async (driver, report, point) => {
        assert.equal(report.result, landed === 'child' ? 'written' : 'conflict', `${point}: ${JSON.stringify(report)}`)
        assert.equal(await versionOf(driver, 'k'), 'meanwhile-4', point)
      },
    )
  })

  it('never brings back an item that was removed, forgotten and made again', async () => {
    await stopEverywhere(
      'put',
      async (driver) => {
        await put(driver, 'k', null)
        await driver.sweepItems(NOW + DAY_MS, 10)
        await put(driver, 'k', 'again')
      },
      async (driver, report, point) => {
        const outcome = String(report.result ?? report.data?.written)
        assert.ok(['conflict', 'written', 'unknown'].includes(outcome), `${point}: ${JSON.stringify(report)}`)
        assert.equal(await versionOf(driver, 'k'), 'again', point)
      },
    )
  })

  it('never forgets or sweeps an item that was written meanwhile', async () => {
    await stopEverywhere(
      'sweep',
      async (driver) => {
        await put(driver, 'removed', 'again')
        await put(driver, 'expiring', 'again')
      },
      async (driver, report, point) => {
        assert.equal(report.error, undefined, `${point}: ${JSON.stringify(report)}`)
        assert.equal(await versionOf(driver, 'removed'), 'again', point)
        assert.equal(await versionOf(driver, 'expiring'), 'again', point)
      },
    )
  })

  it('never makes an item that another made first', async () => {
    let landed: string | undefined
    await stopEverywhere(
      'putNew',
      async (driver) => {
        landed = await versionOf(driver, 'new', 'new space')
        if (landed === undefined) await put(driver, 'new', 'meanwhile', 'new space')
      },
      async (driver, report, point) => {
        assert.equal(report.result, landed === undefined ? 'conflict' : 'written', point)
        assert.equal(await versionOf(driver, 'new', 'new space'), landed ?? 'meanwhile', point)
      },
    )
  })
})

describe('processes that count in one item at once', () => {
  it.each([
    { processes: 2, fsync: true },
    { processes: 4, fsync: false },
  ])('loses no step, with $processes of them', async ({ processes, fsync }) => {
    const count = rounds(16, 1000)
    const folder = await copyOf(await makeTemplate())
    const racers = Array.from({ length: processes }, (_, i) =>
      start({ folder, operation: 'count', count, name: `racer-${i}`, fsync }),
    )
    await Promise.all(racers.map(({ ended }) => ended))
    for (const { reports } of racers) assert.equal(reports.at(-1)?.result, 'done', JSON.stringify(reports.at(-1)))
    const driver = await open(folder)
    const [counter] = await driver.readItems(tenant, 's', ['counter'], { now: NOW })
    assert.equal(Buffer.from(counter?.value ?? []).toString(), String(processes * count))
    assert.equal((await readdir(join(folder, 'tenants', tenant, 'items', 's', 'counter'))).length, 2)
    assert.equal((await readdir(join(folder, 'tmp'))).length, 0)
  })
})
