import type { Reconciled, RetryPolicy } from '../runtime/step/context.js'
import type { LoadedDocument } from './document.js'
import type { Rate } from './rate.js'

/** What a stage receives in addition to its items. */
export interface StageContext {
  readonly document: LoadedDocument
  /** Which batch of the document this is, from 0. */
  readonly batch: number
  /** The same for this batch of this content whenever it is retried: pass it to the service that is called. */
  readonly idempotencyKey: string
  /** Aborted when the pipeline stops, or when another process takes over the document. */
  readonly abortSignal: AbortSignal
}

/**
 * Splits a document into chunks. Must return the same chunks for the same content: it is called again after a crash.
 */
export interface SplitStage<Chunk> {
  readonly name: string
  readonly split: (
    document: LoadedDocument,
  ) => Iterable<Chunk> | AsyncIterable<Chunk> | Promise<Iterable<Chunk> | AsyncIterable<Chunk>>
}

/** What a stage returns: as many items as it was given, in the same order, and what they cost if that is known. */
export type StageResult<Out> = readonly Out[] | { readonly items: readonly Out[]; readonly tokens?: number }

/** Does something with a batch of items, such as embedding them. */
export interface BatchStage<In, Out> {
  readonly name: string
  readonly run: (items: readonly In[], context: StageContext) => StageResult<Out> | Promise<StageResult<Out>>
  /**
   * What the stage does to the outside world. Default 'read': a batch that was not committed when the process died is
   * repeated. Results of 'reconcilable' and 'once' stages are recorded separately before the batch continues.
   */
  readonly effect?: 'read' | 'idempotent' | 'reconcilable' | 'once'
  /** For 'reconcilable': asks the service about the batch with this idempotency key. */
  readonly reconcile?: (
    key: string,
    items: unknown,
  ) => Reconciled<StageResult<Out>> | Promise<Reconciled<StageResult<Out>>>
  /** How often a failing batch is tried. Default: that of the pipeline. */
  readonly retry?: RetryPolicy
  /** How long one call may take, in milliseconds. Default: no limit. */
  readonly timeoutMs?: number
  /** At most this many calls and tokens per minute, in this process. */
  readonly rate?: Rate
  /** Roughly how many tokens an item has, for `rate` and the report. Default: a quarter of the length of its text. */
  readonly tokens?: (item: In) => number
}

/** A stage without its types: how it is run. */
export type AnyBatchStage = BatchStage<unknown, unknown>

/** About how many tokens the items have: what the stage says, or a quarter of their texts. */
export function estimateAll(stage: AnyBatchStage, items: readonly unknown[]): number {
  return items.reduce((sum: number, item) => sum + estimateItem(stage, item), 0)
}

function estimateItem({ tokens }: AnyBatchStage, item: unknown): number {
  if (tokens) return tokens(item)
  const text = typeof item === 'string' ? item : (item as { readonly text?: unknown } | null)?.text
  return typeof text === 'string' ? Math.ceil(text.length / 4) : 0
}
