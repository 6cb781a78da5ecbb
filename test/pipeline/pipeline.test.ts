import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Holdfast, openHoldfast } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { type Document, openPipeline, type PipelineProgress, pipeline } from 'holdfast/pipeline'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { makeDocuments, makePipeline, memorySink, readEmbedded } from '../../scripts/torture/pipeline-library.mjs'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-pipeline-'))
const DAY = 24 * 60 * 60 * 1000
let ledger = ''
let count = 0

beforeEach(() => {
  ledger = join(folder, `ledger-${count++}`)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const memory = { name: 'memory', missing: false, fresh: async () => 'memory:', cleanup: async () => {} }

for (const backend of [memory, ...(await durableBackends())]) {
  describe.skipIf(backend.missing)(`a pipeline on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    const open = async () => {
      const hf = await openHoldfast(await backend.fresh())
      return { hf, [Symbol.asyncDispose]: () => hf.close() }
    }
    const texts = (sink: ReturnType<typeof memorySink>) =>
      [...sink.rows.values()].map(({ item }) => (item as { text: string }).text).sort()

    it('processes what is new or changed, skips the rest, and removes chunks that are no longer true', async () => {
      await using place = await open()
      const sink = memorySink()
      const documents: { id: string; content: string }[] = makeDocuments(6, 3)
      const first = await openPipeline(place.hf, makePipeline(documents, ledger, sink)).run()
      const lines = documents.flatMap(({ content }) => content.split('\n'))
      expect(first).toMatchObject({ status: 'completed', successful: 6, skipped: 0, resumed: 0, failed: 0 })
      expect(first).toMatchObject({ chunks: lines.length, tokens: lines.length, missing: [] })
      expect(texts(sink)).toEqual([...lines].sort())

      const changed = documents.map((each) => (each.id === 'doc-3' ? { ...each, content: 'one new line' } : each))
      const second = await openPipeline(place.hf, makePipeline(changed.slice(1), ledger, sink)).run()
      expect(second).toMatchObject({ successful: 1, skipped: 4, chunks: 1, missing: ['doc-0'], removed: 0 })
      expect(texts(sink)).toEqual(changed.flatMap(({ content }) => content.split('\n')).sort())

      const library = openPipeline(place.hf, makePipeline(changed.slice(1), ledger, sink))
      expect(await library.run({ removeMissing: true })).toMatchObject({ skipped: 5, removed: 1, missing: [] })
      expect(texts(sink)).toEqual(
        changed
          .slice(1)
          .flatMap(({ content }) => content.split('\n'))
          .sort(),
      )
      expect(await library.status()).toMatchObject({ status: 'running', documents: 5, done: 5, failed: 0 })
      // What was removed and comes back is new.
      const back = await openPipeline(place.hf, makePipeline(changed, ledger, sink)).run()
      expect(back).toMatchObject({ successful: 1, skipped: 5 })
      // And so is content that was there before another.
      const again = await openPipeline(place.hf, makePipeline(documents, ledger, sink)).run()
      expect(again).toMatchObject({ successful: 1, skipped: 5 })
      expect(texts(sink)).toEqual([...lines].sort())
    })

    it('records a document that fails, goes on with the others, and tries it again when asked', async () => {
      await using place = await open()
      const sink = memorySink()
      const documents = makeDocuments(5, 3)
      let isBroken = true
      const failing = {
        ...sink,
        write: async (rows: Parameters<typeof sink.write>[0]) => {
          if (isBroken && rows[0].document === 'doc-2') throw new Error('the sink is full')
          return sink.write(rows)
        },
      }
      const library = openPipeline(place.hf, makePipeline(documents, ledger, failing, { retry: { attempts: 1 } }))
      const report = await library.run()
      expect(report).toMatchObject({ status: 'completed', successful: 4, failed: 1 })
      expect(report.failures).toMatchObject([
        { document: 'doc-2', error: { message: expect.stringContaining('the sink is full') } },
      ])
      expect(await library.failures()).toEqual(report.failures)
      // Not tried again by itself: it would fail for ever.
      expect(await library.run()).toMatchObject({ successful: 0, skipped: 4, failed: 1, failures: report.failures })

      isBroken = false
      expect(await library.retryFailed()).toMatchObject({ successful: 1, skipped: 0, failed: 0, missing: [] })
      expect(texts(sink)).toEqual(documents.flatMap(({ content }) => content.split('\n')).sort())
      expect(await library.failures()).toEqual([])
    })

    it('goes on where it was stopped, and two runs at once share the documents', async () => {
      await using place = await open()
      const sink = memorySink()
      const documents = makeDocuments(8, 5)
      const stop = new AbortController()
      let isOpen = false
      const library = makePipeline(documents, ledger, {
        ...sink,
        write: async (rows: Parameters<typeof sink.write>[0]) => {
          await sink.write(rows)
          if (!isOpen && sink.rows.size > 6) {
            stop.abort()
            // Never acknowledged: the run is stopped while this batch is under way.
            await new Promise(() => {})
          }
        },
      })
      expect(await openPipeline(place.hf, library).run({ signal: stop.signal })).toMatchObject({ status: 'stopped' })
      isOpen = true
      const reports = await Promise.all([openPipeline(place.hf, library).run(), openPipeline(place.hf, library).run()])
      const lines = documents.flatMap(({ content }) => content.split('\n'))
      expect(texts(sink)).toEqual([...lines].sort())
      for (const report of reports) {
        expect(report.status).toBe('completed')
        expect(report.successful + report.skipped + report.elsewhere).toBe(documents.length)
      }
      expect(reports[0].resumed + reports[1].resumed).toBe(1)
      // All but the batch that was under way: that one twice.
      expect(readEmbedded(ledger).length - lines.length).toBeLessThanOrEqual(4)
    })

    it('stops for a pause of another process and goes on after it', async () => {
      await using place = await open()
      const sink = memorySink()
      const documents = makeDocuments(100, 1)
      const library = makePipeline(documents, ledger, sink)
      const other = openPipeline(place.hf, library)
      let isPaused: Promise<void> | undefined
      const paused = await openPipeline(place.hf, {
        ...library,
        plan: {
          ...library.plan,
          source: async function* () {
            for (const [i, document] of documents.entries()) {
              if (i === 10) await (isPaused ??= other.pause({ by: 'ada' }))
              yield document
            }
          },
        },
      }).run()
      expect(paused.status).toBe('paused')
      expect(paused.successful).toBeLessThan(100)
      expect(await other.run()).toMatchObject({ status: 'paused', successful: 0 })
      expect((await other.status()).status).toBe('paused')
      await other.resume()
      expect(await other.run()).toMatchObject({ status: 'completed', successful: 100 - paused.successful })
      await other.cancel()
      expect(await other.run()).toMatchObject({ status: 'cancelled', skipped: 0 })
    })
  })
}

describe('what a pipeline makes of bad input', () => {
  const run = async (
    documents: Iterable<Document>,
    options: object = {},
    sink: ReturnType<typeof memorySink> = memorySink(),
    hf?: Holdfast,
  ) => {
    const place = hf ?? (await openHoldfast('memory:'))
    try {
      const library = makePipeline(documents as never, ledger, sink, { retry: { attempts: 1 }, ...options })
      return await openPipeline(place, library).run()
    } finally {
      if (!hf) await place.close()
    }
  }

  it('names a document that can not be read, one without chunks and one that comes twice', async () => {
    const report = await run([
      { id: 'a', content: 'text' },
      {
        id: 'unreadable',
        load: () => {
          throw new Error('EACCES: permission denied')
        },
      },
      { id: 'empty', content: '' },
      { id: 'a', content: 'another text' },
      { id: '', content: 'x' } as Document,
      { id: 'neither' } as Document,
      { id: 'wrong', load: () => 5 as never },
    ])
    expect(report).toMatchObject({ status: 'completed', successful: 2, failed: 4, empty: ['empty'], duplicates: ['a'] })
    const failures = Object.fromEntries(report.failures.map(({ document, error }) => [document, error.message]))
    expect(failures).toMatchObject({
      unreadable: 'EACCES: permission denied',
      '(no id)': expect.stringContaining('id must be a string of 1 to 400 bytes'),
      neither: expect.stringContaining('must have either content or load'),
      wrong: expect.stringContaining('must return a string or bytes, not number'),
    })
  })

  it.each([
    ['too few items', () => [], 'has 0 items for a batch of 1'],
    ['no list', () => 'vectors', 'must be a list of items'],
    ['a count of tokens that is none', () => ({ items: [1], tokens: Number.NaN }), 'must be a count, not NaN'],
  ])('refuses a stage that returns %s, for that document', async (_, embed, message) => {
    const split = { name: 'lines', split: ({ text }: { text: string }) => [text] }
    const stages = [split, { name: 'embed', run: embed }]
    const report = await run([{ id: 'a', content: 'text' }], { stages })
    expect(report.failures).toMatchObject([{ document: 'a', error: { message: expect.stringContaining(message) } }])
    const none = await run([{ id: 'a', content: 'text' }], { stages: [{ name: 'lines', split: () => 5 }] })
    expect(none.failures[0]?.error.message).toContain('stage "lines" must be a list of chunks, not number')
  })

  it('refuses other stages under the same version, and begins anew under a new major one', async () => {
    await using hf = await openHoldfast('memory:')
    const sink = memorySink()
    const documents = makeDocuments(2, 2)
    expect(await run(documents, {}, sink, hf)).toMatchObject({ successful: 2 })
    const stages = [{ name: 'words', split: ({ text }: { text: string }) => text.split(' ') }]
    await expect(run(documents, { stages }, sink, hf)).rejects.toThrow(/has the stages "words", but was started with/)
    expect(await run(documents, { stages, version: '1.1.0' }, sink, hf)).toMatchObject({ skipped: 2 })
    expect(await run(documents, { stages, version: '2.0.0' }, sink, hf)).toMatchObject({ successful: 2 })
    expect([...sink.rows.values()].map(({ item }) => item)).toContain('part')
  })

  it.each([
    [{ concurrency: 0 }, 'concurrency must be a whole number from 1 to 1000, not 0'],
    [{ ahead: -1 }, 'ahead must be a whole number from 0 to 10000, not -1'],
    [{ batch: 1.5 }, 'batch must be a whole number from 1 to 10000, not 1.5'],
    [{ source: 5 }, 'source yields no documents'],
    [{ stages: [] }, 'stages must be a list of 1 to 5 stages'],
    [{ stages: [{ name: 'a' }] }, 'stages[0].split must be a function'],
    [{ sink: {} }, 'sink.write must be a function'],
    [{ version: 'one' }, 'version'],
    [
      {
        stages: [
          { name: 'a', split: () => [] },
          { name: 'b', run: () => [], rate: { tokensPerMinute: -1 } },
        ],
      },
      'rate',
    ],
  ])('refuses a declaration that can not work: %j', (wrong, message) => {
    const right = {
      name: 'p',
      version: '1.0.0',
      source: [],
      stages: [{ name: 'a', split: () => [] }],
      sink: memorySink(),
    }
    expect(() => pipeline({ ...right, ...wrong } as never)).toThrow(message)
  })

  it('refuses a transactional sink where there are no transactions', async () => {
    await using hf = await openHoldfast('memory:')
    const sink = { ...memorySink(), transactional: true }
    const library = makePipeline(makeDocuments(1, 1), ledger, sink)
    await expect(openPipeline(hf, library).run()).rejects.toThrow('this backend has no transactions')
  })
})

describe('the work of a pipeline', () => {
  it('removes the history of documents that were finished long ago, and still knows that they are', async () => {
    const clock = virtualClock()
    await using hf = await openHoldfast('memory:', { clock })
    const documents = makeDocuments(3, 2)
    const open = (options: object = {}) =>
      openPipeline(hf, makePipeline(documents, ledger, memorySink(), options), { clock })
    const histories = async () => (await hf.threads({ status: 'completed' })).threads.length
    expect(await open().run()).toMatchObject({ successful: 3, expired: 0 })
    await clock.advance(29 * DAY)
    expect(await open().run()).toMatchObject({ skipped: 3, expired: 0 })
    await clock.advance(2 * DAY)
    expect(await open({ retention: 'keep' }).run()).toMatchObject({ skipped: 3, expired: 0 })
    expect(await histories()).toBe(3)
    expect(await open().run()).toMatchObject({ skipped: 3, expired: 3 })
    expect(await histories()).toBe(0)
    expect(await open().run()).toMatchObject({ successful: 0, skipped: 3, expired: 0 })
    documents[0] = { id: 'doc-0', content: 'changed' }
    expect(await open().run()).toMatchObject({ successful: 1, skipped: 2 })
  })

  it('takes no more documents from the source than it can work on', async () => {
    await using hf = await openHoldfast('memory:')
    const sink = memorySink()
    let yielded = 0
    let mostAhead = 0
    const library = makePipeline([], ledger, sink, {
      concurrency: 3,
      ahead: 2,
      source: function* () {
        for (const document of makeDocuments(50, 2)) {
          yielded++
          yield document
        }
      },
    })
    const report = await openPipeline(hf, library).run({
      onProgress: ({ successful }) => {
        mostAhead = Math.max(mostAhead, yielded - successful)
      },
    })
    expect(report.successful).toBe(50)
    expect(mostAhead).toBeLessThanOrEqual(3 + 2 + 1)
  })

  it('tells how far it is', async () => {
    await using hf = await openHoldfast('memory:')
    const seen: PipelineProgress[] = []
    const library = makePipeline(makeDocuments(5, 3), ledger, memorySink())
    const report = await openPipeline(hf, library).run({ onProgress: (progress) => seen.push(progress) })
    expect(seen.at(-1)).toMatchObject({ found: 5, isScanned: true, successful: 5, active: 0, chunks: report.chunks })
    expect(seen.at(-1)?.remainingMs).toBe(0)
    for (const [i, progress] of seen.entries()) {
      if (i > 0) expect(progress.chunks).toBeGreaterThanOrEqual(seen[i - 1].chunks)
    }
  })

  it('records the result of a stage that must not run twice before the batch goes on', async () => {
    await using hf = await openHoldfast('memory:')
    const sink = memorySink()
    let paid = 0
    let isBroken = true
    const library = makePipeline([{ id: 'a', content: 'one\ntwo' }], ledger, sink, {
      retry: { attempts: 1 },
      stages: [
        { name: 'lines', split: ({ text }: { text: string }) => text.split('\n') },
        {
          name: 'pay',
          effect: 'once',
          run: (lines: string[]) => {
            paid++
            return lines.map((line) => ({ line, receipt: paid }))
          },
        },
        {
          name: 'embed',
          run: (items: unknown[]) => {
            if (isBroken) throw new Error('no answer')
            return items
          },
        },
      ],
    })
    const opened = openPipeline(hf, library)
    expect(await opened.run()).toMatchObject({ failed: 1 })
    isBroken = false
    expect(await opened.retryFailed()).toMatchObject({ successful: 1, resumed: 1 })
    expect(paid).toBe(1)
    expect([...sink.rows.values()].map(({ item }) => item)).toEqual([
      { line: 'one', receipt: 1 },
      { line: 'two', receipt: 1 },
    ])
  })

  it('begins a document anew whose content changed while it was interrupted', async () => {
    await using hf = await openHoldfast('memory:')
    const sink = memorySink()
    const stop = new AbortController()
    const hanging = {
      ...sink,
      write: async (rows: Parameters<typeof sink.write>[0]) => {
        await sink.write(rows)
        if (rows[0].position === 0) return
        stop.abort()
        await new Promise(() => {})
      },
    }
    const before = [{ id: 'a', content: '1\n2\n3\n4\n5\n6' }]
    const first = openPipeline(hf, makePipeline(before, ledger, hanging))
    expect(await first.run({ signal: stop.signal })).toMatchObject({ status: 'stopped' })
    const after = [{ id: 'a', content: 'x\ny' }]
    const report = await openPipeline(hf, makePipeline(after, ledger, sink)).run()
    expect(report).toMatchObject({ successful: 1, failed: 0, chunks: 2 })
    expect([...sink.rows.values()].map(({ item }) => (item as { text: string }).text)).toEqual(['x', 'y'])
  })
})
