import type { GraphConfig } from './compiled-graph.js'

/** What a hosted graph is asked to do: the input of its program. Plain JSON. */
export interface GraphRequest {
  readonly input?: unknown
  readonly command?: {
    readonly resume?: unknown
    readonly update?: unknown
    readonly goto?: unknown
  }
  /** Where to continue from; default: the newest checkpoint. */
  readonly checkpoint?: string
  /** Takes back what this run did before anything starts. */
  readonly rollback?: string
  readonly config?: GraphConfig
  readonly context?: unknown
  readonly metadata?: Readonly<Record<string, unknown>>
  /** LangGraph's own names of what is streamed. Default: values. */
  readonly modes?: readonly string[]
  readonly subgraphs?: boolean
  readonly interruptBefore?: readonly string[] | '*'
  readonly interruptAfter?: readonly string[] | '*'
  /** Who asked: the subject of the token. */
  readonly by?: string
  readonly durability?: 'sync' | 'async' | 'exit'
}

/** What determines where a graph runs. Anyone who could choose it could run on somebody else's thread. */
const OURS = new Set([
  'thread_id',
  'run_id',
  'graph_id',
  'assistant_id',
  'langgraph_auth_user',
  'langgraph_auth_user_id',
])

/** The config of a request without what is not for a client to set. */
export function readConfig({ config = {}, context, interruptBefore, interruptAfter, durability }: GraphRequest) {
  const { configurable = {}, tags, recursion_limit: limit } = config
  const own = Object.entries(configurable).filter(
    ([name]) => !OURS.has(name) && !name.startsWith('__') && !name.startsWith('checkpoint'),
  )
  return {
    configurable: Object.fromEntries(own),
    options: {
      ...(Array.isArray(tags) ? { tags: tags as unknown[] } : {}),
      ...(typeof limit === 'number' ? { recursionLimit: limit } : {}),
      ...(context === undefined || context === null ? {} : { context }),
      ...(interruptBefore === undefined ? {} : { interruptBefore }),
      ...(interruptAfter === undefined ? {} : { interruptAfter }),
      // What a node did is recorded before the next one begins, as in every Holdfast program.
      durability: durability ?? 'sync',
    },
  }
}

/** A command as LangGraph knows it, by its mark: the class may be that of another copy. */
export async function toCommand({ resume, update, goto }: NonNullable<GraphRequest['command']>): Promise<object> {
  return {
    lg_name: 'Command',
    lc_direct_tool_output: true,
    ...(resume === undefined ? {} : { resume }),
    ...(update === undefined || update === null ? {} : { update }),
    ...(goto === undefined || goto === null ? {} : { goto: await toGoto(goto) }),
  }
}

async function toGoto(goto: unknown): Promise<unknown> {
  const all: readonly unknown[] = Array.isArray(goto) ? goto : [goto]
  if (all.every((one) => typeof one === 'string')) return all
  const { Send } = await import('@langchain/langgraph')
  return all.map((one) => {
    const { node, input } = (one ?? {}) as { readonly node?: unknown; readonly input?: unknown }
    return typeof one === 'string' ? one : new Send(String(node), input)
  })
}
