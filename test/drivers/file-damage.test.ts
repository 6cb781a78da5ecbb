import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  truncate,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isHoldfastError } from 'holdfast'
import type { Driver, Expect, LogKey } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { encodeName } from '#src/drivers/file/records/names.js'
import { openFile } from '#src/drivers/file/open-file.js'
import { makeAppend, makeBytes, makeEntry, makeHash, mustAppend } from '#src/testing/entries.js'
import { afterEach, beforeEach, describe, it } from 'vitest'

const { push } = ops

const log = { tenant: 'tenant', thread: 'thread', branch: 'main' } as unknown as LogKey
const isRoot = process.getuid?.() === 0
let folder: string
const drivers: Driver[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-damage-'))
})

afterEach(async () => {
  await Promise.all(drivers.splice(0).map((driver) => driver.close()))
  await rm(folder, { recursive: true, force: true })
})

async function open(): Promise<Driver> {
  const driver = await openFile(folder, { fsync: false })
  drivers.push(driver)
  return driver
}

/** Six entries, of which 0 and 3 are keyframes, one file each. */
async function fill(): Promise<Expect> {
  const driver = await open()
  let at = await mustAppend(driver, makeAppend(log, null))
  for (let seq = 1; seq < 6; seq++) {
    at = await mustAppend(driver, makeAppend(log, at, { entries: [makeEntry({ seq, keyframe: seq < 3 ? 0 : 3 })] }))
  }
  return at
}

function threadFolder(): string {
  return join(folder, 'tenants', 'tenant', 'threads', 'thread')
}

async function logFolder(): Promise<string> {
  const [name] = (await readdir(threadFolder())).filter((each) => each.startsWith('main~'))
  return join(threadFolder(), String(name))
}

async function recordPath(slot: number): Promise<string> {
  return join(await logFolder(), `${String(slot).padStart(16, '0')}.rec`)
}

async function rejectsAsCorrupt(work: Promise<unknown>, path: string): Promise<void> {
  await assert.rejects(work, (error: { code: string; data: { path: string }; message: string }) => {
    assert.equal(error.code, 'corrupt')
    assert.equal(error.data.path, path)
    assert.ok(error.message.includes(path))
    return true
  })
}

