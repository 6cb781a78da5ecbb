import { openHoldfast } from 'holdfast'
import { openPipeline, pipeline } from 'holdfast/pipeline'
import { describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'

const memory = { name: 'memory', missing: false, fresh: async () => 'memory:', cleanup: async () => {} }

for (const backend of [memory, ...(await durableBackends())]) {
  describe.skipIf(backend.missing)(`what a person says that a stage returned, on ${backend.name}`, () => {
    /** One document of two chunks, whose stage is cut off once: then somebody is asked what it returned. */
    async function cutOff() {
      const hf = await openHoldfast(await backend.fresh())
      const rows: unknown[] = []
      let calls = 0
      const program = pipeline({
        name: 'paid',
        version: '1.0.0',
        source: [{ id: 'doc', content: 'one two' }],
        stages: [
          { name: 'split', split: ({ text }) => text.split(' ') },
          {
            name: 'pay',
            effect: 'once',
            run: () => {
              calls++
              throw new Error('connection reset')
            },
          },
        ],
        sink: {
          write: async (written) => void rows.push(...written.map(({ item }) => item)),
          remove: async () => {},
        },
      })
      const run = () => openPipeline(hf, program).run()
      const answer = async (value: unknown) => {
        const [open, ...others] = (await hf.pauses()).pauses
        expect(others).toEqual([])
        if (open) await hf.inspect(open.thread).answer(open.id, value)
        return open
      }
      expect(await run()).toMatchObject({ successful: 0, failed: 1 })
      return { rows, run, answer, calls: () => calls, [Symbol.asyncDispose]: () => hf.close() }
    }

    it.each([
      ['a list of items', ['ONE', 'TWO']],
      ['items and their tokens', { items: ['ONE', 'TWO'], tokens: 7 }],
    ])('is read as what it returns itself: %s', async (_, result) => {
      await using place = await cutOff()
      await place.answer({ outcome: 'succeeded', result })
      expect(await place.run()).toMatchObject({ successful: 1, failed: 0, tokens: Array.isArray(result) ? 0 : 7 })
      expect(place.rows).toEqual(['ONE', 'TWO'])
      expect(place.calls()).toBe(1)
    })

    it.each([
      ['nothing', undefined],
      ['too few', { items: ['ONE'], tokens: 1 }],
      ['something else', 'done'],
    ])('is asked for again where it can not be used: %s', async (_, result) => {
      await using place = await cutOff()
      await place.answer({ outcome: 'succeeded', ...(result === undefined ? {} : { result }) })
      // Never beside the wrong chunks, and never a document that can't be finished anymore.
      expect(await place.run()).toMatchObject({ successful: 0, failed: 1 })
      expect(place.rows).toEqual([])
      await expect(place.answer(['ONE'])).rejects.toMatchObject({ code: 'invalid-value' })
      const asked = await place.answer(['ONE', 'TWO'])
      expect(asked).toMatchObject({ kind: 'question', question: { stage: 'pay', batch: 0, items: 2 } })
      expect(await place.run()).toMatchObject({ successful: 1, failed: 0 })
      expect(place.rows).toEqual(['ONE', 'TWO'])
      expect(place.calls()).toBe(1)
    })
  })
}
