import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, readdir, readFile, truncate, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeName, encodeName } from '#src/drivers/file/records/names.js'
import { describe, it } from 'vitest'
import {
  DAY_MS,
  type FileDriver,
  folder,
  makeItem,
  newestOf,
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

const LONG = 'Ab/'.repeat(300)

prepare()

async function rejectsAsCorrupt(work: Promise<unknown>, path: string): Promise<void> {
  await assert.rejects(work, (error: { code: string; data: { path: string } }) => {
    assert.equal(error.code, 'corrupt')
    assert.equal(error.data.path, path)
    return true
  })
}

describe('what is left on the disk', () => {
  it('keeps no value that was overwritten or removed', async () => {
    const driver = await open()
    for (const version of ['first', 'second', 'third']) await put(driver, 'k', version)
    assert.equal((await recordsOf('k')).length, 2)
    assert.match(await textOf('k'), /value of third/)
    assert.doesNotMatch(await textOf('k'), /value of (first|second)/)
    await remove(driver, 'k')
    assert.doesNotMatch(await textOf('k'), /value of/)
    assert.deepEqual(await readdir(join(folder, 'tmp')), [])
  })

  it('forgets a removed item after a day, and a space with its last item', async () => {
    const driver = await open()
    await put(driver, 'k', 'first')
    await put(driver, 'other', 'first')
    await remove(driver, 'k')
    assert.equal(await driver.sweepItems(NOW + DAY_MS - 1, 10), 0)
    assert.equal((await recordsOf('k')).length, 2)
    assert.equal(await driver.sweepItems(NOW + DAY_MS, 10), 0)
    assert.deepEqual(await readdir(spaceFolder()), ['other'])
    await remove(driver, 'other')
    await driver.sweepItems(NOW + DAY_MS, 10)
    assert.deepEqual(await driver.listSpaces(tenant, { limit: 10 }), [])
    assert.deepEqual(await readdir(join(folder, 'tenants', tenant, 'items')), [])
    assert.equal(await put(driver, 'k', 'again', null), 'written')
    assert.equal(await versionOf(await open(), 'k'), 'again')
  })

  it('keeps what an applied removal left for a day from then, however old its entry is', async () => {
    const driver = await open()
    const log = { tenant, thread: 'thread', branch: 'main' } as unknown as Parameters<FileDriver['head']>[0]
    const index = { status: 'idle', createdAt: 1, updatedAt: 1, expiresAt: null, wakeAt: null, origin: null }
    const entry = { seq: 0, keyframe: 0, hash: 'a'.repeat(64), header: Buffer.from('{}'), body: Buffer.from('{}') }
    const at = { epoch: 0, incarnation: 'one', expect: null, lease: { kind: 'keep' }, labelsChanged: false } as const
    await driver.append([{ ...at, log, entries: [entry], index: { ...index, tags: [], metadata: {} } }])
    const options = { upTo: 0, redo: false }
    assert.equal(
      await driver.applyWrites(log, 'one', [{ seq: 0, space: 's', key: 'k', item: null, at: 1 }], options),
      true,
    )
    await driver.sweepItems(Date.now(), 10)
    assert.equal((await recordsOf('k')).length, 1)
    await driver.sweepItems(Date.now() + DAY_MS + 1000, 10)
    assert.equal((await recordsOf('k')).length, 0)
  })

  it('finds keys and spaces whose names are too long for a folder, also in another process', async () => {
    const driver = await open()
    const keys = [LONG, `${LONG}x`, 'short', `${'k'.repeat(1023)}~`]
    const write = (space: string) => keys.map((key) => ({ space, key, item: makeItem(`of ${key.length}`) }))
    await driver.writeItems(tenant, [...write('s'), ...write(LONG)], NOW)
    for (const each of [driver, await open()]) {
      for (const space of ['s', LONG]) {
        const found = await each.scanItems(tenant, space, { limit: 10 }, NOW)
        assert.deepEqual(
          found.map(({ key }) => key),
          keys.toSorted(),
        )
      }
      assert.deepEqual(await each.listSpaces(tenant, { limit: 10 }), [LONG, 's'])
    }
  })

  it('leaves files alone that are not its own', async () => {
    const driver = await open()
    await put(driver, 'k', 'first')
    const names = ['notes.txt', '.DS_Store', '9.rec']
    for (const name of names) {
      await writeFile(join(spaceFolder(), name), 'not ours')
      await writeFile(join(spaceFolder(), 'k', name), 'not ours')
      await writeFile(join(spaceFolder(), '..', name), 'not ours')
    }
    await mkdir(join(spaceFolder(), 'K'))
    await put(driver, 'k', 'second')
    const found = await driver.scanItems(tenant, 's', { limit: 10 }, NOW)
    assert.deepEqual(
      found.map(({ key }) => key),
      ['k'],
    )
    await driver.sweepItems(NOW, 10)
    for (const place of [spaceFolder(), join(spaceFolder(), 'k'), join(spaceFolder(), '..')]) {
      const left = await readdir(place)
      assert.deepEqual(
        names.filter((name) => !left.includes(name)),
        [],
      )
    }
  })

  it('gives every name back as it was given', () => {
    for (const id of [
      'a',
      'A',
      '%',
      '%41',
      '.',
      'a.b',
      'con',
      'con.a',
      'é',
      'e\u0301',
      '\u{10ffff}',
      ' ',
      '-',
      'x~y',
    ]) {
      assert.equal(decodeName(encodeName(id)), id)
    }
    for (const name of ['A', 'con', '.a', '%4', '%zz', '%C3', 'é', encodeName(LONG)])
      assert.equal(decodeName(name), undefined)
  })

  async function textOf(key: string): Promise<string> {
    return (await Promise.all((await recordsOf(key)).map((path) => readFile(path, 'latin1')))).join('\n')
  }
})

describe('damage', () => {
  it('names a file that is torn, changed or too long, and lets the item be overwritten', async () => {
    const driver = await open()
    const spoil: ((path: string) => Promise<void>)[] = [
      (path) => truncate(path, 60),
      async (path) => truncate(path, (await readFile(path)).length - 3),
      async (path) => {
        const bytes = await readFile(path)
        const last = bytes.length - 3
        bytes[last] = (bytes[last] ?? 0) ^ 1
        await writeFile(path, bytes)
      },
      (path) => appendFile(path, 'more'),
    ]
    for (const [i, harm] of spoil.entries()) {
      await put(driver, `k${i}`, 'first')
      const path = await newestOf(`k${i}`)
      await harm(path)
      await rejectsAsCorrupt(driver.readItems(tenant, 's', [`k${i}`], { now: NOW }), path)
      await rejectsAsCorrupt(driver.scanItems(tenant, 's', { limit: 10, prefix: `k${i}` }, NOW), path)
    }
    // Only the value is damaged there, and a new one does not need it.
    assert.equal(await put(driver, 'k1', 'second'), 'written')
    assert.equal(await versionOf(driver, 'k1'), 'second')
  })

  it('names the file before the newest if it is missing, and does not take the item for none', async () => {
    const driver = await open()
    await put(driver, 'k', 'first')
    await put(driver, 'k', 'second')
    const [before] = await recordsOf('k')
    await unlink(String(before))
    await rejectsAsCorrupt(driver.readItems(tenant, 's', ['k'], { now: NOW }), String(before))
    await rejectsAsCorrupt(driver.writeItems(tenant, [{ space: 's', key: 'k', item: null }], NOW), String(before))
  })

  it('refuses an item whose folder was moved under the name of another', async () => {
    const driver = await open()
    await put(driver, 'k', 'first')
    execFileSync('cp', ['-r', join(spaceFolder(), 'k'), join(spaceFolder(), 'moved')])
    await assert.rejects(versionOf(driver, 'moved'), { code: 'corrupt' })
    await assert.rejects(put(driver, 'moved', 'second'), { code: 'corrupt' })
  })

  it('sweeps the others though one is damaged, and says which', async () => {
    const driver = await open()
    const keys = ['a', 'b', 'c']
    for (const key of keys) {
      const item = makeItem(key, { expiresAt: NOW + 1 })
      await driver.writeItems(tenant, [{ space: 's', key, item }], NOW)
    }
    await truncate(await newestOf('b'), 60)
    await rejectsAsCorrupt(driver.sweepItems(NOW + 1, 10), await newestOf('b'))
    assert.deepEqual(await driver.readItems(tenant, 's', ['a', 'c'], { now: NOW }), [])
  })

  it('says that nothing was written when a write fails before it landed, and that it is unknown after', async () => {
    let failing: string | undefined
    const faults = (point: string) => {
      if (point === failing) throw Object.assign(new Error('no space'), { code: 'ENOSPC', syscall: point, path: 'x' })
    }
    const driver = await open({ fsync: true, faults })
    await put(driver, 'k', 'first')
    const written = async (point: string, key: string) => {
      failing = point
      const error = await put(driver, key, 'new').catch((reason) => reason)
      failing = undefined
      return error.data.written
    }
    for (const point of ['create-file', 'write-file', 'flush-file', 'link']) {
      assert.equal(await written(point, 'k'), 'nothing', point)
      assert.equal(await versionOf(driver, 'k'), 'first')
    }
    for (const point of ['make-folder', 'write-file', 'flush-folder', 'rename']) {
      assert.equal(await written(point, 'new'), 'nothing', point)
      assert.equal(await versionOf(driver, 'new'), undefined)
    }
    assert.equal(await written('flush-folder', 'k'), 'unknown')
    failing = 'truncate'
    assert.equal(await put(driver, 'k', 'third'), 'written')
    failing = undefined
    assert.equal(await versionOf(driver, 'k'), 'third')
    assert.deepEqual(await readdir(join(folder, 'tmp')), [])
  })
})
