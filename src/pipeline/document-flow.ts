import { hash as digestOf } from 'node:crypto'
import { DEFAULT_PIPELINE_TTL_MS } from '../core/retention.js'
import type { Clock } from '../core/clock.js'
import { HoldfastError, InvalidValueError } from '../core/errors.js'
import type { SqlSession } from '../log/contract.js'
import { abortedBy } from '../runtime/run/run-abort.js'
import { attempt, parseRetry, retryDelayMs } from '../runtime/step/attempt.js'
import type { Context } from '../runtime/step/context.js'
import { flow, type FlowProgram } from '../runtime/program/flow.js'
import { hashValue } from '../runtime/step/hash-value.js'
import type { LoadedDocument } from './document.js'
import type { PipelinePlan } from './pipeline.js'
import type { RateLimit } from './rate.js'
import type { Row } from './sink.js'
import type { Seat } from './slots.js'
import { type AnyBatchStage, estimateAll, type StageResult } from './stage.js'

/**
 * The input of a document's thread. The content itself is not stored: it stays in its source, and the hash identifies
 * it.
 */
export interface DocumentInput {
  readonly document: string
  readonly hash: string
  /** What is asked for when the document is gone from its source. */
  readonly remove?: true
}

/** What the process that runs a document passes along. */
export interface DocumentWork {
  readonly document: LoadedDocument
  readonly clock: Clock
  /** Where the document waits until there is room for its next call. */
  readonly seat: Seat
  limitOf(stage: AnyBatchStage): RateLimit
  /** Told when the document is worked on, and not only its recorded outcome returned. */
  begun(): void
  /** Called for every batch that is committed, including those from before a crash. */
  committed(chunks: number): void
}

export interface DocumentResult {
  readonly chunks: number
  readonly tokens: number
  /** The run was begun before and interrupted. */
  readonly resumed: boolean
}

interface Prepared {
  readonly items: readonly unknown[]
  readonly tokens: number
}

/** The program of a document's thread: one record per batch, made together with its rows if the sink allows it. */
export function documentFlow(plan: PipelinePlan): FlowProgram<DocumentInput, DocumentResult> {
  const { name, version, compatibleWith, retry, retention, batch } = plan
  const options = {
    name,
    version,
    ...(compatibleWith && { compatibleWith }),
    ...(retry && { retry }),
    ...(retention && { retention }),
    // The document, and those who wait for it: whoever continues reads it from the source again.
    transientContext: true as const,
  }
  const program = flow(options, async (ctx: Context<DocumentInput>, input: DocumentInput): Promise<DocumentResult> => {
    if (input.remove) {
      await remove(ctx, plan, input.document)
      return { chunks: 0, tokens: 0, resumed: false }
    }
    const work = ctx.context as DocumentWork
    work.begun()
    checkContent(work, input)
    const chunks = await splitDocument(plan, work.document)
    const batches = Math.max(1, Math.ceil(chunks.length / batch))
    let tokens = 0
    for (let i = 0; i < batches; i++) {
      const items = chunks.slice(i * batch, (i + 1) * batch)
      const unit = new BatchUnit(ctx, plan, work, { items, number: i, isLast: i === batches - 1 })
      tokens += await unit.commit()
      work.committed(items.length)
    }
    return { chunks: chunks.length, tokens, resumed: ctx.attempt > 1 }
  })
  return { ...program, plan: { ...program.plan, defaultTtlMs: DEFAULT_PIPELINE_TTL_MS } }
}

/** The content is no longer what this run began with: the run is given up, and the document is started over. */
export const STALE = 'StaleDocumentError'

function checkContent({ document }: DocumentWork, input: DocumentInput): void {
  if (document.id === input.document && document.hash === input.hash) return
  const error = new HoldfastError('incompatible', `Document "${input.document}" changed while it was processed.`, {
    data: { document: input.document },
    remedy: 'Run the pipeline again: it starts over with what the document says now.',
  })
  error.name = STALE
  throw error
}

async function remove(ctx: Context<DocumentInput>, { sink }: PipelinePlan, document: string): Promise<void> {
  if (sink.transactional) {
    await ctx.transaction('remove', (sql) => sink.remove({ document }, sql))
  } else {
    await ctx.step('remove', () => sink.remove({ document }))
  }
}

