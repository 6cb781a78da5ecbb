/**
 * The part of the OpenTelemetry API that is used, by shape: users without the package still have these types, and
 * providers of any SDK match.
 */

type AttributeValue = string | number | boolean | string[] | undefined
export type Attributes = Readonly<Record<string, AttributeValue>>

export interface SpanContextLike {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
}

export interface SpanLike {
  spanContext(): SpanContextLike
  setAttributes(attributes: Attributes): unknown
  addEvent(name: string, attributes?: Attributes): unknown
  setStatus(status: { readonly code: number; readonly message?: string }): unknown
  recordException(exception: { readonly name: string; readonly message?: string; readonly stack?: string }): void
  end(): void
}

export interface TracerLike {
  startSpan(name: string, options?: object, context?: unknown): SpanLike
}

/** The part of OpenTelemetry's TracerProvider that is used: any version of its API matches. */
export interface TracerProviderLike {
  getTracer(name: string): TracerLike
}

export interface CounterLike {
  add(value: number, attributes?: Attributes): void
}

export interface HistogramLike {
  record(value: number, attributes?: Attributes): void
}

interface MeterLike {
  createCounter(name: string, options?: object): CounterLike
  createHistogram(name: string, options?: object): HistogramLike
}

/** The part of OpenTelemetry's MeterProvider that is used. */
export interface MeterProviderLike {
  getMeter(name: string): MeterLike
}

/** What is used of the package itself. A context is only handed on. */
export interface OtelApi {
  readonly trace: {
    getTracerProvider(): TracerProviderLike
    setSpan(context: unknown, span: SpanLike): unknown
    getSpan(context: unknown): SpanLike | undefined
  }
  readonly metrics: { getMeterProvider(): MeterProviderLike }
  readonly context: {
    active(): unknown
    with<Result>(context: unknown, work: () => Result): Result
  }
}

/** The package, if the application has it. */
export async function loadOtelApi(): Promise<OtelApi | undefined> {
  try {
    return (await import('@opentelemetry/api')) as unknown as OtelApi
  } catch {
    // Not installed, or can't be loaded: then nobody traces, and everything else works.
    return undefined
  }
}
