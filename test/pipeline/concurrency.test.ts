import { openHoldfast } from 'holdfast'
import { openPipeline, pipeline, type Rate } from 'holdfast/pipeline'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { memorySink } from '../../scripts/torture/pipeline-library.mjs'
import { gate } from '../support/gate.js'

const MINUTE = 60_000
const documents = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `doc-${i}`, content: `text ${i}` }))
const split = { name: 'lines', split: ({ text }: { text: string }) => text.split('\n') }

describe('concurrency', () => {
  it('limits the calls of stages and sink together, while more documents are begun', async () => {
    await using hf = await openHoldfast('memory:')
    const sink = memorySink()
    let active = 0
    let most = 0
    const counted = async <Result>(work: () => Result | Promise<Result>): Promise<Result> => {
      most = Math.max(most, ++active)
      // Long enough for all others to come in.
      for (let i = 0; i < 5; i++) await new Promise(setImmediate)
      active--
      return work()
    }
    const library = pipeline({
      name: 'library',
      version: '1.0.0',
      source: documents(30),
      stages: [split, { name: 'embed', run: (lines: readonly string[]) => counted(() => lines) }],
      sink: { ...sink, write: (rows: Parameters<typeof sink.write>[0]) => counted(() => sink.write(rows)) },
      concurrency: 3,
      ahead: 5,
    })
    let mostBegun = 0
    const report = await openPipeline(hf, library).run({
      onProgress: (progress) => {
        mostBegun = Math.max(mostBegun, progress.active)
      },
    })
    expect(report).toMatchObject({ successful: 30, failed: 0 })
    expect(most).toBe(3)
    expect(mostBegun).toBe(8)
  })

  it('starts the next batch while the record of one is written', async () => {
    await using hf = await openHoldfast('memory:')
    const both = gate()
    const embedded: string[] = []
    const sink = memorySink()
    const library = pipeline({
      name: 'library',
      version: '1.0.0',
      source: documents(2),
      stages: [
        split,
        {
          name: 'embed',
          run: (lines: readonly string[], { document }) => {
            embedded.push(document.id)
            if (embedded.length === 2) both.open()
            return lines
          },
        },
      ],
      sink,
      concurrency: 1,
    })
    // The first record can't be written before the second batch was embedded.
    const slow = {
      capabilities: hf.capabilities,
      log: hf.log.bind(hf),
      sweep: hf.sweep.bind(hf),
      thread: ((...args: Parameters<typeof hf.thread>) => {
        const thread = hf.thread(...args)
        const run = thread.run.bind(thread)
        thread.run = async (options) => {
          const outcome = await run(options)
          await both.passed
          return outcome
        }
        return thread
      }) as typeof hf.thread,
    }
    expect(await openPipeline(slow, library).run()).toMatchObject({ successful: 2 })
    expect(embedded.sort()).toEqual(['doc-0', 'doc-1'])
  })

  it('gives the slot of a call that failed or was stopped to the next', async () => {
    await using hf = await openHoldfast('memory:')
    const library = pipeline({
      name: 'library',
      version: '1.0.0',
      source: documents(10),
      stages: [
        split,
        {
          name: 'embed',
          run: (lines: readonly string[], { document }) => {
            if (Number(document.id.slice(4)) % 2 === 0) throw new Error('refused')
            return lines
          },
        },
      ],
      sink: memorySink(),
      concurrency: 1,
      retry: { attempts: 1 },
    })
    expect(await openPipeline(hf, library).run()).toMatchObject({ successful: 5, failed: 5 })
  })

  it('stops those that wait for a slot, too', async () => {
    await using hf = await openHoldfast('memory:')
    const stop = new AbortController()
    let calls = 0
    const sink = memorySink()
    const make = (run: (lines: readonly string[]) => Promise<readonly string[]>) =>
      pipeline({
        name: 'library',
        version: '1.0.0',
        source: documents(10),
        stages: [split, { name: 'embed', run }],
        sink,
        concurrency: 1,
        ahead: 9,
      })
    const hanging = make(() => {
      calls++
      return new Promise(() => {})
    })
    const running = openPipeline(hf, hanging).run({
      signal: stop.signal,
      onProgress: () => {},
    })
    while ((await hf.threads({ metadata: { 'holdfast.program': 'library' } })).threads.length < 10) {
      await new Promise(setImmediate)
    }
    stop.abort()
    expect(await running).toMatchObject({ status: 'stopped', successful: 0 })
    expect(calls).toBe(1)
    expect(
      await openPipeline(
        hf,
        make(async (lines) => lines),
      ).run(),
    ).toMatchObject({ successful: 10, resumed: 10 })
  })
})

