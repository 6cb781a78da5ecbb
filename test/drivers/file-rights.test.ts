import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flow, openHoldfast } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const program = flow({ name: 'note', version: '1.0.0' }, (ctx, text: string) =>
  ctx.step('keep', async ({ store }) => {
    await store.scope({ user: 'u' }).collection('notes').put('k', text)
    return { text, large: 'x'.repeat(100_000) }
  }),
)

let folder: string
let before: number

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-rights-'))
  chmodSync(folder, 0o755)
  // What most systems have: without a mode of its own, a new file can be read by everybody.
  before = process.umask(0o022)
})

afterEach(() => {
  process.umask(before)
  rmSync(folder, { recursive: true, force: true })
})

function rights(): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    found[path.slice(folder.length + 1)] = (statSync(path).mode & 0o777).toString(8)
  }
  return found
}

// Windows has no such bits: there, a folder of the user's own is private by where it lies.
describe.skipIf(process.platform === 'win32')('what a store creates is for its owner alone', () => {
  it('on SQLite, the files beside it included', async () => {
    const hf = await openHoldfast(`sqlite:${join(folder, 'agents.db')}`)
    await hf.thread(program, 't').run({ input: 'secret' })
    expect(rights()).toEqual({ 'agents.db': '600', 'agents.db-wal': '600', 'agents.db-shm': '600' })
    await hf.close()
  })

  it('in a file store, every folder and file of it', async () => {
    const hf = await openHoldfast(`file:${join(folder, 'deep', 'store')}`)
    await hf.thread(program, 't').run({ input: 'secret' })
    await hf.thread(program, 'gone').run({ input: 'secret' })
    await hf.erase('gone')
    const found = Object.entries(rights())
    expect(found.length).toBeGreaterThan(10)
    for (const [path, mode] of found) {
      expect([path, mode]).toEqual([path, statSync(join(folder, path)).isDirectory() ? '700' : '600'])
    }
    await hf.close()
  })

  it('and what was there keeps the rights that somebody gave it', async () => {
    const file = join(folder, 'shared.db')
    writeFileSync(file, '')
    chmodSync(file, 0o660)
    const hf = await openHoldfast(`sqlite:${file}`)
    await hf.thread(program, 't').run({ input: 'shared' })
    expect(rights()).toMatchObject({ 'shared.db': '660', 'shared.db-wal': '660' })
    await hf.close()
  })
})
