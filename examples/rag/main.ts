// Indexes a folder of documents with a real embedding model and finds the passages that answer a question. Offline.
//   npm run example:rag                                   the project's own docs, into a database of this example
//   npm run example:rag -- --kill                         the same, but killed half-way and started again
//   npm run example:rag -- --folder notes --store sqlite:notes.db --ask "How do I …?"
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openHoldfast } from 'holdfast'
import { openPipeline, type PipelineReport } from 'holdfast/pipeline'
import { loadEmbedder } from './embedder.js'
import { makeIndex } from './index-docs.js'
import { openVectors } from './vectors.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const home = join(root, '.holdfast-rag')
const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: join(root, 'docs') },
    store: { type: 'string', default: `sqlite:${join(home, 'rag.db')}` },
    ask: { type: 'string', default: 'What happens to a payment when the process dies half-way?' },
    kill: { type: 'boolean', default: false },
    /** For the process that is killed: says after each batch how many chunks are committed. */
    child: { type: 'boolean', default: false },
  },
})

if (!existsSync(values.folder)) {
  console.error(`There is no folder ${values.folder}. Pass one with --folder.`)
  process.exit(1)
}
if (values.kill && !values.child) await killHalfWay()
const report = await indexFolder()
if (!values.child) {
  tell(report)
  await ask(values.ask)
}

async function indexFolder(): Promise<PipelineReport> {
  mkdirSync(home, { recursive: true })
  const hf = await openHoldfast(values.store)
  try {
    const { sink } = await openVectors(values.store)
    const index = makeIndex(values.folder, await loadEmbedder(), sink)
    return await openPipeline(hf, index).run({
      removeMissing: true,
      // What a killed process had under way is free again after two seconds.
      leaseMs: 2000,
      onProgress: ({ found, successful, skipped, failed, chunks }) => {
        if (values.child) process.stdout.write(`${chunks}\n`)
        else if (process.stderr.isTTY) {
          process.stderr.write(`\r\u001b[2K${successful + skipped + failed} of ${found} documents, ${chunks} passages`)
        }
      },
    })
  } finally {
    await hf.close()
    if (process.stderr.isTTY && !values.child) process.stderr.write('\r\u001b[2K')
  }
}

/** Starts over in another process and kills it when it has committed some of the work. */
async function killHalfWay(): Promise<void> {
  const AFTER = 60
  rmSync(home, { recursive: true, force: true })
  // Without --kill, or the child would start one of its own.
  const args = [...process.argv.slice(2).filter((arg) => arg !== '--kill'), '--child']
  const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let committed = 0
  for await (const text of child.stdout) {
    committed = Number(String(text).trim().split('\n').at(-1))
    if (committed >= AFTER) break
  }
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  console.log(
    child.signalCode === 'SIGKILL'
      ? `Killed with SIGKILL after ${committed} passages. Starting again:`
      : `There was too little to index to be killed half-way: it ended after ${committed} passages. Starting again:`,
  )
}

function tell({ successful, resumed, skipped, failed, removed, chunks, tokens, ms, failures }: PipelineReport): void {
  const again = resumed > 0 ? ` (${resumed} resumed at the batch where it stopped)` : ''
  console.log(
    `${successful} ${successful === 1 ? 'document' : 'documents'} indexed${again}, ${skipped} skipped because they did not change, ${failed} failed.`,
  )
  if (removed > 0) console.log(`${removed} are gone from the folder; their passages were removed.`)
  console.log(`${chunks} passages, about ${tokens} tokens, in ${(ms / 1000).toFixed(1)} s.`)
  for (const { document, error } of failures) console.log(`  ${document}: ${error.message}`)
}

async function ask(question: string): Promise<void> {
  const embed = await loadEmbedder()
  const [vector] = await embed([question])
  const found = await (await openVectors(values.store)).search(vector as Float32Array, 3)
  console.log(`\n${question}\n`)
  if (found.length === 0) console.log('Nothing is indexed. Is there a .md or .txt file in the folder?')
  for (const { document, text, score } of found) {
    const [first = '', ...rest] = text.split('\n').filter((line) => line.trim() !== '')
    console.log(`${score.toFixed(2)}  ${document}\n      ${first}`)
    for (const line of rest.slice(0, 3)) console.log(`      ${line}`)
    console.log()
  }
}
