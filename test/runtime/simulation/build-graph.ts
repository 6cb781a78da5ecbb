import { append, END, graph, last, merge, START, send, type StateOf } from 'holdfast'
import type { Graph } from '#src/runtime/program/graph/graph.js'
import { policyOf, type Surroundings } from './surroundings.js'
import { runAll } from './build-flow.js'
import type { BlockSpec, NodeSpec, SubgraphSpec } from './spec.js'
import type { Place } from './world.js'

const STATE = {
  n: last<number>(),
  log: append<string>(),
  loops: merge<Record<string, number>>(),
  results: merge<Record<string, unknown>>(),
  /** In a subgraph: where in its parent's loops and fan-outs it runs. */
  outer: last<string>(),
  /** Nodes try to change these in place, which must not be possible: then memory and log would differ. */
  date: last<Date>(undefined, { initial: new Date(0) }),
  bytes: last<Uint8Array>(undefined, { initial: new Uint8Array([1, 2, 3]) }),
}
type AnyGraph = Graph<typeof STATE, string, unknown>
type GraphState = StateOf<typeof STATE>
interface Ends {
  readonly entry: string
  readonly exit: string
}
interface Naming {
  readonly name: string
  readonly version: string
}

export function buildGraph(block: BlockSpec, around: Surroundings, naming: Naming): AnyGraph {
  const builder = new GraphBuilder(around, naming)
  const { entry, exit } = builder.add(block, [])
  return builder.graph.edge(START, entry).edge(exit, END)
}

/** Every block has one node where it begins and one where it ends, so that each node runs once per round of its loops. */
class GraphBuilder {
  graph: AnyGraph
  readonly #around: Surroundings
  readonly #version: string

  constructor(around: Surroundings, { name, version }: Naming) {
    this.#around = around
    this.#version = version
    this.graph = graph({ name, version, state: STATE }) as unknown as AnyGraph
  }

  add(block: BlockSpec, loops: readonly string[]): Ends {
    switch (block.kind) {
      case 'node':
        return this.#node(block, loops)
      case 'sequence': {
        const parts = block.blocks.map((part) => this.add(part, loops))
        for (let i = 1; i < parts.length; i++) this.graph = this.graph.edge(parts[i - 1].exit, parts[i].entry)
        return { entry: parts[0].entry, exit: (parts.at(-1) as Ends).exit }
      }
      case 'condition': {
        const [entry, exit] = this.#ends(block)
        const parts = block.blocks.map((part) => this.add(part, loops))
        const entries = parts.map((part) => part.entry)
        this.graph = this.graph.branch(entry, () => entries[block.pick % entries.length], entries)
        for (const part of parts) this.graph = this.graph.edge(part.exit, exit)
        return { entry, exit }
      }
      case 'parallel': {
        const [entry, exit] = this.#ends(block)
        const parts = block.blocks.map((part) => this.add(part, loops))
        for (const part of parts) this.graph = this.graph.edge(entry, part.entry)
        this.graph = this.graph.edge(
          parts.map((part) => part.exit),
          exit,
        )
        return { entry, exit }
      }
      case 'repeat':
        return this.#repeat(block, loops)
      case 'fan':
        return this.#fan(block, loops)
      default:
        return this.#subgraph(block, loops)
    }
  }

  #repeat({ times, block, id }: BlockSpec & { kind: 'repeat' }, loops: readonly string[]): Ends {
    const [loop, counter, exit] = [`loop${id}`, `count${id}`, this.#plain(`q${id}`)]
    const { entry, exit: end } = this.add(block, [...loops, loop])
    const own = (state: GraphState) => `${state.n}:${loop}${roundsOf(state, loops)}`
    this.graph = this.graph
      .node(counter, (state) => ({ loops: { [own(state)]: (state.loops?.[own(state)] ?? 0) + 1 } }))
      .edge(end, counter)
      .branch(counter, (state) => ((state.loops?.[own(state)] ?? 0) < times ? entry : exit), [entry, exit])
    return { entry, exit }
  }

  #fan(block: BlockSpec & { kind: 'fan' }, loops: readonly string[]): Ends {
    const { items, each } = block
    const [entry, exit] = this.#ends(block)
    const worker = each.kind === 'node' ? this.#node(each, loops, items) : this.#subgraph(each, loops)
    const sends = Array.from({ length: items }, (_, i) => send(worker.entry, i))
    this.graph = this.graph
      .branch(entry, () => (items === 0 ? exit : sends), [worker.entry, exit])
      .edge(worker.exit, exit)
    return { entry, exit }
  }

  #subgraph({ block, id: number }: SubgraphSpec, loops: readonly string[]): Ends {
    const id = `sub${number}`
    const inner = buildGraph(block, this.#around, { name: id, version: this.#version })
    this.graph = this.graph.node(id, inner, {
      input: (state, item) => ({
        n: state.n,
        outer: `${roundsOf(state, loops)}${item === undefined ? '' : `#${item}`}`,
      }),
      output: ({ log = [], results = {} }) => ({ log, results }),
    })
    return { entry: id, exit: id }
  }

  #node({ work, body, gate, id: own = '', name = '' }: NodeSpec, loops: readonly string[], items = 1): Ends {
    // A later version may call it otherwise; to the world it is the same.
    const id = `${own}${name}${work?.name ?? ''}`
    const { world, process } = this.#around
    this.graph = this.graph.node(id, {
      ...(work ? policyOf(work, this.#around, false) : {}),
      run: async (state, ctx) => {
        disturb(state)
        const item = ctx.input === undefined ? '' : `#${ctx.input}`
        const mark = `${process.era}/${state.n}:${own}${roundsOf(state, loops)}${item}`
        const log = [mark]
        const outer = state.outer ?? ''
        if (work === undefined) {
          const scene = { world, process, ctx, n: state.n as number, rounds: '', mark, outer }
          return { log, results: { [mark]: await runAll(body, scene) } }
        }
        if (work.gone) return { log }
        if (work.store && work.effect === 'read')
          await ctx.store.scope({ simulation: world.thread }).collection('c').put(mark, { by: mark })
        const place: Place = {
          name: mark,
          record: { path: `:${id}${items > 1 ? `[${ctx.input}]` : ''}` },
          mark,
          outer,
          told: (result) => ({ log, results: { [mark]: result } }),
        }
        return place.told(await world.call(process, place, work, ctx)) as { log: string[] }
      },
    })
    if (gate === 'before') this.graph = this.graph.pauseBefore(id)
    if (gate === 'after') this.graph = this.graph.pauseAfter(id)
    return { entry: id, exit: id }
  }

  #ends({ id }: BlockSpec): readonly [entry: string, exit: string] {
    return [this.#plain(`p${id}`), this.#plain(`q${id}`)]
  }

  #plain(id: string): string {
    this.graph = this.graph.node(id, () => ({}))
    return id
  }
}

function disturb({ date, bytes }: GraphState): void {
  try {
    date?.setTime(Date.now())
  } catch {}
  try {
    bytes?.fill(9)
  } catch {}
}

/** In which round of each of these loops, the outermost first, a state is. */
function roundsOf({ n, outer = '', loops: counts }: GraphState, loops: readonly string[]): string {
  let rounds = outer
  for (const loop of loops) rounds += `-${counts?.[`${n}:${loop}${rounds}`] ?? 0}`
  return rounds
}
