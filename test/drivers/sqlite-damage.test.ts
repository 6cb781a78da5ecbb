import { copyFile, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Driver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const { push } = ops

const key = { tenant: 'default', thread: 't', branch: 'main' } as never
const note = (text: string) => () => [{ kind: 'input', ops: [push('notes', text)] }]

// Windows lets nobody delete or replace a file that is open.
describe.skipIf(process.platform === 'win32')('a SQLite file that goes away while it is open', () => {
  let folder: string
  let path: string
  let driver: Driver
  const gone = { code: 'storage', data: { reason: 'file-gone', written: 'nothing' } }

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-gone-'))
    path = join(folder, 'test.db')
    driver = await openSqlite(path, { synchronous: 'normal' })
    await (await new LogStore(driver).open(key)).update(note('one'))
  })
  afterEach(async () => {
    await driver.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('takes no more appends when it was deleted', async () => {
    const log = await new LogStore(driver).open(key)
    for (const suffix of ['', '-wal', '-shm']) await rm(`${path}${suffix}`)
    await expect(log.update(note('two'))).rejects.toMatchObject(gone)
    await expect(driver.head(key)).rejects.toMatchObject(gone)
  })

  it('takes no more appends when a backup was moved into its place', async () => {
    const log = await new LogStore(driver).open(key)
    await copyFile(path, `${path}.bak`)
    await rename(`${path}.bak`, path)
    await expect(log.update(note('two'))).rejects.toMatchObject(gone)
  })

  it('goes on when it is back', async () => {
    const log = await new LogStore(driver).open(key)
    await rename(path, `${path}.aside`)
    await expect(log.update(note('two'))).rejects.toMatchObject(gone)
    await rename(`${path}.aside`, path)
    await log.update(note('three'))
    expect(log.fold.state).toEqual({ notes: ['one', 'three'] })
  })

  it('commits no transaction of the user', async () => {
    const log = await new LogStore(driver).open(key)
    const claim = await log.claim({ owner: 'w', ms: 10_000 })
    const work = claim.transact(
      async (sql) => {
        await sql.query('CREATE TABLE mine (n INTEGER)')
        await rename(path, `${path}.aside`)
      },
      () => [{ kind: 'step', ops: [push('notes', 'two')] }],
    )
    await expect(work).rejects.toMatchObject({ code: 'storage', data: { reason: 'file-gone' } })
    await rename(`${path}.aside`, path)
    await log.update(note('three'))
    expect(log.fold.state).toEqual({ notes: ['one', 'three'] })
  })
})

describe('a head in SQLite that holds no JSON where it should', () => {
  it('is damage, named as such, and does not end verify', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-head-'))
    const path = join(folder, 'test.db')
    const driver = await openSqlite(path, { synchronous: 'normal' })
    const store = new LogStore(driver)
    await (await store.open(key)).update(note('one'))
    const sqlite = (await loadSqlite())(path)
    sqlite.exec("UPDATE logs SET tags = '{'")
    sqlite.close()
    await expect(driver.head(key)).rejects.toMatchObject({ code: 'corrupt', data: { reason: 'head' } })
    expect(await store.verify(key)).toMatchObject({ ok: false, problems: [expect.stringContaining('thread "t"')] })
    await store.close()
    await rm(folder, { recursive: true, force: true })
  })
})
