import type { ServerProgram } from '../../options.js'

type Bag = Readonly<Record<string, unknown>>

/** Where a state of a graph is, as LangGraph's clients name it. */
export interface GraphCheckpoint {
  readonly thread_id: string
  readonly checkpoint_ns: string
  readonly checkpoint_id: string
  readonly checkpoint_map?: unknown
}

/** A state of a graph as LangGraph's clients read it. */
export interface GraphState {
  readonly values: Bag
  readonly next: readonly string[]
  readonly checkpoint: GraphCheckpoint
  readonly metadata: Bag
  readonly created_at: string | null
  readonly parent_checkpoint: GraphCheckpoint | null
  readonly tasks: readonly {
    readonly id: string
    readonly name: string
    readonly error: string | null
    readonly interrupts: readonly { readonly id?: string; readonly value?: unknown }[]
    readonly checkpoint: GraphCheckpoint | null
    readonly state: GraphState | null
  }[]
}

/** What a thread of a graph asks: the question behind one of its interrupts. */
export interface GraphAsk {
  readonly interrupt: string
  readonly node: string
  readonly value: unknown
  /** The state of the graph in which it asks. */
  readonly checkpoint: string | null
}

/** An item of the long-term memory of graphs. */
export interface StoreItem {
  readonly namespace: string[]
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly score?: number
}

/** The long-term memory of graphs, as far as clients reach it. */
export interface GraphStore {
  get(namespace: string[], key: string): Promise<StoreItem | null>
  put(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    index?: false | string[],
    options?: { readonly ttl?: number },
  ): Promise<void>
  delete(namespace: string[], key: string): Promise<void>
  search(
    prefix: string[],
    options: { filter?: Record<string, unknown>; query?: string; limit?: number; offset?: number },
  ): Promise<StoreItem[]>
  listNamespaces(options: {
    prefix?: string[]
    suffix?: string[]
    maxDepth?: number
    limit?: number
    offset?: number
  }): Promise<string[][]>
}

/** What the server asks a graph of LangGraph.js for, besides running it. Everything is plain JSON. */
export interface HostedGraph {
  /** Undefined: there is none yet. */
  state(
    tenant: string,
    thread: string,
    options?: { readonly checkpoint?: string; readonly ns?: string; readonly subgraphs?: boolean },
  ): Promise<GraphState | undefined>
  /** Newest first, of all branches. */
  history(
    tenant: string,
    thread: string,
    options: { readonly limit: number; readonly before?: string; readonly metadata?: Bag; readonly ns?: string },
  ): Promise<readonly GraphState[]>
  update(
    tenant: string,
    thread: string,
    change: {
      readonly values: unknown
      readonly asNode?: string
      readonly checkpoint?: string
      readonly ns?: string
    },
  ): Promise<{ readonly ns: string; readonly id: string | undefined }>
  /** Removes all states of a thread. */
  erase(tenant: string, thread: string): Promise<void>
  /** The long-term memory that its nodes are given. */
  store(tenant: string): GraphStore
  draw(xray: boolean | number): Promise<object>
  /** The names of the parts of its state. */
  keys(): readonly string[]
  subgraphs(namespace: string | undefined, recurse: boolean): Promise<Readonly<Record<string, readonly string[]>>>
}

/** The graph behind a program; undefined for programs of Holdfast's own. */
export function hostedOf(program: ServerProgram | undefined): HostedGraph | undefined {
  return (program as { readonly hosted?: HostedGraph } | undefined)?.hosted
}