describe('damage', () => {
  it('names a torn newest file, whatever is asked of the log, and appends nothing behind it', async () => {
    const at = await fill()
    const path = await recordPath(5)
    await truncate(path, 200)
    const driver = await open()
    await rejectsAsCorrupt(driver.head(log), path)
    await rejectsAsCorrupt(driver.tail(log), path)
    await rejectsAsCorrupt(driver.append([makeAppend(log, at)]), path)
    assert.equal((await readdir(await logFolder())).length, 6)
  })

  it('names an empty file', async () => {
    await fill()
    const path = await recordPath(5)
    await truncate(path, 0)
    await rejectsAsCorrupt((await open()).head(log), path)
  })

  it.each([150, 700, -3])('names a file with one changed byte, at %i', async (at) => {
    await fill()
    const path = await recordPath(4)
    const bytes = await readFile(path)
    const place = at < 0 ? bytes.length + at : at
    bytes[place] = (bytes[place] ?? 0) ^ 1
    await writeFile(path, bytes)
    await rejectsAsCorrupt((await open()).read(log, 4, 1), path)
  })

  it('names a file with bytes behind its end', async () => {
    await fill()
    const path = await recordPath(4)
    await appendFile(path, 'more')
    await rejectsAsCorrupt((await open()).tail(log), path)
  })

  it('names a file that is missing in the middle instead of skipping it', async () => {
    await fill()
    const path = await recordPath(4)
    await unlink(path)
    const driver = await open()
    await rejectsAsCorrupt(driver.tail(log), path)
    await rejectsAsCorrupt(driver.read(log, 0, 10), path)
    await rejectsAsCorrupt(driver.headers(log, { limit: 10 }), path)
    await rejectsAsCorrupt(driver.head(log), path)
  })

  it('still reads what lies before and behind a file that is missing', async () => {
    const at = await fill()
    const path = await recordPath(2)
    await unlink(path)
    const driver = await open()
    assert.equal((await driver.head(log))?.hash, at.hash)
    assert.equal((await driver.tail(log))?.entries.length, 3)
    assert.equal((await driver.read(log, 0, 2)).length, 2)
    assert.equal((await driver.read(log, 3, 10)).length, 3)
    await rejectsAsCorrupt(driver.read(log, 0, 3), path)
    await rejectsAsCorrupt(driver.tail(log, 2), path)
    assert.equal((await driver.headers(log, { limit: 3 })).length, 3)
    await rejectsAsCorrupt(driver.headers(log, { limit: 4 }), path)
  })

  it('notices a file that goes missing while the driver is open', async () => {
    await fill()
    const driver = drivers[0] as Driver
    const path = await recordPath(3)
    await unlink(path)
    await rejectsAsCorrupt(driver.tail(log), path)
  })

  it('takes a log whose folder is missing for damage, not for a log that does not exist', async () => {
    await fill()
    const lost = await logFolder()
    await rm(lost, { recursive: true })
    await rejectsAsCorrupt((await open()).head(log), join(lost, `${'0'.repeat(16)}.rec`))
  })

  it('leaves files alone that are not its own', async () => {
    const at = await fill()
    const inLog = await logFolder()
    const names = ['notes.txt', '.DS_Store', '0000000000000009.rec.bak', '9.rec', 'tmp']
    for (const name of names) await writeFile(join(inLog, name), 'not ours')
    await mkdir(join(threadFolder(), 'other'))
    await writeFile(join(folder, 'tenants', 'README'), 'not ours')
    const driver = await open()
    const next = await mustAppend(driver, makeAppend(log, at))
    assert.equal((await driver.heads({ limit: 10 })).heads.length, 1)
    await driver.prune(log, next.incarnation, next.seq)
    const left = await readdir(inLog)
    assert.deepEqual(
      names.filter((name) => !left.includes(name)),
      [],
    )
  })

  it('refuses a thread whose folder was moved under the name of another', async () => {
    await fill()
    const moved = { ...log, thread: 'moved' } as unknown as LogKey
    execFileSync('cp', ['-r', threadFolder(), join(dirname(threadFolder()), 'moved')])
    await assert.rejects((await open()).head(moved), { code: 'corrupt' })
  })
})

describe('opening', () => {
  it('refuses a path that is a file, or is inside one', async () => {
    const file = join(folder, 'file')
    await writeFile(file, 'x')
    for (const path of [file, join(file, 'store')]) {
      await assert.rejects(openFile(path), { code: 'storage' })
    }
    assert.equal(await readFile(file, 'utf8'), 'x')
  })

  it('refuses a store of a newer format, and writes nothing', async () => {
    await writeFile(join(folder, 'holdfast.json'), '{"store":"holdfast","format":2}')
    await assert.rejects(openFile(folder), { code: 'schema-too-new' })
    assert.deepEqual(await readdir(folder), ['holdfast.json'])
  })

  it('refuses a damaged marker', async () => {
    await writeFile(join(folder, 'holdfast.json'), 'gibberish')
    await assert.rejects(openFile(folder), { code: 'corrupt' })
  })

  it('opens a new folder from many at once', async () => {
    const path = join(folder, 'a', 'b')
    const opened = await Promise.all(Array.from({ length: 20 }, () => openFile(path)))
    await mustAppend(opened[0] as Driver, makeAppend(log, null))
    assert.ok(await opened[19]?.head(log))
    await Promise.all(opened.map((driver) => driver.close()))
    assert.deepEqual((await readdir(path)).sort(), ['holdfast.json', 'tenants', 'tmp'])
  })

  it('removes what a process that ended long ago left unfinished, and nothing else', async () => {
    await open()
    const tmp = join(folder, 'tmp')
    const old = new Date(Date.now() - 86_400_000)
    const gone = '00000000-1-abc'
    const fresh = '00000000-1-abd'
    for (const name of [gone, fresh, 'foreign']) {
      await writeFile(join(tmp, name), 'x')
      if (name !== fresh) await utimes(join(tmp, name), old, old)
    }
    await open()
    assert.deepEqual((await readdir(tmp)).sort(), [fresh, 'foreign'])
  })

  it.runIf(isRoot)('refuses a folder without write permission, says what to do, and writes nothing', async () => {
    await fill()
    const reachable = folder
    await chmod(reachable, 0o755)
    const before = await readdir(folder, { recursive: true })
    const report = asNobody(folder)
    assert.equal(report.error, 'storage')
    assert.equal(report.data.reason, 'no-permission')
    assert.equal(report.data.written, 'nothing')
    assert.match(report.message, /permission/)
    assert.deepEqual(await readdir(folder, { recursive: true }), before)
  })

  // The other uid is what makes a folder unwritable for a test that runs as root; without root there is no other uid.
  function asNobody(path: string) {
    const script = fileURLToPath(new URL('file-child.mjs', import.meta.url))
    const task = { folder: path, operation: 'append', log }
    const { stdout } = spawnSync(process.execPath, [script, JSON.stringify(task)], { uid: 65534, gid: 65534 })
    return JSON.parse(String(stdout).trim())
  }
})

