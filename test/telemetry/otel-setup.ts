import { context, type Span } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  type DataPoint,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { type Holdfast, openHoldfast, type OpenOptions } from 'holdfast'
import { afterEach } from 'vitest'

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())

/** The real SDK, in memory. All is closed after each test. */
export function setUpOtel() {
  const open: { close(): Promise<unknown> }[] = []
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  function sdk() {
    const spans = new InMemorySpanExporter()
    const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
    const reader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 3_600_000 })
    const meterProvider = new MeterProvider({ readers: [reader] })
    open.push({ close: () => Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]) })
    return {
      tracerProvider,
      meterProvider,
      finished: (): readonly ReadableSpan[] => [...spans.getFinishedSpans()],
      /** The newest points of an instrument. */
      async points<Point = number>(name: string): Promise<readonly DataPoint<Point>[]> {
        metrics.reset()
        await meterProvider.forceFlush()
        const all = metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
        return (all.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []) as never
      },
    }
  }

  async function store(options: OpenOptions['telemetry'], url = 'memory:'): Promise<Holdfast> {
    const hf = await openHoldfast(url, options === undefined ? {} : { telemetry: options })
    open.push(hf)
    return hf
  }

  return { sdk, store, closing: open }
}

/** The names of spans as a tree, in the order in which they began. */
export function tree(spans: readonly ReadableSpan[]): string[] {
  const ids = new Set(spans.map((span) => span.spanContext().spanId))
  const inOrder = [...spans].sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
  const below = (parent: string | undefined, depth: number): string[] =>
    inOrder
      .filter(({ parentSpanContext }) => {
        const id = parentSpanContext?.spanId
        return parent === undefined ? id === undefined || !ids.has(id) : id === parent
      })
      .flatMap((span) => [`${'  '.repeat(depth)}${span.name}`, ...below(span.spanContext().spanId, depth + 1)])
  return below(undefined, 0)
}

export function named(spans: readonly ReadableSpan[], name: string): ReadableSpan {
  const span = spans.find((one) => one.name === name)
  if (span === undefined) throw new Error(`There is no span ${name} among: ${spans.map((one) => one.name).join(', ')}`)
  return span
}

/** A span of the user's own. */
export function spanOf(provider: BasicTracerProvider, name: string, work: (span: Span) => void): void {
  const tracer = provider.getTracer('user')
  tracer.startActiveSpan(name, (span) => {
    work(span)
    span.end()
  })
}
