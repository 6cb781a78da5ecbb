import assert from 'node:assert/strict'
import { flow } from '../../../index.js'
import { names, talk } from './retention-fixtures.js'
import { DAY, expectStatus, named, refuses, type RuntimeTest } from '../runtime-context.js'

/** What a sweep says that found nothing to remove. */
const NOTHING = {
  ...{
    dryRun: false,
    threads: 0,
    cut: 0,
    archived: 0,
    archives: 0,
    entries: 0,
    bytes: 0,
    items: 0,
    used: 0,
    damaged: 0,
  },
  blobs: { removed: 0, bytes: 0 },
}

/** Spares nothing because it is young: what is tested is what is pointed to. */
const NO_GRACE = { graceMs: -1e12 }

/** What a sweep takes of the threads that stay, and what a killed one leaves. */
export const retentionSweepTests: readonly RuntimeTest[] = [
  {
    name: 'removes large values when nothing points to them any more, and not before',
    async run({ hf, clock }) {
      const large = 'x'.repeat(200_000)
      await hf.thread(talk, 'one').run({ input: { said: large } })
      clock.skip(3 * DAY)
      await hf.thread(talk, 'two').run({ input: { said: large } })
      clock.skip(5 * DAY)
      assert.equal((await hf.sweep(NO_GRACE)).threads, 1)
      assert.equal((await hf.thread(talk, 'two').state())?.said[0], large)
      clock.skip(3 * DAY)
      const { threads, blobs } = await hf.sweep(NO_GRACE)
      assert.deepEqual([threads, blobs.removed > 0, blobs.bytes > 0], [1, true, true])
      assert.deepEqual(await hf.sweep(NO_GRACE), NOTHING)
      assert.deepEqual(await hf.collectBlobs(NO_GRACE), { removed: 0, kept: 0, bytes: 0 })
    },
  },
  {
    name: 'keeps the last checkpoints of a branch, exactly as many as it says, and what follows a tag',
    async run({ hf, opened }) {
      const capped = opened({ retention: { keepLast: 10 } })
      const thread = capped.thread(talk, 't')
      for (let i = 0; i < 30; i++) await thread.run({ input: { said: `turn ${i}` } })
      const before = await thread.history({ limit: 100 })
      const short = capped.thread(talk, 'short')
      for (let i = 0; i < 3; i++) await short.run({ input: { said: `turn ${i}` } })
      const counted = await capped.sweep({ dryRun: true })
      assert.deepEqual([counted.cut, counted.threads], [1, 0])
      const swept: string[] = []
      const { cut, entries, bytes } = await capped.sweep({
        onSwept: ({ why, branch }) => swept.push(`${why} ${branch}`),
      })
      assert.deepEqual([cut, entries, bytes], [counted.cut, counted.entries, counted.bytes])
      assert.deepEqual(swept, ['capped main'])
      const ids = (found: typeof before) => found.map(({ id, kind }) => `${id} ${kind}`)
      assert.deepEqual(ids(await thread.history({ limit: 100 })), ids(before.slice(0, 10)))
      assert.deepEqual(await capped.sweep(), NOTHING)
      assert.equal((await thread.state())?.said.length, 60)
      assert.equal((await short.history({ limit: 100 })).length > 3, true)
      await (await hf.log('t')).tag('gold', before[4]?.seq)
      for (let i = 0; i < 20; i++) await thread.run({ input: { said: `more ${i}` } })
      await capped.sweep()
      const after = await thread.history({ limit: 200 })
      assert.equal(after.at(-1)?.id, before[4]?.id)
      assert.equal((await thread.at(before[4]?.id ?? '').state()).said.length > 50, true)
    },
  },
  {
    name: 'keeps young checkpoints, as a program or a thread says, and always the newest',
    async run({ hf, clock }) {
      const young = flow<string, string>(
        { ...named('young'), retention: { keepForMs: DAY, ttlMs: 'never' } },
        (ctx, said) => ctx.step('say', () => said),
      )
      const [thread, all] = [hf.thread(young, 'young'), hf.thread(young, 'all', { retention: 'keep' })]
      const run = async (n: number) => {
        for (let i = 0; i < n; i++) for (const one of [thread, all]) await one.run({ input: `${i}` })
      }
      const count = async (of: typeof thread) => (await of.history({ limit: 1000 })).length
      await run(4)
      clock.skip(2 * DAY)
      await run(3)
      const [before, kept] = [await count(thread), await count(all)]
      assert.equal((await hf.sweep()).cut, 1)
      const after = await count(thread)
      assert.ok(after < before && after >= 3, `${after} of ${before} are younger than a day`)
      assert.equal(await count(all), kept)
      clock.skip(2 * DAY)
      await hf.sweep()
      assert.equal(await count(thread), 1)
      assert.equal(expectStatus(await thread.run({ input: 'next' }), 'completed').output, 'next')
      await all.setRetention({ keepLast: 2, ttlMs: 'never' })
      await hf.sweep()
      assert.equal(await count(all), 2)
      await all.setRetention('keep')
      await all.run({ input: 'more' })
      await hf.sweep()
      assert.ok((await count(all)) > 2)
    },
  },
  {
    name: 'ends well after a sweep that was killed at any call',
    async run({ hf, clock, dying }) {
      const large = 'y'.repeat(100_000)
      const retention = { keepLast: 3 }
      for (let nth = 1, died = true; died; nth++) {
        const id = `call ${nth}`
        await hf.thread(talk, id).run({ input: { said: `${large}${id}` } })
        const [newest] = await hf.inspect(id).history({ limit: 1 })
        await hf
          .thread(talk, id)
          .at(newest?.id ?? '')
          .fork({ name: 'side' })
        clock.skip(8 * DAY)
        const open = `${id} open`
        for (let i = 0; i < 3; i++) await hf.thread(talk, open).run({ input: { said: `${large}${open}${i}` } })
        const victim = dying(nth)
        await victim.hf
          .sweep({ ...NO_GRACE, retention })
          .catch((error: unknown) => refuses(() => Promise.reject(error), 'closed'))
        died = victim.died()
        await hf.sweep({ ...NO_GRACE, retention })
        assert.deepEqual(await names(hf), [`${open} main`])
        const { said = [] } = (await hf.thread(talk, open).state()) ?? {}
        assert.deepEqual([said[0], said[4]], [`${large}${open}0`, `${large}${open}2`])
        assert.equal((await hf.inspect(open).history({ limit: 100 })).length, 3)
        assert.equal((await hf.collectBlobs(NO_GRACE)).removed, 0, 'nothing is left that nothing points to')
        await hf.erase(open)
        await hf.collectBlobs(NO_GRACE)
      }
    },
    timeoutMs: 120_000,
  },
]
