import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import { InvalidProgramError } from '../core/errors.js'
import { parseRetention, type Retention } from '../core/retention.js'
import type { RetryPolicy } from '../runtime/step/context.js'
import { checkProgramName, checkRange, checkVersion } from '../runtime/program/check-program.js'
import { checkPolicy } from '../runtime/program/step-policy.js'
import type { Document } from './document.js'
import { checkRate } from './rate.js'
import type { Sink } from './sink.js'
import type { AnyBatchStage, BatchStage, SplitStage } from './stage.js'

/** Where documents come from: read again for every pass, so that several processes and later runs see all of them. */
export type Source = AsyncIterable<Document> | Iterable<Document> | (() => AsyncIterable<Document> | Iterable<Document>)

/** What a pipeline consists of: stages that fit together, and a sink for what the last one returns. */
export interface PipelineOptions<Stages, Item> {
  readonly name: string
  /** A semantic version. Documents that were finished under an incompatible version are processed again. */
  readonly version: string
  /** The versions whose results this one accepts, as a semver range. Default: those with the same major. */
  readonly compatibleWith?: string
  readonly source: Source
  /** First a stage that splits a document into chunks, then up to four that work on batches of them. */
  readonly stages: Stages
  readonly sink: Sink<Item>
  /** How many batches the stages and the sink work on at once, in each process. Default 4. */
  readonly concurrency?: number
  /**
   * How many more documents are started, so that there is work while the records of others are written. More of them
   * cost memory, and a crash can interrupt more batches, which are then processed again. Default: `concurrency` plus 4.
   */
  readonly ahead?: number
  /** How many chunks are processed and committed together. Default 32. */
  readonly batch?: number
  /** How often a failing batch, or a document that can't be read, is tried. Default: 3 attempts. */
  readonly retry?: RetryPolicy
  /**
   * How long the history of a document is kept after its last use. Default: what the store says, and 30 days if it says
   * nothing. Each run removes what is older, as workers and `hf.sweep` do. The document's outcome and its rows stay.
   */
  readonly retention?: Retention
}

/** What a pipeline does, checked. */
export interface PipelinePlan {
  readonly name: string
  readonly version: string
  readonly compatibleWith: string | undefined
  readonly source: Source
  readonly split: SplitStage<unknown>
  readonly stages: readonly AnyBatchStage[]
  readonly sink: Sink<unknown>
  readonly concurrency: number
  readonly ahead: number
  readonly batch: number
  readonly retry: RetryPolicy | undefined
  readonly retention: Retention | undefined
}

/** A declared pipeline, to be opened on a store with `openPipeline`. */
export interface Pipeline<Item = unknown> {
  readonly kind: 'pipeline'
  readonly plan: PipelinePlan
  /** Never present at runtime: carries the type. */
  readonly '~types'?: { readonly item: Item }
}

const DEFAULT_CONCURRENCY = 4
const DEFAULT_BATCH = 32
const RESERVED = new Set(['batch', 'remove', 'setup'])

const OPTIONS: OptionNames<PipelineOptions<readonly unknown[], unknown>> = {
  name: true,
  version: true,
  compatibleWith: true,
  source: true,
  stages: true,
  sink: true,
  concurrency: true,
  ahead: true,
  batch: true,
  retry: true,
  retention: true,
}

const SPLIT_STAGE: OptionNames<SplitStage<unknown>> = { name: true, split: true }
const BATCH_STAGE: OptionNames<AnyBatchStage> = {
  name: true,
  run: true,
  effect: true,
  reconcile: true,
  retry: true,
  timeoutMs: true,
  rate: true,
  tokens: true,
}

