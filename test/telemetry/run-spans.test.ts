import { context, metrics, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { type Context, END, flow, graph, last, START } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { named, setUpOtel, tree } from './otel-setup.js'

const { sdk, store } = setUpOtel()

afterEach(() => {
  trace.disable()
  metrics.disable()
})

async function traced(url?: string) {
  const otel = sdk()
  const { tracerProvider, meterProvider } = otel
  return { otel, hf: await store({ tracerProvider, meterProvider }, url) }
}

const greet = flow({ name: 'greet', version: '1.0.0' }, async (ctx, input: string) => {
  const name = await ctx.step('look up', () => input.toUpperCase())
  await Promise.all([1, 2].map((key) => ctx.step('send', { key }, () => key)))
  return `Hello ${name}`
})

describe('spans of a program', () => {
  it('are one for the run and one for each attempt at a step', async () => {
    const { hf, otel } = await traced()
    await hf.thread(greet, 't').run({ input: 'ada' })
    expect(tree(otel.finished())).toEqual(['run greet', '  step look up', '  step send', '  step send'])
    expect(named(otel.finished(), 'step look up').attributes).toEqual({
      'holdfast.tenant': 'default',
      'holdfast.thread': 't',
      'holdfast.branch': 'main',
      'holdfast.run': expect.any(String),
      'holdfast.step': 'look up',
      'holdfast.attempt': 1,
    })
    expect(otel.finished().map(({ attributes }) => attributes['holdfast.step'])).toContain('send[2]')
  })

  it('hold the steps of a node, and of a graph within a graph', async () => {
    const { hf, otel } = await traced()
    const inner = graph({ name: 'inner', version: '1.0.0', state: { n: last<number>(undefined, { initial: 0 }) } })
      .node('double', async ({ n }, ctx) => ({ n: await ctx.step('multiply', () => n * 2) }))
      .edge(START, 'double')
      .edge('double', END)
    const outer = graph({ name: 'outer', version: '1.0.0', state: { n: last<number>(undefined, { initial: 0 }) } })
      .node('first', ({ n }) => ({ n: n + 1 }))
      .node('within', inner)
      .edge(START, 'first')
      .edge('first', 'within')
      .edge('within', END)
    expect(await hf.thread(outer, 't').run({ input: { n: 4 } })).toMatchObject({ state: { n: 10 } })
    expect(tree(otel.finished())).toEqual([
      'run outer',
      '  step first',
      '  step within',
      '    step double',
      '      step multiply',
    ])
  })

  it('of a graph within a graph tell how it ended', async () => {
    const { hf, otel } = await traced()
    const state = { n: last<number>(undefined, { initial: 0 }) }
    const outerOf = (name: string, run: (state: object, ctx: Context) => Promise<object>) => {
      const inner = graph({ name: `inner ${name}`, version: '1.0.0', state })
        .node('work', run as never)
        .edge(START, 'work')
        .edge('work', END)
      return graph({ name, version: '1.0.0', state }).node(`within ${name}`, inner).edge(START, `within ${name}`)
    }
    const fails = outerOf('fails', () => Promise.reject(new RangeError('out of bounds')))
    const asks = outerOf('asks', async (_, ctx) => ({ n: await ctx.pause<number>('How many?') }))
    expect(await hf.thread(fails.edge('within fails', END), 'a').run({ input: {} })).toMatchObject({ status: 'failed' })
    expect(await hf.thread(asks.edge('within asks', END), 'b').run({ input: {} })).toMatchObject({ status: 'paused' })
    const failed = named(otel.finished(), 'step within fails')
    expect(failed.status).toMatchObject({
      code: SpanStatusCode.ERROR,
      message: expect.stringContaining('out of bounds'),
    })
    const asked = named(otel.finished(), 'step within asks')
    expect(asked.status.code).toBe(SpanStatusCode.UNSET)
    expect(asked.attributes).toMatchObject({ 'holdfast.suspended': true })
  })

  it('end when the run is left waiting, cancelled or stopped, without being errors', async () => {
    const { hf, otel } = await traced()
    const ask = graph({ name: 'ask', version: '1.0.0', state: { n: last<number>(undefined, { initial: 0 }) } })
      .node('asks', async (_state, ctx) => ({ n: await ctx.pause<number>('How many?') }))
      .edge(START, 'asks')
      .edge('asks', END)
    expect(await hf.thread(ask, 'a').run({ input: {} })).toMatchObject({ status: 'paused' })
    let waiting = 0
    const endless = flow({ name: 'endless', version: '1.0.0' }, async (ctx) => {
      await ctx.step('wait', ({ abortSignal: abort }) => {
        waiting++
        return new Promise((_, reject) => abort.addEventListener('abort', () => reject(abort.reason)))
      })
    })
    // It hears that it is cancelled after a third of its lease; one that ran out would be another's to end.
    const running = hf.thread(endless, 'b').run({ input: null, leaseMs: 6000 })
    const stop = new AbortController()
    const stopped = hf
      .thread(endless, 'c')
      .run({ input: null, signal: stop.signal })
      .catch((error: unknown) => error)
    await expect.poll(() => waiting).toBe(2)
    await hf.inspect('b').cancel()
    stop.abort()
    expect(await running).toMatchObject({ status: 'failed', error: { code: 'cancelled' } })
    expect(await stopped).toMatchObject({ name: 'AbortError' })
    const spans = otel.finished()
    expect(tree(spans).sort()).toEqual(
      ['run ask', '  step asks', 'run endless', '  step wait', 'run endless', '  step wait'].sort(),
    )
    expect(
      spans.filter(({ name }) => name.startsWith('step')).map(({ attributes }) => attributes['holdfast.suspended']),
    ).toEqual([true, true, true])
    expect(spans.every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true)
    const outcomes = spans.map(({ attributes }) => attributes['holdfast.outcome']).filter((one) => one !== undefined)
    expect(outcomes.sort()).toEqual(['cancelled', 'paused', 'stopped'])
    expect(await otel.points('holdfast.runs.cancelled')).toMatchObject([{ value: 1 }])
  })

  it('say which error failed a run', async () => {
    const { hf, otel } = await traced()
    const broken = flow({ name: 'broken', version: '1.0.0', retry: { attempts: 1 } } as never, async (ctx) => {
      await ctx.step('break', { retry: { attempts: 1 } }, () => {
        throw new TypeError('no such thing')
      })
    })
    expect(await hf.thread(broken, 't').run({ input: null })).toMatchObject({ status: 'failed' })
    expect(named(otel.finished(), 'step break')).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'TypeError' },
    })
    expect(named(otel.finished(), 'run broken')).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'step-failed', 'holdfast.outcome': 'failed' },
    })
  })

  it('take an AbortError of a step of its own for the error that it is', async () => {
    const { hf, otel } = await traced()
    const broken = flow({ name: 'broken', version: '1.0.0' }, async (ctx) => {
      await ctx.step('fetch', { retry: { attempts: 1 } }, () => {
        throw new DOMException('This operation was aborted', 'AbortError')
      })
    })
    await hf.thread(broken, 't').run({ input: null })
    expect(named(otel.finished(), 'step fetch')).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'AbortError' },
    })
  })

  it('go to the registered providers, also to those that are registered later', async () => {
    const hf = await store({})
    const before = sdk()
    trace.setGlobalTracerProvider(before.tracerProvider)
    metrics.setGlobalMeterProvider(before.meterProvider)
    await hf.thread(greet, 't').run({ input: 'ada' })
    expect(tree(before.finished())[0]).toBe('run greet')
    expect(await before.points('holdfast.runs.completed')).toMatchObject([{ value: 1 }])
  })

  it('nest without a context manager', async () => {
    context.disable()
    try {
      const { hf, otel } = await traced()
      await hf.thread(greet, 't').run({ input: 'ada' })
      expect(tree(otel.finished())).toEqual(['run greet', '  step look up', '  step send', '  step send'])
    } finally {
      context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    }
  })

  it('do not change what is recorded when nobody traces', async () => {
    const plain = await store({ tracerProvider: false, meterProvider: false })
    const { hf } = await traced()
    const bytes = async (of: typeof hf) => {
      await of.thread(greet, 't').run({ input: 'ada' })
      const { run } = (await of.log('t')).fold.state as { run: { trace?: string } }
      return run.trace
    }
    expect(await bytes(plain)).toBeUndefined()
    expect(await bytes(hf)).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  })
})

