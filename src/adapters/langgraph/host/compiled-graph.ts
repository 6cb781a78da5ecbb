import type { BaseCheckpointSaver, BaseStore } from '@langchain/langgraph-checkpoint'
import { InvalidOptionError } from '../../../errors.js'

type Bag = Readonly<Record<string, unknown>>

/** What a config of LangGraph holds that is used here. */
export interface GraphConfig {
  readonly configurable?: Bag
  readonly [option: string]: unknown
}

/** A state of a graph, as LangGraph tells it. */
export interface Snapshot {
  readonly values: unknown
  readonly next: readonly string[]
  readonly config: GraphConfig
  readonly metadata?: Bag
  readonly createdAt?: string
  readonly parentConfig?: GraphConfig
  readonly tasks: readonly SnapshotTask[]
}

export interface SnapshotTask {
  readonly id: string
  readonly name: string
  readonly error?: unknown
  readonly interrupts: readonly { readonly id?: string; readonly value?: unknown }[]
  readonly state?: Snapshot | GraphConfig
}

/** The part of a compiled graph that is used: whichever copy of LangGraph made it. */
export interface CompiledGraph {
  readonly lg_is_pregel: boolean
  readonly channels?: Readonly<Record<string, unknown>>
  stream(input: unknown, config: GraphConfig): Promise<AsyncIterable<unknown>>
  getState(config: GraphConfig, options?: { readonly subgraphs?: boolean }): Promise<Snapshot>
  getStateHistory(
    config: GraphConfig,
    options?: { readonly limit?: number; readonly before?: GraphConfig; readonly filter?: Bag },
  ): AsyncIterable<Snapshot>
  updateState(config: GraphConfig, values: unknown, asNode?: string): Promise<GraphConfig>
  getGraphAsync?(config: { readonly xray?: boolean | number }): Promise<{ toJSON(): object }>
  getSubgraphsAsync?(namespace?: string, recurse?: boolean): AsyncIterable<readonly [string, CompiledGraph]>
}

/** The compiled graph of what a module exports. */
export function readGraph(value: unknown, name: string): CompiledGraph {
  if (isCompiled(value)) return value
  const inner = (value as { readonly graph?: unknown } | null)?.graph
  if (isCompiled(inner)) return inner
  if (isBuilder(value)) return value.compile()
  throw new InvalidOptionError(
    'graph',
    `must be a graph of LangGraph.js; "${name}" is not`,
    'Pass what compile() returned, or a StateGraph.',
  )
}

function isCompiled(value: unknown): value is CompiledGraph {
  return typeof value === 'object' && value !== null && (value as { lg_is_pregel?: unknown }).lg_is_pregel === true
}

function isBuilder(value: unknown): value is { compile(): CompiledGraph } {
  const { compile, addNode } = (value ?? {}) as { readonly compile?: unknown; readonly addNode?: unknown }
  return typeof compile === 'function' && typeof addNode === 'function'
}

/** The same graph on another checkpointer and store, made as LangGraph itself makes a graph with another config. */
export function withSaver(graph: CompiledGraph, checkpointer: BaseCheckpointSaver, store: BaseStore): CompiledGraph {
  const Constructor = graph.constructor as new (fields: object) => CompiledGraph
  return new Constructor({ ...graph, checkpointer, store })
}

/** Where a config leads. */
export function placeOf({ configurable = {} }: GraphConfig): {
  readonly thread: string
  readonly ns: string
  readonly id: string | undefined
} {
  const { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } = configurable
  return { thread: String(thread), ns: String(ns ?? ''), id: id === undefined ? undefined : String(id) }
}
