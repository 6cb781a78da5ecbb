import { Figures } from './figures.js'
import { Flusher, type FlusherOptions, type WriteMetrics } from './flusher.js'
import { Instruments } from './instruments.js'
import type { CounterName, HistogramName } from './names.js'
import type { ObservedRun, Observer, RunObserver } from './observer.js'
import type { TelemetryOptions } from './options.js'
import { type Attributes, loadOtelApi, type OtelApi } from './otel-api.js'
import { quietly, type RedactText, SCOPE, Tracing } from './tracing.js'
import { WatchedRun } from './watched-run.js'

/** Counts what happens on one open store, and passes it on: to the store, and to OpenTelemetry if there is any. */
export class Telemetry implements Observer {
  readonly figures = new Figures()
  readonly tracing: Tracing | undefined
  readonly #api: OtelApi | undefined
  readonly #options: TelemetryOptions
  #instruments: Instruments | undefined
  #flusher: Flusher | undefined

  private constructor(api: OtelApi | undefined, options: TelemetryOptions, redact: RedactText | undefined) {
    this.#api = api
    this.#options = options
    this.#renewInstruments()
    const { tracerProvider, recordContent = false } = options
    if (api === undefined || tracerProvider === false) return
    // The registered provider hands out tracers that also work with an SDK that is set up later.
    const provider = tracerProvider ?? api.trace.getTracerProvider()
    this.tracing = new Tracing(api, provider.getTracer(SCOPE), recordContent, redact)
  }

  /** `redact` removes from every text of a span what must not leave this process. */
  static async open(options: TelemetryOptions, redact?: RedactText): Promise<Telemetry> {
    const wanted = options.tracerProvider !== false || options.meterProvider !== false
    return new Telemetry(wanted ? await loadOtelApi() : undefined, options, redact)
  }

  get instruments(): Instruments | undefined {
    return this.#instruments
  }

  count(name: CounterName, by = 1, attributes?: Attributes): void {
    this.figures.count(name, by)
    this.#instruments?.count(name, by, attributes)
  }

  record(name: HistogramName, value: number): void {
    this.figures.record(name, value)
    this.#instruments?.record(name, value)
  }

  run(run: ObservedRun): RunObserver {
    quietly(() => this.#renewInstruments())
    return new WatchedRun(this, run)
  }

  snapshot() {
    return this.figures.snapshot()
  }

  /** From here on, what was counted is reported now and then. */
  reportTo(write: WriteMetrics, options: FlusherOptions): void {
    this.#flusher = new Flusher(this.figures, write, options)
  }

  async flush(): Promise<void> {
    await this.#flusher?.flush()
  }

  async close(): Promise<void> {
    await this.#flusher?.close()
  }

  // Unlike tracers, instruments created before the SDK was set up never count anything.
  #renewInstruments(): void {
    const { meterProvider } = this.#options
    if (meterProvider === false) return
    const provider = meterProvider ?? this.#api?.metrics.getMeterProvider()
    if (provider === undefined || provider === this.#instruments?.provider) return
    this.#instruments = new Instruments(provider)
  }
}
