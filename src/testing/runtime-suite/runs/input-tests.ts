import assert from 'node:assert/strict'
import { flow } from '../../../index.js'
import { dies, entriesOf, expectStatus, named, refuses, type RuntimeTest, takeOver } from '../runtime-context.js'

interface Journal {
  readonly ran: unknown[]
  crash?: (() => void) | undefined
}

/** Notes every input that it really works on, and can die after its first step. */
function worker(journal: Journal) {
  return flow<unknown, unknown>(named('worker'), async (ctx, input) => {
    await ctx.step('work', () => {
      journal.ran.push(input)
    })
    await ctx.step('after', { retry: { attempts: 1 } }, () => {
      if (journal.crash === undefined) return
      journal.crash()
      throw new Error('died')
    })
    return { did: input }
  })
}

export const inputTests: readonly RuntimeTest[] = [
  {
    name: 'resume an interrupted run without input, and do not repeat what is recorded',
    async run({ hf, mortal }) {
      const journal: Journal = { ran: [] }
      const { hf: victim, die } = mortal()
      journal.crash = die
      await dies(victim.thread(worker(journal), 't').run({ input: 'a' }))
      journal.crash = undefined
      await takeOver(hf, 't')
      assert.deepEqual(expectStatus(await hf.thread(worker(journal), 't').run(), 'completed').output, { did: 'a' })
      assert.deepEqual(journal.ran, ['a'])
    },
  },
  {
    name: 'resume by the same content, and are taken after the unfinished run otherwise',
    async run({ hf, mortal }) {
      const journal: Journal = { ran: [] }
      for (const again of [{ y: [1], x: 'a' }, { x: 'b' }]) {
        const id = `t-${again.x}`
        const { hf: victim, die } = mortal()
        journal.ran.length = 0
        journal.crash = die
        await dies(victim.thread(worker(journal), id).run({ input: { x: 'a', y: [1] } }))
        journal.crash = undefined
        await takeOver(hf, id)
        const outcome = expectStatus(await hf.thread(worker(journal), id).run({ input: again }), 'completed')
        assert.deepEqual(outcome.output, { did: again.x === 'a' ? { x: 'a', y: [1] } : again })
        assert.deepEqual(journal.ran, again.x === 'a' ? [{ x: 'a', y: [1] }] : [{ x: 'a', y: [1] }, { x: 'b' }])
      }
    },
  },
  {
    name: 'are the same by their key, whatever their content, and others by another key',
    async run({ hf, mortal }) {
      const journal: Journal = { ran: [] }
      const { hf: victim, die } = mortal()
      journal.crash = die
      await dies(victim.thread(worker(journal), 't').run({ input: 'first', key: 'k1' }))
      journal.crash = undefined
      await takeOver(hf, 't')
      const thread = hf.thread(worker(journal), 't')
      const same = expectStatus(await thread.run({ input: 'changed', key: 'k1' }), 'completed')
      assert.deepEqual(same.output, { did: 'first' })
      const next = expectStatus(await thread.run({ input: 'first', key: 'k2' }), 'completed')
      assert.deepEqual([next.output, journal.ran], [{ did: 'first' }, ['first', 'first']])
    },
  },
  {
    name: 'return the recorded outcome of a key that was taken, also long after',
    async run({ hf, other }) {
      const journal: Journal = { ran: [] }
      const thread = hf.thread(worker(journal), 't')
      const first = expectStatus(await thread.run({ input: 'one', key: 'k1' }), 'completed')
      await thread.run({ input: 'two', key: 'k2' })
      await thread.run({ input: 'three' })
      const entries = await entriesOf(hf, 't')
      const again = await (await other()).thread(worker(journal), 't').run({ input: 'one', key: 'k1' })
      assert.deepEqual(again, first)
      assert.deepEqual([await entriesOf(hf, 't'), journal.ran], [entries, ['one', 'two', 'three']])
    },
  },
  {
    name: 'are known by their key for as long as the thread lives, also where what came of them was pruned',
    async run({ hf, other }) {
      const journal: Journal = { ran: [] }
      const thread = hf.thread(worker(journal), 't')
      // More than fit into one keyframe's distance, so that there is something to prune.
      for (let i = 0; i < 110; i++) await thread.enqueue({ i, text: 'x'.repeat(1000) }, { key: `k${i}` })
      await thread.run({ frequency: 'boundary' })
      const second = (await other()).thread(worker(journal), 't')
      for (const i of [0, 9, 10, 109]) {
        const again = expectStatus(await second.run({ input: 'changed', key: `k${i}` }), 'completed')
        assert.deepEqual([(again.output as { did: { i: number } }).did.i, again.input], [i, 'taken'])
      }
      const { removed } = await hf.prune('t', (await hf.log('t')).fold.seq)
      assert.ok(removed > 0)
      const pruned = expectStatus(await second.run({ input: 'changed', key: 'k0' }), 'pruned')
      assert.deepEqual([pruned.input, pruned.ended], ['taken', 'completed'])
      assert.equal((await second.enqueue('changed', { key: 'k0' })).input, 'taken')
      assert.equal(journal.ran.length, 110)
    },
  },
  {
    name: 'behind a run that fails again are refused or queued, as asked, and the outcome says which',
    async run({ hf, other }) {
      const ran: string[] = []
      let broken = true
      const program = flow<string, string>(named('fails'), (ctx, input) =>
        ctx.step('do', { retry: { attempts: 1 } }, () => {
          if (broken) throw new Error('broken')
          ran.push(input)
          return input
        }),
      )
      const thread = hf.thread(program, 't')
      assert.equal(expectStatus(await thread.run({ input: 'a' }), 'failed').input, 'taken')
      const second = (await other()).thread(program, 't')
      for (let i = 0; i < 3; i++) {
        assert.equal(expectStatus(await second.run({ input: 'pay' }), 'failed').input, 'refused')
        const queued = await second.run({ input: 'b', key: 'b', onPaused: 'queue' })
        assert.equal(expectStatus(queued, 'failed').input, 'queued')
      }
      // Nothing continues by itself: whoever waits is told so.
      assert.equal((await second.waitFor({ timeoutMs: 20_000 })).status, 'failed')
      broken = false
      const paid = expectStatus(await second.run({ input: 'pay' }), 'completed')
      assert.deepEqual([paid.output, paid.input, ran], ['pay', 'taken', ['a', 'b', 'pay']])
    },
  },
  {
    name: 'without a key are taken again on a thread that rests',
    async run({ hf }) {
      const journal: Journal = { ran: [] }
      const thread = hf.thread(worker(journal), 't')
      await thread.run({ input: 'same' })
      await thread.run({ input: 'same' })
      assert.deepEqual(journal.ran, ['same', 'same'])
    },
  },
  {
    name: 'left out on a finished thread return its outcome and write nothing',
    async run({ hf }) {
      const thread = hf.thread(worker({ ran: [] }), 't')
      const { input: _, ...done } = await thread.run({ input: 1 })
      const entries = await entriesOf(hf, 't')
      assert.deepEqual(await thread.run(), done)
      assert.equal(await entriesOf(hf, 't'), entries)
    },
  },
  {
    name: 'left out on a thread that nobody knows are refused and write nothing',
    async run({ hf }) {
      const error = await refuses(() => hf.thread(worker({ ran: [] }), 'nobody').run(), 'not-found')
      assert.equal(error.data['thread'], 'nobody')
      const view = hf.inspect('nobody')
      await refuses(() => view.signal('x'), 'not-found')
      await refuses(() => view.cancel(), 'not-found')
      await refuses(() => view.pauses(), 'not-found')
      await refuses(() => view.answer('p', 1), 'not-found')
      assert.deepEqual((await hf.threads()).threads, [])
    },
  },
  {
    name: 'on a paused thread return its questions, are kept for later, or drop the run, as asked',
    async run({ hf }) {
      const ran: unknown[] = []
      const program = flow<string, unknown>(named('asks'), async (ctx, input) => {
        if (input === 'ask') await ctx.pause('well?')
        ran.push(input)
        return input
      })
      for (const onPaused of ['return', 'queue', 'cancel'] as const) {
        const thread = hf.thread(program, onPaused)
        ran.length = 0
        const { pauses } = expectStatus(await thread.run({ input: 'ask' }), 'paused')
        const entries = await entriesOf(hf, onPaused)
        const outcome = await thread.run({ input: 'new', onPaused })
        if (onPaused === 'cancel') {
          assert.equal(expectStatus(outcome, 'completed').output, 'new')
          const late = await refuses(() => thread.answer(pauses[0]?.id ?? '', 1), 'pause-closed')
          assert.deepEqual([late.data['reason'], ran], ['cancelled', ['new']])
          continue
        }
        assert.deepEqual(expectStatus(outcome, 'paused').pauses, pauses)
        if (onPaused === 'return') assert.equal(await entriesOf(hf, onPaused), entries)
        await thread.answer(pauses[0]?.id ?? '', 1)
        const last = expectStatus(await thread.run(), 'completed')
        assert.equal(last.output, onPaused === 'queue' ? 'new' : 'ask')
        assert.deepEqual(ran, onPaused === 'queue' ? ['ask', 'new'] : ['ask'])
      }
    },
  },
  {
    name: 'say that history is gone when it was expected, with words for the user',
    async run({ hf }) {
      const thread = hf.thread(worker({ ran: [] }), 't')
      assert.equal((await thread.run({ input: 1 })).restarted, false)
      assert.equal((await thread.run({ input: 2, expect: 'existing' })).restarted, false)
      await hf.erase('t', { reason: 'expired' })
      const outcome = expectStatus(await thread.run({ input: 3, expect: 'existing' }), 'completed')
      assert.equal(outcome.restarted, true)
      assert.match(outcome.message ?? '', /no longer available/)
    },
  },
]
