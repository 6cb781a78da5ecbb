import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { openHoldfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-open-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('openHoldfast', () => {
  it.each([
    ['mysql://localhost/x', 'no scheme that Holdfast knows'],
    ['agents.db', 'no scheme that Holdfast knows'],
    ['', 'no scheme that Holdfast knows'],
    [undefined, 'no scheme that Holdfast knows'],
    ['constructor:x', 'no scheme that Holdfast knows'],
    ['sqlite:', 'names no file'],
    ['file:', 'names no folder'],
    ['sqlite:x.db?mode=fast', 'has the setting "mode"'],
    ['memory:?x=1', 'has the setting "x"'],
  ])('refuses %s and says what to write instead', async (url, problem) => {
    await expect(openHoldfast(url as string)).rejects.toMatchObject({
      code: 'invalid-option',
      data: { field: 'url' },
      message: expect.stringContaining(problem),
      remedy: expect.stringMatching(/\w/),
    })
  })

  it('never shows a password in an error', async () => {
    await expect(openHoldfast('mysql://user:hunter2@host/x')).rejects.toMatchObject({
      message: expect.not.stringContaining('hunter2'),
    })
  })

  it('refuses a setting that has no such value', async () => {
    await expect(openHoldfast(`sqlite:${folder}/x.db?synchronous=off`)).rejects.toMatchObject({
      data: { field: 'synchronous' },
    })
    await expect(openHoldfast(`file:${folder}/x?fsync=maybe`)).rejects.toMatchObject({ data: { field: 'fsync' } })
  })

  it('takes paths in the forms people write', async () => {
    for (const url of [
      `sqlite:${folder}/a.db`,
      `sqlite://${folder}/a.db`,
      `file:${folder}/b`,
      pathToFileURL(`${folder}/b`).href,
    ]) {
      const hf = await openHoldfast(url)
      const log = await hf.log('t')
      await log.update((fold) => [{ kind: 'input', ops: [['set', ['seen'], fold.seq + 2]] }])
      await hf.close()
    }
    for (const url of [`sqlite:${folder}/a.db`, `file:${folder}/b`]) {
      const hf = await openHoldfast(url)
      expect((await hf.log('t')).fold.state).toEqual({ seen: 2 })
      await hf.close()
    }
  })

  it('probes what the settings mean for durability', async () => {
    const full = await openHoldfast(`sqlite:${folder}/full.db`)
    const normal = await openHoldfast(`sqlite:${folder}/normal.db?synchronous=normal`)
    const loose = await openDriver(`file:${folder}/loose?fsync=off`)
    expect(full.survives.powerLoss).toBe('yes')
    expect(normal.survives.powerLoss).toBe('recent-loss')
    expect(loose.survives.powerLoss).not.toBe('yes')
    await Promise.all([full.close(), normal.close(), loose.close()])
  })

  it.each([
    ['pg', 'postgres://localhost/x'],
    ['ioredis', 'redis://localhost'],
  ])('gives the install command when %s is missing', async (peer, url) => {
    // A copy of the package where no peer can be found.
    const home = mkdtempSync(join(tmpdir(), 'holdfast-peer-'))
    try {
      const root = fileURLToPath(new URL('../..', import.meta.url))
      mkdirSync(join(home, 'node_modules/holdfast'), { recursive: true })
      for (const part of ['dist', 'package.json']) {
        await run('cp', ['-r', join(root, part), join(home, 'node_modules/holdfast/')])
      }
      for (const used of ['semver', 're2js', 'croner']) {
        symlinkSync(join(root, 'node_modules', used), join(home, 'node_modules', used))
      }
      writeFileSync(
        join(home, 'try.mjs'),
        `import { openHoldfast } from 'holdfast'
         await openHoldfast('${url}').then(() => console.log('opened'), (error) => console.log(error.code, error.remedy))`,
      )
      const { stdout } = await run(process.execPath, ['try.mjs'], { cwd: home })
      expect(stdout.trim()).toBe(`missing-dependency Run: npm install ${peer}`)
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })

  it('loads no driver that is not used', async () => {
    const home = mkdtempSync(join(tmpdir(), 'holdfast-lazy-'))
    try {
      mkdirSync(join(home, 'node_modules'))
      symlinkSync(fileURLToPath(new URL('../..', import.meta.url)), join(home, 'node_modules/holdfast'))
      writeFileSync(
        join(home, 'try.mjs'),
        `import { openHoldfast } from 'holdfast'
         import { createRequire } from 'node:module'
         const hf = await openHoldfast('memory:')
         const loaded = Object.keys(createRequire(import.meta.url).cache).filter((name) => /pg|ioredis|sqlite/.test(name))
         console.log(JSON.stringify(loaded))
         await hf.close()`,
      )
      const { stdout } = await run(process.execPath, ['try.mjs'], { cwd: home })
      expect(JSON.parse(stdout)).toEqual([])
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })
})
