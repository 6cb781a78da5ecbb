import assert from 'node:assert/strict'
import { flow } from '../../../index.js'
import { entriesOf, expectStatus, named, quick, refuses, type RuntimeTest } from '../runtime-context.js'

export const failureTests: readonly RuntimeTest[] = [
  {
    name: 'name the step and the reason, and go on at that step when the cause is mended',
    async run({ hf, other }) {
      let broken = true
      const ran: string[] = []
      const program = flow<number, string>({ ...named('mend'), retry: quick }, async (ctx) => {
        await ctx.step('good', () => ran.push('good'))
        return ctx.step('bad', () => {
          ran.push('bad')
          if (broken) throw Object.assign(new Error('card declined'), { code: 'declined' })
          return 'paid'
        })
      })
      const thread = hf.thread(program, 't')
      const { error, canResume, pauses } = expectStatus(await thread.run({ input: 1, key: 'k' }), 'failed')
      assert.deepEqual([error.step, error.code, canResume, pauses], ['bad', 'step-failed', true, []])
      assert.match(error.message, /card declined/)
      assert.equal((await hf.threads()).threads[0]?.status, 'failed')
      broken = false
      const resumed = await (await other()).thread(program, 't').run({ input: 1, key: 'k' })
      assert.equal(expectStatus(resumed, 'completed').output, 'paid')
      assert.deepEqual(ran, ['good', 'bad', 'bad', 'bad', 'bad'])
    },
  },
  {
    name: 'of the function itself are outcomes, not exceptions, and resume it from its records',
    async run({ hf }) {
      let broken = true
      let steps = 0
      const program = flow<number, number>(named('throws'), async (ctx) => {
        const n = await ctx.step('n', () => ++steps)
        if (broken) throw new TypeError('oops')
        return n
      })
      const thread = hf.thread(program, 't')
      const { error } = expectStatus(await thread.run({ input: 1 }), 'failed')
      assert.deepEqual([error.name, error.message], ['TypeError', 'oops'])
      broken = false
      assert.equal(expectStatus(await thread.run(), 'completed').output, 1)
      assert.equal(steps, 1)
    },
  },
  {
    name: 'keep neither the stack nor other fields of an error, which may hold secrets',
    async run({ hf }) {
      const program = flow<number, number>(named('secret'), () => {
        throw Object.assign(new Error('visible'), { token: 'hunter2', cause: new Error('hunter2') })
      })
      await hf.thread(program, 't').run({ input: 1 })
      const log = await hf.log('t')
      assert.doesNotMatch(JSON.stringify(log.fold.state), /hunter2|runtime-suite/)
      assert.match(JSON.stringify(log.fold.state), /visible/)
    },
  },
  {
    name: 'of the store reject the run and leave it to be resumed',
    async run({ hf, mortal }) {
      const { hf: victim, die } = mortal()
      const program = flow<number, number>(named('store'), async (ctx) => {
        die()
        return ctx.step('s', () => 1)
      })
      await refuses(() => victim.thread(program, 't').run({ input: 1 }), 'closed')
      assert.equal(await entriesOf(hf, 't'), 1, 'the claim with the input')
    },
  },
]