describe('a full disk', () => {
  // Mounting needs root and a kernel that allows it.
  const canMount = isRoot && process.platform === 'linux' && spawnSync('unshare', ['--mount', 'true']).status === 0

  it.runIf(canMount)('rejects what does not fit, loses nothing, and goes on when there is room again', async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'holdfast-test', folder])
    try {
      const driver = await open()
      assert.equal(driver.survives.powerLoss, 'no')
      const large = { hash: makeHash('large'), bytes: makeBytes('large', 200_000) }
      await driver.putBlobs(log.tenant, [large])
      let at = await mustAppend(driver, makeAppend(log, null))
      const body = makeBytes('body', 20_000)
      const failure = await (async () => {
        for (let seq = 1; seq < 1000; seq++) {
          try {
            at = await mustAppend(driver, makeAppend(log, at, { entries: [makeEntry({ seq, keyframe: 0, body })] }))
          } catch (error) {
            return error as { code: string; data: Record<string, unknown> }
          }
        }
        return undefined
      })()
      assert.equal(failure?.code, 'storage')
      assert.equal(failure?.data.reason, 'disk-full')
      assert.equal(failure?.data.written, 'nothing')
      assert.deepEqual(await readdir(join(folder, 'tmp')), [])
      assert.equal((await driver.tail(log))?.entries.length, at.seq + 1)
      const [blob] = await driver.listBlobs(log.tenant, { limit: 1 })
      assert.equal(await driver.removeBlob(log.tenant, large.hash, blob?.touchedAt ?? 0), true)
      await mustAppend(driver, makeAppend(log, at, { entries: [makeEntry({ seq: at.seq + 1, keyframe: 0, body })] }))
    } finally {
      await Promise.all(drivers.splice(0).map((driver) => driver.close()))
      execFileSync('umount', [folder])
    }
  })
})

describe('names', () => {
  it('lets no id lead out of its folder, nor two ids meet where case is ignored', () => {
    const ids = [
      '.',
      '..',
      '...',
      '../x',
      'a/b',
      'a\\b',
      'A',
      'a',
      'con',
      'con.txt',
      'CON',
      'nul',
      'x.',
      ' x',
      'x ',
      'é',
      'e\u0301',
      '%41',
      'a%2fb',
      '~',
      '-',
      '{a=b,c=d}',
      'x'.repeat(512),
      'x'.repeat(511),
      'X'.repeat(100),
    ]
    const names = ids.map(encodeName)
    for (const name of names) {
      assert.match(name, /^[a-z0-9%_~-][a-z0-9._%~-]*$/)
      assert.ok(name.length <= 160 && !name.endsWith('.'))
      assert.ok(!/^(con|nul)(\.|$)/.test(name))
    }
    assert.equal(new Set(names.map((name) => name.toLowerCase())).size, ids.length)
  })
})

