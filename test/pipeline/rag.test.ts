import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHoldfast } from 'holdfast'
import { openPipeline } from 'holdfast/pipeline'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { DIMENSIONS, type Embed } from '../../examples/rag/embedder.js'
import { makeIndex } from '../../examples/rag/index-docs.js'
import { openVectors } from '../../examples/rag/vectors.js'
import { durableBackends } from '../support/backends.js'
import { userSql } from '../support/user-table.js'

const made: string[] = []
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
})

/** A vector of the words of a text: texts that share words are near each other. The real model takes seconds. */
const embed: Embed = async (texts) =>
  texts.map((text) => {
    const vector = new Float32Array(DIMENSIONS)
    for (const word of text.toLowerCase().match(/\w+/g) ?? []) {
      const at = createHash('sha256').update(word).digest().readUInt16LE(0) % DIMENSIONS
      vector[at] = (vector[at] ?? 0) + 1
    }
    const length = Math.hypot(...vector) || 1
    return vector.map((value) => value / length)
  })

for (const backend of await durableBackends()) {
  if (backend.name !== 'SQLite' && backend.name !== 'Postgres') continue
  describe.skipIf(backend.missing)(`the example that answers from documents, on ${backend.name}`, () => {
    let folder = ''
    afterAll(() => backend.cleanup())
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'holdfast-rag-'))
      made.push(folder)
    })

    it('indexes a folder, skips what did not change, and finds the passage that answers', async () => {
      const url = await backend.fresh()
      // Others use the same server.
      const sql = userSql(backend, url)
      await sql('DROP TABLE IF EXISTS passages')
      const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
      write('returns.md', 'Items can be returned within thirty days of delivery.')
      write('shipping.md', 'Parcels leave the warehouse on weekdays before noon.')
      write('empty.md', '')
      write('picture.png', 'not a text')
      const index = async () => {
        await using hf = await openHoldfast(url)
        const { sink } = await openVectors(url)
        return await openPipeline(hf, makeIndex(folder, embed, sink)).run({ removeMissing: true })
      }
      const ask = async (question: string) => {
        const [vector] = await embed([question])
        return (await openVectors(url)).search(vector as Float32Array, 1)
      }
      expect(await index()).toMatchObject({ successful: 3, skipped: 0, failed: 0, chunks: 2, empty: ['empty.md'] })
      expect(await ask('When can items be returned?')).toMatchObject([{ document: 'returns.md' }])
      expect(await ask('When do parcels leave?')).toMatchObject([{ document: 'shipping.md' }])

      write('shipping.md', 'We ship by boat, once a month.')
      expect(await index()).toMatchObject({ successful: 1, skipped: 2, failed: 0 })
      const [found] = await ask('ship by boat')
      expect(found).toMatchObject({ document: 'shipping.md', text: 'We ship by boat, once a month.' })
      expect(found?.score).toBeGreaterThan(0.5)
      // What the file said before is no longer found.
      expect((await ask('parcels leave the warehouse on weekdays'))[0]?.text).not.toContain('warehouse')

      rmSync(join(folder, 'returns.md'))
      expect(await index()).toMatchObject({ successful: 0, skipped: 2, removed: 1 })
      expect(await ask('When can items be returned?')).toMatchObject([{ document: 'shipping.md' }])
      await sql('DROP TABLE passages')
    })
  })
}
