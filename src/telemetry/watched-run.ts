import { isHoldfastError } from '../core/errors.js'
import type { CounterName } from './names.js'
import {
  type ModelCall,
  NO_SPAN,
  type ObservedRun,
  type OpenSpan,
  type RunEnd,
  type RunObserver,
  type SpanPlan,
} from './observer.js'
import type { Attributes, SpanLike } from './otel-api.js'
import type { Telemetry } from './telemetry.js'
import {
  errorType,
  failSpan,
  formatTrace,
  isTraced,
  parseTrace,
  quietly,
  type StartedSpan,
  type Tracing,
} from './tracing.js'

const COUNTED: Readonly<Partial<Record<RunEnd, CounterName>>> = {
  completed: 'holdfast.runs.completed',
  limited: 'holdfast.runs.limited',
  failed: 'holdfast.runs.failed',
  incompatible: 'holdfast.runs.failed',
  cancelled: 'holdfast.runs.cancelled',
  paused: 'holdfast.runs.paused',
}
/** A resume with one of these results did what it should. */
const WELL: ReadonlySet<RunEnd> = new Set(['completed', 'limited', 'paused', 'cancelled'])
const WRONG: ReadonlySet<RunEnd> = new Set(['failed', 'incompatible', 'lost'])

/** Counts how one run goes, and traces it: one span for the run, and below it those of its steps and calls. */
export class WatchedRun implements RunObserver {
  readonly trace: string | undefined
  readonly #telemetry: Telemetry
  readonly #resumed: boolean
  /** Of counters. */
  readonly #attributes: Attributes
  /** Of every span. */
  readonly #place: Attributes
  readonly #tracing: Tracing | undefined
  readonly #own: StartedSpan | undefined
  /** Work that waits for a person is left hanging and never ends: its spans end with the run's. */
  readonly #open = new Set<SpanLike>()

