import { hash as digestOf } from 'node:crypto'
import { InvalidValueError, isHoldfastError } from '../../core/errors.js'
import type { SqlSession } from '../../log/contract.js'
import { abortedBy } from '../../core/async/lazy-abort.js'
import { attempt, parseRetry, retryDelayMs } from '../../runtime/step/attempt/attempt.js'
import type { Context } from '../../runtime/step/context.js'
import { hashValue } from '../../runtime/step/record/hash-value.js'
import type { PipelinePlan } from '../pipeline.js'
import type { Row } from '../sink.js'
import { type AnyBatchStage, estimateAll, type StageResult } from '../stage.js'
import type { DocumentInput, DocumentWork } from './document-work.js'

interface Prepared {
  readonly items: readonly unknown[]
  readonly tokens: number
}

/** The chunks that are processed and committed together. */
export class BatchUnit {
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
  async #recordStage(stage: AnyBatchStage, items: readonly unknown[]): Promise<Prepared> {
    const { effect = 'read', reconcile, timeoutMs, retry = this.#plan.retry } = stage
    const limit = this.#work.limitOf(stage)
    const estimate = estimateAll(stage, items)
    const recorded = await this.#work.seat.use(this.#ctx.abortSignal, async () => {
      await limit.pass(estimate, this.#ctx.abortSignal)
      let calls = 0
      const found = await this.#ctx.step<StageResult<unknown>>(
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
      return found
    })
    return this.#readRecorded(stage, recorded, items)
  }

  /** What a stage returned, or what a person said that it did. */
  async #readRecorded(
    stage: AnyBatchStage,
    recorded: StageResult<unknown>,
    items: readonly unknown[],
  ): Promise<Prepared> {
    try {
      return readResult(stage, recorded, items)
    } catch (error) {
      if (!isHoldfastError(error, 'invalid-value')) throw error
      // It happened and is never repeated: with an answer that can't be used, the document would never be finished.
      const question = { stage: stage.name, batch: this.#number, items: items.length, problem: error.message }
      const given = await this.#ctx.pause<readonly unknown[]>(question, {
        key: `${stage.name} ${this.#number}`,
        jsonSchema: { type: 'array', minItems: items.length, maxItems: items.length },
      })
      return readResult(stage, given, items)
    }
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