async function splitDocument({ split }: PipelinePlan, document: LoadedDocument): Promise<readonly unknown[]> {
  const made: unknown = await split.split(document)
  const isIterable =
    typeof made === 'object' && made !== null && (Symbol.iterator in made || Symbol.asyncIterator in made)
  if (!isIterable) {
    throw new InvalidValueError(
      `stage "${split.name}"`,
      `must be a list of chunks, not ${made === null ? 'null' : typeof made}`,
      'Return an array or another iterable.',
    )
  }
  const chunks: unknown[] = []
  for await (const chunk of made as Iterable<unknown> | AsyncIterable<unknown>) chunks.push(chunk)
  return chunks
}

/** The chunks that are processed and committed together. */
class BatchUnit {
  readonly #ctx: Context<DocumentInput>
  readonly #plan: PipelinePlan
  readonly #work: DocumentWork
  readonly #items: readonly unknown[]
  readonly #number: number
  readonly #isLast: boolean

  constructor(
    ctx: Context<DocumentInput>,
    plan: PipelinePlan,
    work: DocumentWork,
    batch: { readonly items: readonly unknown[]; readonly number: number; readonly isLast: boolean },
  ) {
    this.#ctx = ctx
    this.#plan = plan
    this.#work = work
    this.#items = batch.items
    this.#number = batch.number
    this.#isLast = batch.isLast
  }

