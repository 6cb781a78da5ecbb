import { flow, type FlowProgram, type Holdfast, type PauseOptions } from '../../../index.js'
import { InvalidOptionError } from '../../../errors.js'
import type { GraphAsk, GraphState, HostedGraph } from '../../../server/index.js'
import { ADAPTER } from '../saver/names.js'
import { HoldfastSaver } from '../saver/saver.js'
import { HoldfastStore, type HoldfastStoreOptions } from '../store/store.js'
import { type CompiledGraph, placeOf, readGraph, withSaver } from './compiled-graph.js'
import type { GraphRequest } from './graph-request.js'
import { namespacesBelow } from './namespaces-below.js'
import { type PendingInterrupt, pendingInterrupts } from './pending-interrupts.js'
import { runTurn, type Turn } from './run-turn.js'
import { toGraphState } from './to-graph-state.js'

/** How a graph is hosted. */
export interface HostGraphOptions {
  /** Its name as a program, and as an assistant. */
  readonly name: string
  /** Default 1.0.0. */
  readonly version?: string
  /** Settings of the long-term memory that nodes get. */
  readonly store?: Omit<HoldfastStoreOptions, 'tenant'>
}

/** A LangGraph.js graph as a program: to serve, and for workers. */
export interface GraphProgram
  extends FlowProgram<GraphRequest, { checkpoint: string | null; next: readonly string[] }> {
  readonly hosted: HostedGraph
}

interface Memory {
  readonly saver: HoldfastSaver
  readonly store: HoldfastStore
  readonly namespaces: (thread: string, below: string, since: Date) => Promise<readonly string[]>
}

/** For how many tenants threads are kept open at once. */
const MAX_TENANTS = 100

/**
 * Turns a compiled graph into a program. It runs on `HoldfastSaver` and `HoldfastStore`, whatever the graph was
 * compiled with, under the lease of the thread: one process at a time, and another one when that dies. Its interrupts
 * are questions of the thread.
 */
export function hostGraph(hf: Holdfast, graph: unknown, options: HostGraphOptions): GraphProgram {
  const { name, version = '1.0.0' } = options
  const compiled = readGraph(graph, name)
  const memories = new Memories(hf, options.store ?? {})
  // Kept like the states, which never expire: a thread whose runs are gone would continue from states of another.
  const settings = { name, version, retry: { attempts: 1 }, retention: 'keep' } as const
  const program = flow(settings, async (ctx, request: GraphRequest) => {
    if (ctx.branch !== 'main') throw noBranches()
    const { thread, runId: run } = ctx
    const { saver, store, namespaces: list } = memories.of(ctx.tenant)
    const namespaces: Turn['namespaces'] = (below, since) => list(thread, below, since)
    const turn: Turn = { graph: compiled, saver, store, namespaces, name, thread, run, request }
    let answered: Turn['answered']
    const resume = request.command?.resume
    if (resume !== undefined && resume !== null) {
      const head = { configurable: { thread_id: thread, checkpoint_ns: '' } }
      const asking = { graph: withSaver(compiled, saver, store), saver, head, namespaces }
      // Recorded before anything is passed to the graph: what it asks after a crash may be another question.
      const asked = await ctx.step('asked', async () => [...(await pendingInterrupts(asking))])
      answered = { asked, answers: answersOf(resume, asked) }
    }
    for (let i = 0; ; i++) {
      const given = answered === undefined ? turn : { ...turn, answered }
      const { checkpoint, next, interrupts } = await ctx.step('graph', { key: i }, (step) => runTurn(given, step))
      if (interrupts.length === 0) return { checkpoint, next }
      const ask = ({ id, node, value }: PendingInterrupt) => {
        const question = { interrupt: id, node, value, checkpoint } satisfies GraphAsk
        const key: PauseOptions = { key: `${i}-${id}` }
        return ctx.pause<unknown>(question, key).then((answer) => [id, answer] as const)
      }
      answered = { asked: interrupts, answers: Object.fromEntries(await Promise.all(interrupts.map(ask))) }
    }
  })
  const plan = { ...program.plan, companion: ADAPTER }
  return { ...program, plan, hosted: hostedGraph(compiled, memories) }
}

