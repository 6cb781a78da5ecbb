import { isHoldfastError } from '../core/errors.js'
import type { SpanPlan } from './observer.js'
import type { Attributes, OtelApi, SpanContextLike, SpanLike, TracerLike } from './otel-api.js'

/** The name under which OpenTelemetry lists Holdfast's spans and instruments. */
export const SCOPE = 'holdfast'

const KINDS = { internal: 0, client: 2 } as const
const ERROR = 2
const SAMPLED = 1
const NO_TRACE = /^0*$/

/** A span in progress, with the context in which what it spans has to run. */
export interface StartedSpan {
  readonly span: SpanLike
  readonly context: unknown
}

/** Creates spans at one tracer. */
export class Tracing {
  readonly recordContent: boolean
  readonly #api: OtelApi
  readonly #tracer: TracerLike
  readonly #redact: RedactText | undefined

  constructor(api: OtelApi, tracer: TracerLike, recordContent: boolean, redact?: RedactText) {
    this.#api = api
    this.#tracer = tracer
    this.recordContent = recordContent
    this.#redact = redact
  }

  /** A span below the one that is active here; if none is known to be, below `within`. */
  start(plan: SpanPlan, attributes: Attributes, within?: unknown, link?: SpanContextLike): StartedSpan | undefined {
    const { trace, context } = this.#api
    try {
      const active = context.active()
      // Without a context manager nothing is ever active, and spans would all be roots.
      const parent = within !== undefined && trace.getSpan(active) === undefined ? within : active
      const span = this.#tracer.startSpan(
        plan.name,
        {
          kind: KINDS[plan.kind],
          attributes: redactAttributes(this.#redact, { ...attributes, ...plan.attributes }),
          ...(link === undefined ? {} : { links: [{ context: link }] }),
        },
        parent,
      )
      return { span: shielded(span, this.#redact), context: trace.setSpan(parent, span) }
    } catch {
      // A user's sampler or span processor failed: the run continues without this span.
      return undefined
    }
  }

  run<Result>(context: unknown, work: () => Result): Result {
    return this.#api.context.with(context, work)
  }

  /** The span that is active here. */
  active(): SpanLike | undefined {
    const span = this.#api.trace.getSpan(this.#api.context.active())
    return span && shielded(span, this.#redact)
  }
}

/** Takes out of a text what must not leave this process. */
export type RedactText = (text: string) => string

function redactAttributes(redact: RedactText | undefined, attributes: Attributes): Attributes {
  if (redact === undefined) return attributes
  const clean = (value: unknown): unknown =>
    typeof value === 'string' ? redact(value) : Array.isArray(value) ? value.map(clean) : value
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, clean(value)])) as Attributes
}

function redactTexts<Told extends object>(redact: RedactText | undefined, told: Told): Told {
  if (redact === undefined) return told
  const clean = Object.entries(told).map(([name, value]) => [name, typeof value === 'string' ? redact(value) : value])
  return Object.fromEntries(clean) as Told
}

/** A span that never throws: the error of a span processor would make a step that was done look like one that failed. */
function shielded(span: SpanLike, redact?: RedactText): SpanLike {
  return {
    spanContext: () => quietly(() => span.spanContext()) ?? UNTRACED,
    setAttributes: (attributes) => quietly(() => span.setAttributes(redactAttributes(redact, attributes))),
    addEvent: (name, attributes) =>
      quietly(() => span.addEvent(name, attributes && redactAttributes(redact, attributes))),
    setStatus: (status) => quietly(() => span.setStatus(redactTexts(redact, status))),
    recordException: (exception) => quietly(() => span.recordException(redactTexts(redact, exception))),
    end: () => quietly(() => span.end()),
  }
}

const UNTRACED: SpanContextLike = { traceId: '', spanId: '', traceFlags: 0 }

/** Reporting about a run must not change how it goes, so it may fail. */
export function quietly<Result>(tell: () => Result): Result | undefined {
  try {
    return tell()
  } catch {
    return undefined
  }
}

/** Whether a span belongs to a trace at all: without an SDK none does. */
export function isTraced(span: SpanLike): boolean {
  return !NO_TRACE.test(span.spanContext().traceId)
}

export function failSpan(span: SpanLike, error: unknown): void {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  span.setAttributes({ 'error.type': errorType(error) })
  span.setStatus({ code: ERROR, message })
  span.recordException({ name, message, ...(stack === undefined ? {} : { stack }) })
}

/** A name for the kind of error of which there are few. */
export function errorType(error: unknown): string {
  if (isHoldfastError(error)) return typeof error.data['kind'] === 'string' ? error.data['kind'] : error.code
  return error instanceof Error ? error.name : '_OTHER'
}

/** Identifies a sampled span in the form of a traceparent header; others are useless later. */
export function formatTrace(span: SpanLike): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext()
  if ((traceFlags & SAMPLED) === 0) return undefined
  return `00-${traceId}-${spanId}-01`
}

/** What `formatTrace` named; undefined when it is something else. */
export function parseTrace(text: string | undefined): (SpanContextLike & { readonly isRemote: true }) | undefined {
  const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(text ?? '') ?? []
  return traceId && spanId ? { traceId, spanId, traceFlags: SAMPLED, isRemote: true } : undefined
}