  /** Processes the batch unless it is recorded, and returns how many tokens it took. */
  async commit(): Promise<number> {
    const { sink, stages, retry } = this.#plan
    const recorded = stages.findLastIndex(({ effect }) => effect === 'once' || effect === 'reconcilable') + 1
    let before: Prepared = { items: this.#items, tokens: 0 }
    for (const stage of stages.slice(0, recorded)) {
      const { items, tokens } = await this.#recordStage(stage, before.items)
      before = { items, tokens: before.tokens + tokens }
    }
    // What was prepared is kept while the sink is retried: an embedding is paid for once.
    let prepared: Promise<Prepared> | undefined
    const prepare = (): Promise<Prepared> => {
      prepared ??= this.#runStages(stages.slice(recorded), before).catch((error: unknown) => {
        prepared = undefined
        throw error
      })
      return prepared
    }
    const { id, hash } = this.#work.document
    const removal = { document: id, keepHash: hash }
    const options = { key: this.#number, input: hashValue(digestable(this.#items)), ...(retry && { retry }) }
    if (sink.transactional) {
      const write = async (sql: SqlSession, { items, tokens }: Prepared) => {
        if (items.length > 0) await sink.write(this.#rows(items), sql)
        if (this.#isLast) await sink.remove(removal, sql)
        return tokens
      }
      return this.#ctx.transaction('batch', { ...options, prepare }, write)
    }
    // No effect that could be repeated by mistake: a row replaces that of the same id, whenever it is written again.
    return this.#ctx.step('batch', options, async () => {
      const { items, tokens } = await prepare()
      const rows = this.#rows(items)
      await this.#work.seat.use(this.#ctx.abortSignal, async () => {
        if (rows.length > 0) await sink.write(rows)
        if (this.#isLast) await sink.remove(removal)
      })
      return tokens
    })
  }

  // Slot and rate are waited for before the step: a crash while an effect is merely waiting must not leave it in doubt.
  #recordStage(stage: AnyBatchStage, items: readonly unknown[]): Promise<Prepared> {
    const { effect = 'read', reconcile, timeoutMs, retry = this.#plan.retry } = stage
    const limit = this.#work.limitOf(stage)
    const estimate = estimateAll(stage, items)
    return this.#work.seat.use(this.#ctx.abortSignal, async () => {
      await limit.pass(estimate, this.#ctx.abortSignal)
      let calls = 0
      const prepared = await this.#ctx.step<Prepared>(
        stage.name,
        {
          key: this.#number,
          input: items,
          effect,
          idempotencyKey: this.#keyOf(stage),
          ...(retry && { retry }),
          ...(timeoutMs && { timeoutMs }),
          ...(reconcile && {
            reconcile: async (key, input) => {
              const said = await reconcile(key, input)
              return said.outcome === 'executed' ? { ...said, result: readResult(stage, said.result, items) } : said
            },
          }),
        },
        async ({ abortSignal }) => {
          if (calls++ > 0) limit.charge(estimate)
          return this.#call(stage, items, abortSignal)
        },
      )
      // It was recorded.
      if (calls === 0) limit.refund(estimate)
      return prepared
    })
  }

  async #runStages(stages: readonly AnyBatchStage[], before: Prepared): Promise<Prepared> {
    let { items, tokens } = before
    if (items.length === 0) return before
    for (const stage of stages) {
      const result = await this.#try(stage, items)
      items = result.items
      tokens += result.tokens
    }
    return { items, tokens }
  }

  // The stage's own patience: the record that is made afterwards has the pipeline's. The time limit covers the call:
  // waiting for a slot, or for the rate limit, is not the service's fault.
  async #try(stage: AnyBatchStage, items: readonly unknown[]): Promise<Prepared> {
    const { clock, seat } = this.#work
    const { abortSignal: run } = this.#ctx
    const { name: step, timeoutMs } = stage
    const backoff = parseRetry(stage.retry ?? { attempts: 1 })
    const call = ({ signal }: { readonly signal: AbortSignal }) => this.#call(stage, items, signal)
    for (let tried = 1; ; tried++) {
      try {
        return await seat.use(run, async () => {
          await this.#work.limitOf(stage).pass(estimateAll(stage, items), run)
          return attempt(call, { step, timeoutMs, run: abortedBy(run), clock })
        })
      } catch (error) {
        run.throwIfAborted()
        if (tried >= backoff.attempts || !backoff.retryIf(error)) throw error
        await clock.sleep(retryDelayMs(backoff, tried, Math.random), run)
      }
    }
  }

  async #call(stage: AnyBatchStage, items: readonly unknown[], abortSignal: AbortSignal): Promise<Prepared> {
    const { document } = this.#work
    const idempotencyKey = this.#keyOf(stage)
    const result = await stage.run(items, { document, batch: this.#number, idempotencyKey, abortSignal })
    return readResult(stage, result, items, stage.tokens ? estimateAll(stage, items) : 0)
  }

  #keyOf(stage: AnyBatchStage): string {
    const { id, hash } = this.#work.document
    return digest(this.#plan.name, id, hash, stage.name, String(this.#number))
  }

  #rows(items: readonly unknown[]): readonly Row<unknown>[] {
    const { id: document, hash, metadata } = this.#work.document
    const first = this.#number * this.#plan.batch
    return items.map((item, i) => {
      const position = first + i
      return { id: digest(this.#plan.name, document, hash, String(position)), document, hash, position, item, metadata }
    })
  }
}

/** Checks what a stage returned. A different count would put vectors next to the wrong texts. */
function readResult(
  { name }: AnyBatchStage,
  result: StageResult<unknown>,
  given: readonly unknown[],
  estimate = 0,
): Prepared {
  const { items, tokens = estimate } = (Array.isArray(result) ? { items: result } : (result ?? {})) as {
    readonly items?: unknown
    readonly tokens?: unknown
  }
  const field = `stage "${name}"`
  const remedy = 'Return one item for each that the stage was given, in the same order.'
  if (!Array.isArray(items)) throw new InvalidValueError(field, 'must be a list of items', remedy)
  if (items.length !== given.length) {
    throw new InvalidValueError(field, `has ${items.length} items for a batch of ${given.length}`, remedy)
  }
  if (typeof tokens !== 'number' || !(tokens >= 0) || !Number.isFinite(tokens)) {
    throw new InvalidValueError(
      `${field}, tokens`,
      `must be a count, not ${String(tokens)}`,
      'Leave it out if unknown.',
    )
  }
  return { items, tokens }
}

// What can't be stored, such as a class instance, is compared as JSON: chunks only need to be told apart here.
function digestable(items: readonly unknown[]): unknown {
  return JSON.stringify(items, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))
}

function digest(...parts: readonly string[]): string {
  return digestOf('sha256', JSON.stringify(parts)).slice(0, 32)
}
