import type { Reconciled, RetryPolicy } from '../runtime/step/context.js'
import type { LoadedDocument } from './document.js'
import type { Rate } from './rate.js'

/** What a stage is handed beside its items. */
export interface StageContext {
  readonly document: LoadedDocument
  /** Which batch of the document this is, from 0. */
  readonly batch: number
  /** The same for this batch of this content whenever it is tried again: hand it to the service that is called. */
  readonly idempotencyKey: string
  /** Aborted when the pipeline stops, or when another process took the document over. */
  readonly abortSignal: AbortSignal
}

/** Makes chunks of a document. Must give the same chunks for the same content: after a crash it is asked again. */
export interface SplitStage<Chunk> {
  readonly name: string
  readonly split: (
    document: LoadedDocument,
  ) => Iterable<Chunk> | AsyncIterable<Chunk> | Promise<Iterable<Chunk> | AsyncIterable<Chunk>>
}

/** What a stage gives back: as many items as it was given, in the same order, and what they cost if that is known. */
export type StageResult<Out> = readonly Out[] | { readonly items: readonly Out[]; readonly tokens?: number }

/** Does something to a batch of items, such as embedding them. */
export interface BatchStage<In, Out> {
  readonly name: string
  readonly run: (items: readonly In[], context: StageContext) => StageResult<Out> | Promise<StageResult<Out>>
  /**
   * What the stage does to the outside world. Default 'read': a batch that was not committed when the process died is
   * done again. Results of 'reconcilable' and 'once' stages are recorded by themselves before the batch goes on.
   */
  readonly effect?: 'read' | 'idempotent' | 'reconcilable' | 'once'
  /** For 'reconcilable': asks the other side about the batch with this idempotency key. */
  readonly reconcile?: (
    key: string,
    items: unknown,
  ) => Reconciled<StageResult<Out>> | Promise<Reconciled<StageResult<Out>>>
  /** How often a failing batch is tried. Default: that of the pipeline. */
  readonly retry?: RetryPolicy
  /** How long one call may take, in milliseconds. Default: no limit. */
  readonly timeoutMs?: number
  /** At most so many calls and tokens a minute, in this process. */
  readonly rate?: Rate
  /** About how many tokens an item has, for `rate` and the report. Default: a quarter of the length of its text. */
  readonly tokens?: (item: In) => number
}

/** A stage whose types are forgotten: how it is run. */
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