  constructor(telemetry: Telemetry, run: ObservedRun) {
    this.#telemetry = telemetry
    this.#resumed = run.resumed
    this.#attributes = { 'holdfast.program': run.program }
    this.#place = placeOf(run)
    this.count(run.resumed ? 'holdfast.resume.attempts' : 'holdfast.runs.started')
    const own = telemetry.tracing?.start(planRun(run), this.#place, undefined, parseTrace(run.begunIn))
    if (own === undefined || !isTraced(own.span)) return
    this.#own = own
    this.#tracing = telemetry.tracing
    this.trace = formatTrace(own.span)
  }

  count(name: CounterName, by = 1): void {
    this.#telemetry.count(name, by, this.#attributes)
  }

  within<Result>(work: () => Result): Result {
    if (this.#tracing === undefined) return work()
    return this.#tracing.run(this.#own?.context, work)
  }

  step<Result>(
    path: string,
    attempt: number,
    work: () => Result | Promise<Result>,
    plan?: () => SpanPlan | undefined,
    isLeft?: () => boolean,
  ): Result | Promise<Result> {
    if (this.#tracing === undefined) return work()
    const own = plan ? plan() : { name: `step ${stepName(path)}`, kind: 'internal' as const, attributes: {} }
    if (own === undefined) return work()
    const attributes = { 'holdfast.step': path, 'holdfast.attempt': attempt, ...own.attributes }
    return this.span({ ...own, attributes, isLeft }, async () => work())
  }

  async span<Result>(plan: SpanPlan, work: (span: OpenSpan) => Promise<Result>): Promise<Result> {
    const begun = plan.measured === undefined ? 0 : performance.now()
    const tracing = this.#tracing
    const started = tracing?.start(plan, this.#place, this.#own?.context)
    if (started) this.#open.add(started.span)
    try {
      const result = await (tracing && started
        ? tracing.run(started.context, () => work(openSpan(started.span, tracing.recordContent, plan)))
        : work(NO_SPAN))
      this.#measure(plan, begun)
      if (started) noteResult(plan, result, started.span, tracing?.recordContent ?? false)
      return result
    } catch (error) {
      this.#measure(plan, begun, error)
      if (started) interrupt(started.span, error, plan)
      throw error
    } finally {
      // Ended with the run, it is over.
      if (started && this.#open.delete(started.span)) started.span.end()
    }
  }

  retried(step: string, attempt: number, error: { readonly name: string; readonly message: string }): void {
    this.count('holdfast.retries')
    if (this.#tracing === undefined) return
    const span = this.#tracing.active() ?? this.#own?.span
    span?.addEvent('holdfast.retry', {
      'holdfast.step': step,
      'holdfast.attempt': attempt,
      'exception.type': error.name,
      'exception.message': error.message,
    })
  }

  usage(call: ModelCall): void {
    const { figures, instruments } = this.#telemetry
    const { input, output, cached } = call
    const attributes = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': call.provider,
      'gen_ai.request.model': call.model,
      'gen_ai.response.model': call.actual ?? call.model,
    }
    figures.model(`${call.provider}/${call.model}`, call)
    this.#telemetry.count('holdfast.tokens.input', input, attributes)
    this.#telemetry.count('holdfast.tokens.output', output, attributes)
    this.#telemetry.count('holdfast.tokens.cached', cached, attributes)
    if (call.cost) this.#telemetry.count('holdfast.cost', call.cost, attributes)
    instruments?.tokens('input', input, attributes)
    instruments?.tokens('output', output, attributes)
  }

  ended(end: RunEnd, error?: unknown): void {
    const name = COUNTED[end]
    if (name !== undefined) this.count(name)
    if (end === 'lost' && isLeaseLoss(error)) this.count('holdfast.leases.lost')
    if (this.#resumed && WELL.has(end)) this.count('holdfast.resume.succeeded')
    const own = this.#own?.span
    if (own === undefined) return
    for (const span of this.#open) {
      span.setAttributes({ 'holdfast.suspended': true })
      span.end()
    }
    this.#open.clear()
    own.setAttributes({ 'holdfast.outcome': end })
    if (WRONG.has(end)) failSpan(own, error ?? new Error(`The run ended as ${end}.`))
    own.end()
  }

  #measure({ measured }: SpanPlan, begun: number, error?: unknown): void {
    if (measured === undefined) return
    const failed = error === undefined ? {} : { 'error.type': errorType(error) }
    this.#telemetry.instruments?.operation((performance.now() - begun) / 1000, { ...measured, ...failed })
  }
}

function openSpan(span: SpanLike, recordContent: boolean, plan: SpanPlan): OpenSpan {
  const note = (attributes: () => Attributes) => {
    // What was said may hold what JSON can't.
    if (recordContent) quietly(() => span.setAttributes(attributes()))
  }
  note(() => plan.content?.() ?? {})
  return { set: (attributes) => void span.setAttributes(attributes), content: note }
}

function noteResult(plan: SpanPlan, result: unknown, span: SpanLike, recordContent: boolean): void {
  if (recordContent) quietly(() => span.setAttributes(plan.result?.(result) ?? {}))
}

// Work that is abandoned because the run waits, stops or was cancelled did not fail.
function interrupt(span: SpanLike, error: unknown, { isLeft }: SpanPlan): void {
  if (isLeft ? isLeft() : isStop(error)) span.setAttributes({ 'holdfast.suspended': true })
  else failSpan(span, error)
}

function isLeaseLoss(error: unknown): boolean {
  return isHoldfastError(error) && (error.code === 'fenced' || error.code === 'conflict' || error.retryable)
}

function isStop(error: unknown): boolean {
  return isHoldfastError(error, 'cancelled') || (error instanceof Error && error.name === 'AbortError')
}

function placeOf({ thread, branch, run, tenant, kind, program }: ObservedRun): Attributes {
  return {
    'holdfast.tenant': tenant,
    'holdfast.thread': thread,
    'holdfast.branch': branch,
    'holdfast.run': run,
    ...(kind === 'agent' ? { 'gen_ai.conversation.id': thread, 'gen_ai.agent.name': program } : {}),
  }
}

function planRun({ kind, program, version, attempt, resumed }: ObservedRun): SpanPlan {
  const attributes = {
    'holdfast.program': program,
    'holdfast.version': version,
    'holdfast.attempt': attempt,
    'holdfast.resumed': resumed,
  }
  if (kind !== 'agent') return { name: `run ${program}`, kind: 'internal', attributes }
  const conventional = { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.version': version }
  return { name: `invoke_agent ${program}`, kind: 'internal', attributes: { ...attributes, ...conventional } }
}

/** `charge` from `2:charge[0]`, `send` from `0:node/send[abc]`: there should be few span names. */
function stepName(path: string): string {
  const last = path.slice(path.lastIndexOf('/') + 1)
  return last.replace(/^\d+:/, '').replace(/\[.*\]$/, '')
}
