import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { makeAppend, mustAppend } from '#src/testing/entries.js'
import type { LogKey } from 'holdfast/driver'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rounds } from '../support/scale.js'

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-sqlite-'))
  file = join(folder, 'test.db')
})

afterEach(() => rm(folder, { recursive: true, force: true }))

function logNamed(thread: string): LogKey {
  return { tenant: 't', thread, branch: 'main' } as LogKey
}

function start(script: string, ...args: string[]): ChildProcess {
  const path = fileURLToPath(new URL(`../support/children/${script}.mjs`, import.meta.url))
  return spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
}

/** What the child printed, once it ended well. */
async function outputOf(child: ChildProcess): Promise<string> {
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ])
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  return output.trim()
}

describe('several processes on one SQLite file', () => {
  it('lets 20 processes open an empty file at once', { timeout: 600_000 }, async () => {
    const names = Array.from({ length: 20 }, (_, i) => `thread-${i}`)
    const outputs = await Promise.all(names.map((name) => outputOf(start('sqlite-open', file, name))))
    expect(outputs).toEqual(names.map(() => 'done'))
    const driver = await openSqlite(file)
    for (const name of names) expect((await driver.head(logNamed(name)))?.seq).toBe(0)
    await driver.close()
  })

  it('keeps one log whole and in order while two processes append to it', { timeout: 600_000 }, async () => {
    const each = rounds(250, 20_000)
    const children = [1, 2].map(() => start('sqlite-race', file, String(each)))
    const outputs = Promise.all(children.map(outputOf))
    // Both have read that the log is empty before either appends to it: one of the two first appends has to lose.
    const haveRead = children.map((child) => once(child.stdout as NodeJS.ReadableStream, 'data'))
    await Promise.race([Promise.all(haveRead), outputs])
    for (const child of children) child.stdin?.write('go\n')
    const lines = (await outputs).map((output) => {
      const [ready, ...printed] = output.split('\n')
      expect(ready).toBe('ready')
      return printed.map((line) => JSON.parse(line))
    })
    const conflicts = lines.map((printed) => printed.pop().conflicts)
    const entries = lines.flat().sort(([a], [b]) => a - b)

    // Gap-free and each acknowledged once; every entry was decided on exactly the entry before it.
    expect(entries.map(([seq]) => seq)).toEqual(entries.map((_, i) => i))
    expect(entries).toHaveLength(2 * each)
    for (const [i, [, , seqBefore, hashBefore]] of entries.entries()) {
      expect([seqBefore, hashBefore]).toEqual(i === 0 ? [-1, ''] : [i - 1, entries[i - 1][1]])
    }
    // Each process sees its own appends in the order it made them.
    for (const printed of lines) {
      expect(printed.every(([seq]: [number], i: number) => i === 0 || seq > printed[i - 1][0])).toBe(true)
    }
    expect(conflicts[0] + conflicts[1]).toBeGreaterThan(0)

    const driver = await openSqlite(file)
    const stored = await driver.read(logNamed('race'), 0, 2 * each + 1)
    expect(stored.map(({ seq, hash }) => [seq, hash])).toEqual(entries.map(([seq, hash]) => [seq, hash]))
    await driver.close()
  })

  it('waits for a process that holds the lock', async () => {
    const driver = await openSqlite(file, { busyTimeoutMs: 60_000 })
    const child = start('sqlite-lock', file)
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    const append = mustAppend(driver, makeAppend(logNamed('waits'), null))
    expect(await Promise.race([append.then(() => 'landed'), delay(100, 'waiting')])).toBe('waiting')
    child.stdin?.end()
    await append
    expect((await driver.head(logNamed('waits')))?.seq).toBe(0)
    await driver.close()
  })

  it('gives up after the busy timeout, with nothing written, and goes on afterwards', async () => {
    const driver = await openSqlite(file, { busyTimeoutMs: 50 })
    const child = start('sqlite-lock', file)
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    const append = makeAppend(logNamed('busy'), null)
    await expect(driver.append([append])).rejects.toMatchObject({
      code: 'unavailable',
      retryable: true,
      data: { written: 'nothing' },
    })
    // Reading needs no lock.
    expect(await driver.head(logNamed('busy'))).toBeUndefined()
    child.stdin?.end()
    await once(child, 'exit')
    expect(await driver.append([append])).toEqual([{ status: 'appended' }])
    await driver.close()
  })
})

describe('the worker thread', () => {
  it('lets a process end that left a driver open with nothing to do', async () => {
    expect(await outputOf(start('sqlite-idle', file))).toBe('idle')
  })

  it('keeps a process alive until its appends are acknowledged', async () => {
    expect(await outputOf(start('sqlite-idle', file, 'pending'))).toBe('appended')
  })
})