describe('a record', () => {
  it('can be read with a text editor when its bodies are text', async () => {
    const driver = await open()
    const body = Buffer.from('{"say":"hello"}')
    const entry = { ...makeEntry({ body }), header: Buffer.from('{"kind":"input"}') }
    await mustAppend(driver, makeAppend(log, null, { entries: [entry] }))
    const [first, meta, header, text] = (await readFile(await recordPath(0), 'utf8')).split('\n')
    assert.match(String(first), /^holdfast-record 1 [0-9a-f]{64} \d+ \d+ \d+$/)
    assert.equal(JSON.parse(String(meta)).row.seq, 0)
    assert.equal(header, '{"kind":"input"}')
    assert.equal(text, '{"say":"hello"}')
  })
})

describe('a damaged log, as the layers above see it', () => {
  const note = (text: string) => () => [{ kind: 'input', ops: [push('notes', text)] }]
  const keep = { tenant: 'tenant', thread: 'thread', branch: 'main' } as unknown as LogKey

  async function written() {
    const store = new LogStore(await open())
    const kept = await store.borrow(keep)
    for (const text of ['a', 'b', 'c', 'd']) await kept.update(note(text))
    store.giveBack(kept)
    const other = await new LogStore(await open()).open(keep)
    const { entries } = await other.update(note('e'))
    await other.update(note('f'))
    const record = async (seq: number) => join(await logFolder(), `${String(seq).padStart(16, '0')}.rec`)
    return { store, entries, record }
  }

  it('is verified up to the damage, and says where it still verifies', async () => {
    const { store, entries, record } = await written()
    await truncate(await record(5), (await readFile(await record(5))).length - 1)
    const found = await new LogStore(await open()).verify(keep)
    assert.equal(found?.ok, false)
    assert.equal(found?.entries, 5)
    assert.equal(found?.lastGood, entries[0]?.id)
    assert.match(found?.problems.join() ?? '', /0005\.rec .* The newest checkpoint that verifies is main~4~/)
    // The same for whoever reads on from what it knows.
    const named = (error: unknown) => isHoldfastError(error, 'corrupt') && error.data['lastGood'] === entries[0]?.id
    await assert.rejects(store.borrow(keep), named)
    await assert.rejects(new LogStore(await open()).open(keep), named)
  })

  it('is reported as damaged by verify, and does not end it, when not even its end can be read', async () => {
    const { record } = await written()
    await truncate(await record(5), 0)
    const found = await new LogStore(await open()).verify(keep)
    assert.deepEqual(
      { ...found, problems: [] },
      {
        log: keep,
        ok: false,
        entries: 0,
        lastGood: undefined,
        problems: [],
        repairedIndex: false,
        plain: 0,
      },
    )
    assert.match(found?.problems.join() ?? '', /0005\.rec/)
  })
})

describe('a disk that fails to flush', () => {
  it('lets no append count as written whose name it did not flush, though it can be read', async () => {
    let failsAfter = ''
    let fails = false
    const driver = await openFile(folder, {
      faults: (point) => {
        fails ||= point === failsAfter
        if (fails && point === 'flush-folder') throw Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'fsync' })
      },
    })
    drivers.push(driver)
    const note = (text: string) => () => [{ kind: 'input', ops: [push('notes', text)] }]
    const handle = await new LogStore(driver, { retryMs: 0 }).open(log)
    await handle.update(note('zero'))
    const others = [{ thread: 'new' }, { branch: 'new' }].map((part) => ({ ...log, ...part }) as LogKey)
    const created = await Promise.all(others.map((key) => new LogStore(driver, { retryMs: 0 }).open(key)))
    // The call that makes each visible: an append and a branch are linked, a thread is renamed into its place.
    for (const [each, call] of [
      [handle, 'link'],
      [created[0], 'rename'],
      [created[1], 'link'],
    ] as const) {
      failsAfter = call
      await assert.rejects(each?.update(note('one')) as Promise<unknown>, (error) => isHoldfastError(error, 'storage'))
      failsAfter = ''
      fails = false
      // The disk works again: what is there counts, once.
      await each?.update(note('two'))
      assert.deepEqual(each?.fold.state['notes'], each === handle ? ['zero', 'one', 'two'] : ['one', 'two'])
    }
  })
})
