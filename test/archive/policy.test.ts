import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flow, type Holdfast, openHoldfast, type OpenOptions } from 'holdfast'
import { systemClock } from 'holdfast/driver'
import { afterAll, describe, expect, it } from 'vitest'
import { everyBackend } from '../support/every-backend.js'

const DAY = 24 * 60 * 60 * 1000
const folder = mkdtempSync(join(tmpdir(), 'holdfast-archive-policy-'))
const backends = (await everyBackend()).filter(({ missing }) => !missing)
const opened: Holdfast[] = []
let count = 0

afterAll(async () => {
  await Promise.all(opened.map((hf) => hf.close()))
  await Promise.all(backends.map((backend) => backend.cleanup()))
  rmSync(folder, { recursive: true, force: true })
})

const talk = flow({ name: 'talk', version: '1.0.0' }, async (ctx, turns: number) => {
  for (let i = 0; i < turns; i++) await ctx.step('turn', { key: String(i) }, () => `turn ${i}`)
  return turns
})

/** Real time, of which days can be left out. */
function skippingClock() {
  const system = systemClock()
  let skipped = 0
  return {
    bootId: system.bootId,
    now: () => system.now() + skipped,
    monotonic: () => system.monotonic(),
    sleep: (ms: number, signal?: AbortSignal) => system.sleep(ms, signal),
    skip: (ms: number) => {
      skipped += ms
    },
  }
}

async function open(url: string, options: OpenOptions) {
  const clock = skippingClock()
  const hf = await openHoldfast(url, { clock, telemetry: false, ...options })
  opened.push(hf)
  return { hf, clock }
}

for (const backend of backends) {
  describe(`what a policy archives on ${backend.name}`, () => {
    const place = (): OpenOptions => ({ archive: `file:${join(folder, `archive-${count++}`)}` })

    it('moves an expired thread to the archive, and a run after that begins anew', async () => {
      const { hf, clock } = await open(await backend.fresh(), { ...place(), retention: { ttlMs: DAY, archive: true } })
      await hf.thread(talk, 'old').run({ input: 3 })
      const before = await hf.thread(talk, 'old').history({ limit: 100 })
      expect(await hf.sweep()).toMatchObject({ threads: 0, archived: 0 })
      clock.skip(2 * DAY)
      expect(await hf.sweep({ dryRun: true })).toMatchObject({ threads: 1, archived: 0 })
      expect(await hf.archive.list()).toEqual([])
      expect(await hf.sweep()).toMatchObject({ threads: 1, archived: 1 })
      expect(await hf.tombstone('old')).toMatchObject({ reason: 'expired, and archived' })
      expect(await hf.archive.list()).toMatchObject([{ thread: 'old', kind: 'thread' }])
      const look = await hf.archive.look('old')
      expect(await look.thread(talk, 'old').history({ limit: 100 })).toEqual(before)
      await look.close()
      expect(await hf.thread(talk, 'old').run({ input: 1, expect: 'existing' })).toMatchObject({ restarted: true })
    })

    it('archives what a cap cuts: history and entries reach across it, from every entry on', async () => {
      const rules = { ttlMs: 'never', keepLast: 4, archive: true } as const
      const { hf } = await open(await backend.fresh(), { ...place(), retention: rules })
      await hf.thread(talk, 'long').run({ input: 20 })
      const log = await hf.log('long')
      const all: string[] = []
      for await (const { fold } of log.entries(0)) all.push(fold.hash)
      expect(await hf.sweep()).toMatchObject({ cut: 1, archived: 1 })
      const first = await log.firstKept()
      expect(first).toBeGreaterThan(4)
      expect(await hf.archive.list()).toMatchObject([{ thread: 'long', kind: 'past', first: 0 }])
      const cut = await hf.log('long')
      for (const from of [0, 1, first - 2, first - 1, first, first + 1]) {
        const hashes: string[] = []
        for await (const { fold } of cut.entries(from)) hashes.push(fold.hash)
        expect(hashes).toEqual(all.slice(from))
      }
      expect(await hf.verify('long')).toMatchObject({ ok: true })
      expect(await hf.sweep()).toMatchObject({ cut: 0, archived: 0 })
    })

    it('removes archived files when their own time is over, and not before', async () => {
      const rules = { ttlMs: DAY, archive: true, archiveForMs: 10 * DAY }
      const { hf, clock } = await open(await backend.fresh(), { ...place(), retention: rules })
      await hf.thread(talk, 'old').run({ input: 1 })
      clock.skip(2 * DAY)
      expect(await hf.sweep()).toMatchObject({ threads: 1, archives: 0 })
      clock.skip(9 * DAY)
      expect(await hf.sweep()).toMatchObject({ archives: 0 })
      clock.skip(2 * DAY)
      expect(await hf.sweep()).toMatchObject({ archives: 1 })
      expect(await hf.archive.list()).toEqual([])
    })
  })
}

describe('a policy that archives', () => {
  it('needs an archive', async () => {
    const opening = openHoldfast('memory:', { retention: { ttlMs: DAY, archive: true } })
    await expect(opening).rejects.toMatchObject({ code: 'invalid-option' })
    const { hf } = await open('memory:', {})
    const sweep = hf.sweep({ retention: { ttlMs: DAY, archive: true } })
    await expect(sweep).rejects.toMatchObject({ code: 'invalid-option' })
  })

  it('says so in one line', async () => {
    const { hf } = await open('memory:', {
      archive: `file:${join(folder, 'line')}`,
      retention: { ttlMs: DAY, archive: true, archiveForMs: 30 * DAY },
    })
    expect(hf.retention).toContain('What goes is archived first, and kept there for 30 days.')
  })
})
