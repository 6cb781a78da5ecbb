// @ts-check
import { randomUUID } from 'node:crypto'
import { openPipeline, pipeline } from 'holdfast/pipeline'
import { openStore } from '../backends.mjs'
import { compare, timed } from '../statistics.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

const EMBED_MS = 5
const CHUNKS = 20
const BATCH = 5

/**
 * Documents of 20 chunks through an embedder that takes 5 ms a batch, against the same loop without any checkpoint: the
 * same chunks, the same calls, the same rows kept in memory.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const documents = makeDocuments(quick ? 50 : 200)
  for (const backend of backends) {
    await backend.prepare?.()
    const { hf } = await openStore(backend.url('pipeline'))
    try {
      const found = []
      for (let round = 0; round <= rounds; round++) {
        progress(`${backend.name}: pipeline, round ${round + 1} of ${rounds + 1}`)
        const index = openPipeline(hf, makePipeline(documents))
        const ours = await timed(() => index.run())
        const floor = await timed(() => plainLoop(documents))
        // The first warms both up.
        if (round > 0) found.push({ ours, floor })
      }
      const what = `${documents.length} documents of ${CHUNKS} chunks, time`
      report(compare({ backend: backend.name, what, unit: 'time', budget: { atMost: 1.15 } }, found))
    } finally {
      await hf.close()
      await backend.cleanup?.()
    }
  }
}

/** @param {number} count */
function makeDocuments(count) {
  return Array.from({ length: count }, (_, i) => ({
    id: `document ${i}`,
    content: Array.from({ length: CHUNKS }, (_, n) => `chunk ${n} of document ${i} ${'text '.repeat(40)}`).join('\n'),
  }))
}

/** @param {readonly string[]} chunks */
async function embed(chunks) {
  await new Promise((resolve) => setTimeout(resolve, EMBED_MS))
  return chunks.map((text) => ({ text, vector: [text.length] }))
}

/** @param {ReturnType<typeof makeDocuments>} documents */
function makePipeline(documents) {
  const rows = new Map()
  return pipeline({
    name: `bench ${randomUUID()}`,
    version: '1.0.0',
    source: documents,
    stages: [
      { name: 'split', split: ({ text }) => text.split('\n') },
      { name: 'embed', run: embed },
    ],
    sink: {
      write: async (added) => {
        for (const row of added) rows.set(row.id, row)
      },
      remove: async () => {},
    },
    concurrency: 1,
    batch: BATCH,
  })
}

/** @param {ReturnType<typeof makeDocuments>} documents */
async function plainLoop(documents) {
  const rows = new Map()
  for (const { id, content } of documents) {
    const chunks = content.split('\n')
    for (let at = 0; at < chunks.length; at += BATCH) {
      const items = await embed(chunks.slice(at, at + BATCH))
      for (const [i, item] of items.entries()) rows.set(`${id} ${at + i}`, item)
    }
  }
}