describe('metrics of a store', () => {
  it('are histograms of every save and load, with bounds of our own', async () => {
    const { hf, otel } = await traced()
    await hf.thread(greet, 't').run({ input: 'ada' })
    await hf.thread(greet, 't').state()
    const [saves] = await otel.points<{ count: number; buckets: { boundaries: number[] } }>(
      'holdfast.checkpoint.save.duration',
    )
    // The claim with its input, a step, two steps side by side in one append or in two, the end.
    expect(saves?.value.count).toBeGreaterThanOrEqual(4)
    expect(saves?.value.buckets.boundaries[0]).toBe(0.05)
    expect(await otel.points('holdfast.checkpoint.load.duration')).toMatchObject([{ value: { count: 1 } }])
    const [bytes] = await otel.points<{ sum: number; count: number }>('holdfast.checkpoint.bytes')
    const history = await hf.inspect('t').history({ limit: 100, all: true })
    expect(bytes?.value).toMatchObject({
      count: history.length,
      sum: history.reduce((sum, entry) => sum + entry.bytes, 0),
    })
  })

  it('count conflicts', async () => {
    const { hf, otel } = await traced()
    const one = await hf.log('t')
    const other = await hf.log('t')
    await one.update(() => [{ kind: 'input' }])
    await other.update(() => [{ kind: 'input' }])
    expect(await otel.points('holdfast.conflicts')).toMatchObject([{ value: 1 }])
  })
})
