// @ts-check
import { randomUUID } from 'node:crypto'
import { openPipeline, pipeline } from 'holdfast/pipeline'
import { openStore } from '../backends.mjs'
import { compare, timed } from '../statistics.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

const EMBED_MS = 5
const CHUNKS = 20
const BATCH = 5

/** How many calls are made at once: the plainest loop, and what a pipeline does by default. */
const CONCURRENCIES = [1, 4]

/**
 * Documents of 20 chunks through an embedder that takes 5 ms a batch, against the same loop without any checkpoint: the
 * same chunks, the same calls, as many at once, the same rows kept in memory.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  for (const backend of backends) {
    await backend.prepare?.()
    const { hf } = await openStore(backend.url('pipeline'))
    try {
      for (const concurrency of CONCURRENCIES) {
        const documents = makeDocuments((quick ? 25 : 100) * concurrency)
        const found = []
        for (let round = 0; round <= rounds; round++) {
          progress(`${backend.name}: pipeline, ${concurrency} at once, round ${round + 1} of ${rounds + 1}`)
          const index = openPipeline(hf, makePipeline(documents, concurrency))
          const ours = await timed(() => index.run())
          const floor = await timed(() => plainLoop(documents, concurrency))
          // The first warms both up.
          if (round > 0) found.push({ ours, floor })
        }
        const calls = concurrency === 1 ? 'one call at a time' : `${concurrency} calls at once`
        const what = `${documents.length} documents of ${CHUNKS} chunks, ${calls}, time`
        report(compare({ backend: backend.name, what, unit: 'time', budget: { atMost: 1.15 } }, found))
      }
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

/** @param {ReturnType<typeof makeDocuments>} documents @param {number} concurrency */
function makePipeline(documents, concurrency) {
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
    concurrency,
    batch: BATCH,
  })
}

/** @param {ReturnType<typeof makeDocuments>} documents @param {number} concurrency */
async function plainLoop(documents, concurrency) {
  const rows = new Map()
  // Shared: each takes the next document.
  const rest = documents.values()
  const work = async () => {
    for (const { id, content } of rest) {
      const chunks = content.split('\n')
      for (let at = 0; at < chunks.length; at += BATCH) {
        const items = await embed(chunks.slice(at, at + BATCH))
        for (const [i, item] of items.entries()) rows.set(`${id} ${at + i}`, item)
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
}
