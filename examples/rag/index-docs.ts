// How a folder of texts becomes a table of passages with vectors.
import { folder, type Pipeline, pipeline, splitText, type TransactionalSink } from 'holdfast/pipeline'
import type { Embed } from './embedder.js'
import type { Passage } from './vectors.js'

export function makeIndex(path: string, embed: Embed, sink: TransactionalSink<Passage>): Pipeline<Passage> {
  return pipeline({
    name: 'passages',
    version: '1.0.0',
    source: folder(path, { include: (file) => /\.(md|txt)$/.test(file) && !file.startsWith('api/') }),
    stages: [
      { name: 'split', split: ({ text }) => splitText(text, { maxLength: 800, overlap: 80 }) },
      {
        name: 'embed',
        // Nothing outside changes: a batch that was not committed when the process died is embedded again.
        effect: 'read',
        tokens: ({ text }) => Math.ceil(text.length / 4),
        run: async (chunks) => {
          const vectors = await embed(chunks.map(({ text }) => text))
          return chunks.map(({ text }, i) => ({ text, vector: vectors[i] as Float32Array }))
        },
      },
    ],
    sink,
    // The model works in this process: more at once is no faster, and only more to do again after a crash.
    concurrency: 1,
    ahead: 0,
    batch: 16,
  })
}
