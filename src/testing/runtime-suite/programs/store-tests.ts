import assert from 'node:assert/strict'
import { flow, graph, last, START } from '../../../index.js'
import { dies, expectStatus, named, quick, type RuntimeTest, takeOver } from '../runtime-context.js'

const SCOPE = { user: 'u' }

export const storeTests: readonly RuntimeTest[] = [
  {
    name: 'land exactly if the step that made them is recorded',
    async run({ hf, mortal }) {
      let tries = 0
      const program = (onEnd: () => unknown) =>
        flow<number, unknown>(named('remember'), async (ctx) => {
          await ctx.step('flaky', { retry: quick }, async ({ store }) => {
            const notes = store.scope(SCOPE).collection<unknown>('notes')
            await notes.put(`try ${++tries}`, tries)
            if (tries === 1) throw new Error('no')
            await notes.put('kept', { by: 'step' })
            notes.delete('old')
          })
          await ctx.step('dies', { retry: { attempts: 1 } }, async ({ store }) => {
            await store.scope(SCOPE).collection<unknown>('notes').put('lost', 1)
            await onEnd()
          })
          await ctx.store.scope(SCOPE).collection<unknown>('notes').put('end', 1)
          return (await ctx.store.scope(SCOPE).collection<unknown>('notes').get('kept'))?.value
        })
      const notes = hf.store.scope(SCOPE).collection<unknown>('notes')
      await notes.put('old', 1)
      const keys = async () => (await notes.list()).items.map(({ key }) => key)
      const { hf: victim, die } = mortal()
      const dying = program(() => {
        die()
        throw new Error('died')
      })
      await dies(victim.thread(dying, 't').run({ input: 1 }))
      await takeOver(hf, 't')
      assert.deepEqual(await keys(), ['kept', 'try 2'])
      const { output } = expectStatus(
        await hf
          .thread(
            program(() => {}),
            't',
          )
          .run(),
        'completed',
      )
      assert.deepEqual([await keys(), output], [['end', 'kept', 'lost', 'try 2'], { by: 'step' }])
    },
  },
  {
    name: 'travel with the record of a node, and only those of the attempt that succeeded',
    async run({ hf }) {
      let tries = 0
      const program = graph({ ...named('node'), state: { n: last<number>() } })
        .node('write', {
          retry: quick,
          run: async (_state, { store }) => {
            await store.scope(SCOPE).collection<number>('nodes').put(`try ${++tries}`, tries)
            if (tries < 3) throw new Error('no')
            return { n: tries }
          },
        })
        .node('beside', async (_state, { store }) => {
          await store.scope(SCOPE).collection<number>('nodes').put('beside', 0)
        })
        .edge(START, 'write')
        .edge(START, 'beside')
      expectStatus(await hf.thread(program, 't').run({ input: {} }), 'completed')
      const { items } = await hf.store.scope(SCOPE).collection<number>('nodes').list()
      assert.deepEqual(
        items.map(({ key }) => key),
        ['beside', 'try 3'],
      )
    },
  },
  {
    name: 'of a node that is paused after are made with its record',
    async run({ hf }) {
      const program = graph({ ...named('gated'), state: { n: last<number>() } })
        .node('write', async (_state, { store }) => {
          await store.scope(SCOPE).collection<number>('gated').put('made', 1)
          return { n: 1 }
        })
        .edge(START, 'write')
        .pauseAfter('write')
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run({ input: {} }), 'paused')
      const made = () => hf.store.scope(SCOPE).collection<number>('gated').get('made')
      assert.equal((await made())?.value, 1)
      await thread.answer(pauses[0]?.id ?? '', { approved: true })
      expectStatus(await thread.run(), 'completed')
      assert.equal((await made())?.value, 1)
    },
  },
]
