import type { Value } from '../codec/value.js'
import type { ThreadIdInput } from '../core/ids.js'
import { systemClock } from '../core/time/system-clock.js'
import type { Clock } from '../core/time/clock.js'
import { InvalidOptionError, InvalidProgramError } from '../core/errors.js'
import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import type { Capabilities } from '../log/contract.js'
import type { Log } from '../log/log.js'
import type { FlowProgram } from '../runtime/program/flow.js'
import type { Thread } from '../runtime/thread.js'
import { type DocumentRecord, Catalog } from './catalog.js'
import type { Pipeline, PipelinePlan } from './pipeline.js'
import { PipelineRun } from './run/pipeline-run.js'
import type { FailedDocument, PipelineProgress, PipelineReport } from './report.js'

/** The part of an open Holdfast that a pipeline uses. */
export interface PipelineHost {
  readonly capabilities: Capabilities
  log(id: ThreadIdInput): Promise<Log>
  sweep(options: {
    readonly metadata: Readonly<Record<string, string>>
    readonly signal: AbortSignal
    readonly retention?: { readonly ttlMs: number; readonly existing: boolean }
  }): Promise<{ readonly threads: number }>
  thread<Input, Output>(
    program: FlowProgram<Input, Output>,
    id: ThreadIdInput,
  ): Thread<Input, Readonly<Record<string, Value>>, Output>
}

/** How one call of `run` behaves. */
export interface PipelineRunOptions {
  /** Stops this process: batches in progress are given up, and nothing that was committed is lost. */
  readonly signal?: AbortSignal
  /** Called whenever something ended. */
  readonly onProgress?: (progress: PipelineProgress) => void
  /** Also retries documents that failed earlier and did not change. */
  readonly retryFailed?: boolean
  /** Removes the rows of documents that are recorded but no longer in the source. */
  readonly removeMissing?: boolean
  /** How long a document stays with a process without a heartbeat, in milliseconds. Default 10,000. */
  readonly leaseMs?: number
}

const RUN_OPTIONS: OptionNames<PipelineRunOptions> = {
  signal: true,
  onProgress: true,
  retryFailed: true,
  removeMissing: true,
  leaseMs: true,
}

/** What is recorded about a pipeline as a whole. */
export interface PipelineStatus {
  readonly status: 'running' | 'paused' | 'cancelled'
  readonly documents: number
  readonly done: number
  readonly failed: number
  readonly chunks: number
  readonly tokens: number
}

/** A pipeline on a store. Any number of processes may run it at the same time; each document goes to one of them. */
export class OpenPipeline {
  readonly #host: PipelineHost
  readonly #plan: PipelinePlan
  readonly #clock: Clock

  constructor(host: PipelineHost, plan: PipelinePlan, clock: Clock) {
    this.#host = host
    this.#plan = plan
    this.#clock = clock
  }

  /**
   * Processes every document that is new, changed or unfinished, and returns what was done. A document that fails is
   * recorded with its error and doesn't stop the others. After `pause` or `cancel`, call `resume` first.
   */
  async run(options: PipelineRunOptions = {}): Promise<PipelineReport> {
    checkOptionNames('the run of a pipeline', options, RUN_OPTIONS)
    return this.#run(options, () => true)
  }

  /** Processes the failed documents again, and only those. */
  async retryFailed(options: Omit<PipelineRunOptions, 'retryFailed' | 'removeMissing'> = {}): Promise<PipelineReport> {
    const { retryFailed: _, removeMissing: __, ...names } = RUN_OPTIONS
    checkOptionNames('retryFailed()', options, names)
    const failed = new Set((await this.failures()).map(({ document }) => document))
    return this.#run({ ...options, retryFailed: true }, (id) => failed.has(id), failed)
  }

  /** What is recorded, from any process. */
  async status(): Promise<PipelineStatus> {
    const catalog = await this.#catalog()
    const count = { documents: 0, done: 0, failed: 0, chunks: 0, tokens: 0 }
    for (const [, { status, chunks, tokens }] of catalog.all()) {
      count.documents++
      count[status]++
      count.chunks += chunks
      count.tokens += tokens
    }
    return { status: catalog.control.status, ...count }
  }

  /** The documents that failed, with the error of the last attempt. */
  async failures(): Promise<readonly FailedDocument[]> {
    const failed: FailedDocument[] = []
    for (const [document, { status, error }] of (await this.#catalog()).all()) {
      if (status === 'failed' && error) failed.push({ document, error })
    }
    return failed
  }

  /** What is recorded about one document. */
  async document(id: string): Promise<DocumentRecord | undefined> {
    return (await this.#catalog()).find(id)
  }

  /** Makes every process stop after the batches it has in progress. */
  async pause(options: { readonly by?: string } = {}): Promise<void> {
    await (await this.#catalog()).setControl({ status: 'paused', ...options })
  }

  /** Lets the pipeline be run again after `pause` or `cancel`. */
  async resume(options: { readonly by?: string } = {}): Promise<void> {
    await (await this.#catalog()).setControl({ status: 'running', ...options })
  }

  /** Like `pause`, but tells everyone that nobody intends to continue. What was committed stays. */
  async cancel(options: { readonly by?: string } = {}): Promise<void> {
    await (await this.#catalog()).setControl({ status: 'cancelled', ...options })
  }

  async #run(
    options: PipelineRunOptions,
    isWanted: (id: string) => boolean,
    only?: ReadonlySet<string>,
  ): Promise<PipelineReport> {
    this.#check(options)
    const catalog = await this.#catalog()
    await catalog.begin()
    return new PipelineRun(this.#host, this.#plan, catalog, this.#clock, {
      ...options,
      isWanted,
      isPartial: only !== undefined,
    }).run()
  }

  async #catalog(): Promise<Catalog> {
    return new Catalog(await this.#host.log(catalogId(this.#plan)), this.#plan)
  }

  #check({ leaseMs }: PipelineRunOptions): void {
    const { name, sink, source } = this.#plan
    if (sink.transactional && !this.#host.capabilities.transactions) {
      throw new InvalidProgramError(
        `The sink of pipeline "${name}" is transactional, but this backend has no transactions.`,
        'sink.transactional',
        'Use SQLite or Postgres, or a sink that upserts by id.',
      )
    }
    if (typeof source === 'object' && !(Symbol.asyncIterator in source) && !(Symbol.iterator in source)) {
      throw new InvalidProgramError(`The source of pipeline "${name}" yields nothing.`, 'source', 'Pass an iterable.')
    }
    if (leaseMs !== undefined && (!Number.isSafeInteger(leaseMs) || leaseMs < 1)) {
      throw new InvalidOptionError(
        'leaseMs',
        `must be a number of milliseconds, 1 or more, not ${leaseMs}`,
        'Pass for example 10000.',
      )
    }
  }
}

/** Opens a pipeline on a store. Nothing is read or written before one of its methods is called. */
export function openPipeline(
  host: PipelineHost,
  pipeline: Pipeline,
  options: { readonly clock?: Clock } = {},
): OpenPipeline {
  return new OpenPipeline(host, pipeline.plan, options.clock ?? systemClock())
}

function catalogId({ name }: PipelinePlan): ThreadIdInput {
  return { pipeline: name }
}
