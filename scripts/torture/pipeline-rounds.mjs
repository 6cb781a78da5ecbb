// @ts-check
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { openPipeline } from 'holdfast/pipeline'
import { makeDocuments, makePipeline, readEmbedded, tableSink } from './pipeline-library.mjs'
import { seededRandom } from './random.mjs'
import { spawnChild } from './spawn-child.mjs'

/**
 * Some processes work on one pipeline, and each of them kills itself after a random number of writes and is followed by
 * another, until all is done. Throws when a chunk is missing or was stored twice.
 * @param {{ url: string, documents: number, chunks: number, workers: number, concurrency: number, leaseMs: number,
 *   seed: number, onProgress?: (rows: number, all: number, kills: number) => void }} options
 */
export async function runPipelines({ url, documents, chunks, workers, concurrency, leaseMs, seed, onProgress }) {
  const random = seededRandom(seed)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pipelines-'))
  const ledger = join(folder, 'embedded')
  const table = `library_${process.pid}_${seed}`
  const all = makeDocuments(documents, chunks)
  const expected = all.flatMap(({ content }) => content.split('\n'))
  const began = Date.now()
  let kills = 0
  let peakMb = 0
  // Every process may die a few times; those that come last finish.
  const writesInAll = documents * 4
  const lives = Math.max(1, Math.round(writesInAll / workers / Math.max(20, writesInAll / (workers * 6))))

  const work = async () => {
    for (let life = 0; ; life++) {
      const nth = life < lives ? 1 + Math.floor(random() * (writesInAll / workers / lives) * 1.5) : 0
      const args = [url, ledger, table, nth, documents, chunks, concurrency, leaseMs].map(String)
      const { exited, lines, errors } = spawnChild(args, { script: './pipeline-worker.mjs' })
      const code = await exited
      if (code === null) {
        kills++
        onProgress?.(new Set(readEmbedded(ledger)).size, expected.length, kills)
        continue
      }
      if (code !== 0) throw new Error(`A process ended with ${code}: ${errors()}`)
      const ended = JSON.parse(/** @type {string} */ (lines.at(-1)))
      peakMb = Math.max(peakMb, ended.peakMb)
      if (ended.report.failed > 0)
        throw new Error(`Documents failed: ${JSON.stringify(ended.report.failures.slice(0, 3))}`)
      return
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
  const ms = Date.now() - began

  const hf = new Holdfast(new LogStore(await openDriver(url, { sqlite: { busyTimeoutMs: 60_000 } })))
  try {
    const rows = await readRows(hf, table)
    const texts = rows.map(({ item }) => JSON.parse(String(item)).text)
    if (new Set(texts).size !== texts.length) throw new Error('A chunk is stored twice.')
    if (texts.length !== expected.length) throw new Error(`${expected.length - texts.length} chunks are missing.`)
    const known = new Set(expected)
    for (const text of texts) if (!known.has(text)) throw new Error(`A chunk is stored that no document has: ${text}`)
    const library = makePipeline(all, ledger, tableSink(table, url.startsWith('postgres')))
    const again = await openPipeline(hf, library).run()
    if (again.skipped !== documents) throw new Error(`A second run skipped ${again.skipped} of ${documents} documents.`)
    // What was under way when a process died, or lost its lease on a busy machine, was embedded again.
    const embedded = readEmbedded(ledger).length
    return { chunks: expected.length, kills, embedded, peakMb, memory: readMemory(`${ledger}.memory`), ms }
  } finally {
    await hf.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** How long a process takes until it has loaded its code and is at work. */
const WARM_MS = 3000

/**
 * The median size of a process in the first and in the last quarter of the time, in MB, each counted from when it was
 * warm; undefined when none lived that long. @param {string} file
 */
function readMemory(file) {
  if (!existsSync(file)) return undefined
  /** @type {Map<number, number>} */
  const began = new Map()
  const samples = readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => /** @type {{ pid: number, at: number, rss: number }} */ (JSON.parse(line)))
    .sort((a, b) => a.at - b.at)
    .filter(({ pid, at }) => {
      if (!began.has(pid)) began.set(pid, at)
      return at - /** @type {number} */ (began.get(pid)) >= WARM_MS
    })
  const quarter = Math.floor(samples.length / 4)
  if (quarter === 0) return undefined
  const median = (/** @type {typeof samples} */ some) => {
    const sizes = some.map(({ rss }) => rss).sort((a, b) => a - b)
    return Math.round(/** @type {number} */ (sizes[Math.floor(sizes.length / 2)]) / 1024 / 1024)
  }
  return { firstMb: median(samples.slice(0, quarter)), lastMb: median(samples.slice(-quarter)) }
}

/** @param {Holdfast} hf @param {string} table @returns {Promise<readonly Record<string, unknown>[]>} */
async function readRows(hf, table) {
  const claim = await (await hf.log(`table ${table}`)).claim({ owner: 'torture', ms: 30_000, force: true })
  const { result } = await claim.transact(
    async (session) => (await session.query(`SELECT document, position, item FROM ${table}`)).rows,
    () => [{ kind: 'note', index: { status: 'completed' } }],
  )
  return result
}
