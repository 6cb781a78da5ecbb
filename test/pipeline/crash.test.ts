import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { openPipeline, type PipelineReport } from 'holdfast/pipeline'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { full } from '../support/scale.js'
import { userSql } from '../support/user-table.js'
import { makeDocuments, makePipeline, readEmbedded, tableSink } from '../../scripts/torture/pipeline-library.mjs'

const CHILD = fileURLToPath(new URL('../../scripts/torture/pipeline-worker.mjs', import.meta.url))
const DOCUMENTS = 20
const CHUNKS = 4
/** Short: whoever comes next waits for it. Not so short that renewing it takes as long on a busy machine. */
const LEASE_MS = 700
const folder = mkdtempSync(join(tmpdir(), 'holdfast-pipeline-'))
let count = 0

afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Ended {
  readonly writes: number
  readonly report: PipelineReport
}

/** What a process that came to its end says; undefined of one that was killed. */
function runChild(url: string, ledger: string, table: string, nth: number, concurrency: number) {
  const args = [CHILD, url, ledger, table, nth, DOCUMENTS, CHUNKS, concurrency, LEASE_MS].map(String)
  return new Promise<Ended | undefined>((resolve, reject) => {
    execFile(process.execPath, args, (error, stdout, stderr) => {
      if (error?.signal === 'SIGKILL') resolve(undefined)
      else if (error) reject(new Error(`${error.message}\n${stderr}`))
      else resolve(JSON.parse(stdout) as Ended)
    })
  })
}

for (const backend of await durableBackends()) {
  if (backend.name !== 'SQLite' && backend.name !== 'Postgres') continue
  describe.skipIf(backend.missing)(`a pipeline of ${DOCUMENTS} documents on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    const isPostgres = backend.name === 'Postgres'
    const newPlace = async () => {
      const name = `library_${process.pid}_${count++}`
      return { url: await backend.fresh(), ledger: join(folder, name), table: name }
    }
    const rowsOf = async ({ url, table }: { url: string; table: string }) => {
      return userSql(backend, url)(`SELECT id, document, hash, position, item FROM ${table} ORDER BY id`)
    }

    it('is killed after writes in turn, and ends each time as if it had not been', {
      timeout: 1_200_000,
    }, async () => {
      const whole = await newPlace()
      const uninterrupted = await runChild(whole.url, whole.ledger, whole.table, 0, 1)
      expect(uninterrupted?.report).toMatchObject({ status: 'completed', successful: DOCUMENTS, failed: 0 })
      const expected = await rowsOf(whole)
      const lines = readEmbedded(whole.ledger)
      expect(new Set(lines).size).toBe(lines.length)
      expect(expected).toHaveLength(lines.length)

      const { writes } = uninterrupted as Ended
      // Every write in the full run. Otherwise a spread of them, which ends up in every part of a document's way: a
      // document takes four writes, and a few belong to none.
      const step = full ? 1 : isPostgres ? 13 : 5
      const turns = Array.from({ length: writes }, (_, i) => i + 1).filter((nth) => nth % step === 0)
      const killAt = async (nth: number): Promise<void> => {
        const place = await newPlace()
        expect(await runChild(place.url, place.ledger, place.table, nth, 1)).toBeUndefined()
        const hf = await openHoldfast(place.url)
        const documents = makeDocuments(DOCUMENTS, CHUNKS)
        const library = makePipeline(documents, place.ledger, tableSink(place.table, isPostgres))
        const report = await openPipeline(hf, library).run({ leaseMs: LEASE_MS })
        await hf.close()
        expect(report).toMatchObject({ status: 'completed', failed: 0 })
        expect(await rowsOf(place)).toEqual(expected)
        // One after the other, so nothing was under way but what was just acknowledged: nothing is embedded twice.
        expect(readEmbedded(place.ledger).sort()).toEqual([...lines].sort())
      }
      const queue = [...turns]
      const work = async () => {
        for (let nth = queue.shift(); nth !== undefined; nth = queue.shift()) await killAt(nth)
      }
      await Promise.all([work(), work()])
      console.log(`${backend.name}: killed after each of ${turns.length} of ${writes} writes`)
    })
  })
}