/** The answers by the ids of what they answer. */
function answersOf(resume: unknown, asked: readonly PendingInterrupt[]): Readonly<Record<string, unknown>> {
  const ids = asked.map(({ id }) => id)
  const isMap = typeof resume === 'object' && resume !== null && Object.keys(resume).some((key) => ids.includes(key))
  if (isMap) return resume as Record<string, unknown>
  const [only, other] = ids
  if (only === undefined)
    throw new InvalidOptionError('command.resume', 'answers nothing', 'The graph asks no question.')
  if (other === undefined) return { [only]: resume }
  throw new InvalidOptionError('command.resume', 'must name each interrupt by its id', 'There are several.')
}

function noBranches(): InvalidOptionError {
  return new InvalidOptionError(
    'branch',
    'must be "main" for a graph of LangGraph',
    'LangGraph manages its forks: run it from an older checkpoint.',
  )
}

/** The savers and stores by tenant: they know what they wrote, so the next save needs no read. */
class Memories {
  readonly #hf: Holdfast
  readonly #options: HoldfastStoreOptions
  readonly #known = new Map<string, Memory>()

  constructor(hf: Holdfast, options: HoldfastStoreOptions) {
    this.#hf = hf
    this.#options = options
    // Refuses an invalid option now, and not with the first run.
    void new HoldfastStore(hf, options)
  }

  of(tenant: string): Memory {
    const known = this.#known.get(tenant)
    const hf = this.#hf.tenant(tenant)
    const memory = known ?? {
      saver: new HoldfastSaver(hf),
      store: new HoldfastStore(hf, this.#options),
      namespaces: (thread: string, below: string, since: Date) => namespacesBelow(hf, thread, below, since),
    }
    this.#known.delete(tenant)
    this.#known.set(tenant, memory)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_TENANTS) break
      this.#known.delete(oldest)
    }
    return memory
  }
}

function hostedGraph(compiled: CompiledGraph, memories: Memories): HostedGraph {
  const open = (tenant: string) => {
    const { saver, store } = memories.of(tenant)
    return { saver, graph: withSaver(compiled, saver, store) }
  }
  const config = (thread: string, checkpoint?: string, ns = '') => ({
    configurable: {
      thread_id: thread,
      checkpoint_ns: ns,
      ...(checkpoint === undefined ? {} : { checkpoint_id: checkpoint }),
    },
  })
  return {
    async state(tenant, thread, { checkpoint, ns, subgraphs = false } = {}) {
      const snapshot = await open(tenant).graph.getState(config(thread, checkpoint, ns), { subgraphs })
      return placeOf(snapshot.config).id === undefined ? undefined : toGraphState(snapshot)
    },
    async history(tenant, thread, { limit, before, metadata, ns }) {
      const states: GraphState[] = []
      const found = open(tenant).graph.getStateHistory(config(thread, undefined, ns), {
        limit,
        ...(before === undefined ? {} : { before: config(thread, before, ns) }),
        ...(metadata === undefined ? {} : { filter: metadata }),
      })
      for await (const snapshot of found) states.push(toGraphState(snapshot))
      return states
    },
    async update(tenant, thread, { values, asNode, checkpoint, ns }) {
      const updated = await open(tenant).graph.updateState(config(thread, checkpoint, ns), values, asNode)
      return placeOf(updated)
    },
    async erase(tenant, thread) {
      await open(tenant).saver.deleteThread(thread)
    },
    store: (tenant) => memories.of(tenant).store,
    async draw(xray) {
      return (await compiled.getGraphAsync?.({ xray }))?.toJSON() ?? { nodes: [], edges: [] }
    },
    keys: () => Object.keys(compiled.channels ?? {}).filter((key) => !/^(__|branch:)/.test(key)),
    async subgraphs(namespace, recurse) {
      const found: Record<string, readonly string[]> = {}
      for await (const [name, { channels = {} }] of compiled.getSubgraphsAsync?.(namespace, recurse) ?? []) {
        found[name] = Object.keys(channels).filter((key) => !/^(__|branch:)/.test(key))
      }
      return found
    },
  }
}