/** Declares how documents become rows of a sink. Everything that can't work is refused here, before anything runs. */
export function pipeline<Item>(options: PipelineOptions<readonly [SplitStage<Item>], Item>): Pipeline<Item>
export function pipeline<Chunk, Item>(
  options: PipelineOptions<readonly [SplitStage<Chunk>, BatchStage<Chunk, Item>], Item>,
): Pipeline<Item>
export function pipeline<Chunk, A, Item>(
  options: PipelineOptions<readonly [SplitStage<Chunk>, BatchStage<Chunk, A>, BatchStage<A, Item>], Item>,
): Pipeline<Item>
export function pipeline<Chunk, A, B, Item>(
  options: PipelineOptions<
    readonly [SplitStage<Chunk>, BatchStage<Chunk, A>, BatchStage<A, B>, BatchStage<B, Item>],
    Item
  >,
): Pipeline<Item>
export function pipeline<Chunk, A, B, C, Item>(
  options: PipelineOptions<
    readonly [SplitStage<Chunk>, BatchStage<Chunk, A>, BatchStage<A, B>, BatchStage<B, C>, BatchStage<C, Item>],
    Item
  >,
): Pipeline<Item>
export function pipeline<Item>(options: PipelineOptions<readonly unknown[], Item>): Pipeline<Item> {
  checkOptionNames('pipeline()', options, OPTIONS)
  const { name, version, compatibleWith, source, sink, concurrency = DEFAULT_CONCURRENCY, retry } = options
  const { batch = DEFAULT_BATCH, ahead = concurrency + 4, retention } = options
  checkProgramName(name)
  checkVersion(name, version)
  checkRange(name, compatibleWith)
  const refuse = (field: string, problem: string, remedy: string) =>
    new InvalidProgramError(`Pipeline "${name}": ${field} ${problem}.`, field, remedy)
  if (!isSource(source))
    throw refuse('source', 'yields no documents', 'Pass an iterable, or a function that makes one.')
  for (const [field, value, least, most] of [
    ['concurrency', concurrency, 1, 1000],
    ['ahead', ahead, 0, 10_000],
    ['batch', batch, 1, 10_000],
  ] as const) {
    if (Number.isSafeInteger(value) && value >= least && value <= most) continue
    throw refuse(
      field,
      `must be a whole number from ${least} to ${most}, not ${String(value)}`,
      'Correct it or leave it out.',
    )
  }
  if (retention !== undefined) parseRetention(retention)
  checkPolicy({ ...(retry && { retry }) }, `pipeline "${name}"`)
  const [split, ...stages] = checkStages(name, options.stages)
  checkSink(sink as Sink<unknown>, refuse)
  const plan: PipelinePlan = {
    name,
    version,
    compatibleWith,
    source,
    split: split as SplitStage<unknown>,
    stages: stages as readonly AnyBatchStage[],
    sink: sink as Sink<unknown>,
    concurrency,
    ahead,
    batch,
    retry,
    retention,
  }
  return { kind: 'pipeline', plan }
}

function checkStages(name: string, stages: unknown): readonly unknown[] {
  const refuse = (field: string, problem: string, remedy: string) =>
    new InvalidProgramError(`Pipeline "${name}": ${field} ${problem}.`, field, remedy)
  if (!Array.isArray(stages) || stages.length === 0 || stages.length > 5) {
    throw refuse('stages', 'must be a list of 1 to 5 stages', 'Begin with one that splits documents into chunks.')
  }
  const names = new Set<string>()
  for (const [i, stage] of (stages as readonly Partial<AnyBatchStage & SplitStage<unknown>>[]).entries()) {
    const field = `stages[${i}]`
    const known = stage?.name
    if (typeof known !== 'string' || !/^[^/[\]\p{Cc}]{1,100}$/u.test(known) || RESERVED.has(known)) {
      throw refuse(`${field}.name`, 'must be 1 to 100 printable characters without slashes and brackets', NAME_REMEDY)
    }
    if (names.has(known)) throw refuse(`${field}.name`, `"${known}" is used twice`, 'Give each stage its own name.')
    names.add(known)
    // The instance of a class may have fields of its own.
    if (Object.getPrototypeOf(stage) === Object.prototype)
      checkOptionNames(`stage "${known}"`, stage, i === 0 ? SPLIT_STAGE : BATCH_STAGE)
    const method = i === 0 ? 'split' : 'run'
    if (typeof stage[method] !== 'function') {
      throw refuse(`${field}.${method}`, 'must be a function', 'The first stage splits, the others run on batches.')
    }
    if (i === 0) continue
    const { effect, reconcile, retry, timeoutMs } = stage
    const policy = { effect, reconcile, retry, timeoutMs }
    const given = Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined))
    checkPolicy(given, `pipeline "${name}", stage "${known}"`)
    checkRate(`${field}.rate`, stage.rate)
  }
  return stages
}

const NAME_REMEDY = `Choose another name; ${[...RESERVED].map((name) => `"${name}"`).join(', ')} are taken.`

function checkSink(
  sink: Partial<Sink<unknown>> | undefined,
  refuse: (field: string, problem: string, remedy: string) => InvalidProgramError,
): void {
  for (const method of ['write', 'remove'] as const) {
    if (typeof sink?.[method] === 'function') continue
    throw refuse(`sink.${method}`, 'must be a function', 'Pass { write(rows), remove({ document, keepHash }) }.')
  }
}

function isSource(source: unknown): source is Source {
  if (typeof source === 'function') return true
  return typeof source === 'object' && source !== null && (Symbol.asyncIterator in source || Symbol.iterator in source)
}