describe('a stage that must not run twice', () => {
  it.each(['a slot', 'the rate'])('is not in doubt when it is stopped while it waits for %s', async (wait) => {
    await using hf = await openHoldfast('memory:')
    const stop = new AbortController()
    let calls = 0
    const make = (run: (lines: readonly string[]) => Promise<readonly string[]>, rate?: Rate) =>
      pipeline({
        name: 'library',
        version: '1.0.0',
        source: documents(5),
        stages: [split, { name: 'pay', effect: 'once', run, ...(rate && { rate }) }],
        sink: memorySink(),
        concurrency: wait === 'the rate' ? 5 : 1,
        ahead: 4,
      })
    const first = make(
      async (lines) => {
        if (++calls > 1) throw new Error('called twice')
        while ((await hf.threads({ metadata: { 'holdfast.program': 'library' } })).threads.length < 5) {
          await new Promise(setImmediate)
        }
        stop.abort()
        return lines
      },
      wait === 'the rate' ? { requestsPerMinute: 1 } : undefined,
    )
    expect(await openPipeline(hf, first).run({ signal: stop.signal })).toMatchObject({ status: 'stopped' })
    // One was under way. The others only waited.
    const second = await openPipeline(
      hf,
      make(async (lines) => lines),
    ).run()
    expect(second.failures.filter(({ error }) => error.name === 'PausedError').length).toBeLessThanOrEqual(1)
    expect(second.successful).toBeGreaterThanOrEqual(4)
  })
})

describe('the time limit of a stage', () => {
  it.each(['read', 'once'] as const)('is that of the call, not of waiting for the rate: %s', async (effect) => {
    const clock = virtualClock()
    await using hf = await openHoldfast('memory:', { clock })
    let calls = 0
    const library = pipeline({
      name: 'library',
      version: '1.0.0',
      source: documents(4),
      stages: [
        split,
        {
          name: 'embed',
          effect,
          // A call each minute, none of which may take longer than ten seconds.
          rate: { requestsPerMinute: 1 },
          timeoutMs: 10_000,
          run: (lines: readonly string[]) => {
            calls++
            return lines
          },
        },
      ],
      sink: memorySink(),
      retry: { attempts: 1 },
    })
    let isDone = false
    const running = openPipeline(hf, library, { clock })
      .run({ leaseMs: 10 * MINUTE })
      .finally(() => {
        isDone = true
      })
    while (!isDone) {
      await clock.advance(1000)
      await new Promise(setImmediate)
    }
    expect(await running).toMatchObject({ successful: 4, failed: 0 })
    expect(calls).toBe(4)
  })

  it.each(['read', 'once'] as const)('still ends a call that hangs: %s', async (effect) => {
    const clock = virtualClock()
    await using hf = await openHoldfast('memory:', { clock })
    const called = gate()
    const library = pipeline({
      name: 'library',
      version: '1.0.0',
      source: documents(1),
      stages: [
        split,
        {
          name: 'embed',
          effect,
          timeoutMs: 10_000,
          run: (_: readonly string[], { abortSignal }): Promise<readonly string[]> => {
            called.open()
            return new Promise((_, reject) => abortSignal.addEventListener('abort', () => reject(abortSignal.reason)))
          },
        },
      ],
      sink: memorySink(),
      retry: { attempts: 1 },
    })
    const running = openPipeline(hf, library, { clock }).run({ leaseMs: 10 * MINUTE })
    await called.passed
    await clock.advance(10_000)
    const { failures } = await running
    expect(failures).toHaveLength(1)
    // Nobody knows what became of a call that must be made once: a person is asked.
    expect(failures[0]?.error.message).toContain(effect === 'once' ? 'waits for a person' : '10000 ms')
  })
})
