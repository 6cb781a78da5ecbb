import {
  append,
  type Context,
  END,
  flow,
  graph,
  last,
  merge,
  START,
  send,
  type StateOf,
  type StepOptions,
} from 'holdfast'
import type { Graph } from '#src/runtime/graph.js'
import type { ProgramPlan } from '#src/runtime/program.js'
import type { Mortal } from './mortal.js'
import type { BlockSpec, NodeSpec, ProgramSpec, StatementSpec, SubgraphSpec, WorkSpec } from './spec.js'
import { type Place, TIMEOUT_MS, ttlOf, type World } from './world.js'

export interface Input {
  readonly n: number
}

export interface Program {
  readonly kind: 'flow' | 'graph'
  readonly plan: ProgramPlan
}

const NAME = { name: 'random', version: '1.0.0' }

/** A program of a spec, as one process has loaded it. Its calls of the outside go to the world. */
export function buildProgram(spec: ProgramSpec, world: World, process: Mortal): Program {
  if (spec.kind === 'graph') return buildGraph(spec.block, { world, process, ids: { next: 0 } }, NAME.name)
  return flow<Input, unknown>(NAME, (ctx, { n }) =>
    runAll(spec.body, { world, process, ctx, n, at: 'f', rounds: '', mark: '', outer: '', task: '' }),
  )
}

interface Surroundings {
  readonly world: World
  readonly process: Mortal
}

interface GraphSurroundings extends Surroundings {
  /** Nodes have names of their own in all graphs of a program. */
  readonly ids: { next: number }
}

interface Scene extends Surroundings {
  readonly ctx: Context
  readonly n: number
  /** Names the statement; the same in every round of a loop. */
  readonly at: string
  readonly rounds: string
  readonly mark: string
  readonly outer: string
  /** The end of the path of its node, if it is in one. */
  readonly task: string
}

async function runAll(body: readonly StatementSpec[], scene: Scene): Promise<unknown[]> {
  const results: unknown[] = []
  for (const [i, statement] of body.entries()) {
    results.push(await runStatement(statement, { ...scene, at: `${scene.at}.${i}` }))
  }
  return results
}

async function runStatement(statement: StatementSpec, scene: Scene): Promise<unknown> {
  const { ctx, at, rounds, world, process, n } = scene
  const key = `r${rounds}`
  switch (statement.kind) {
    case 'step': {
      const { work, caught } = statement
      const place: Place = {
        name: `${n}:${at}${rounds}${scene.mark}`,
        record: `${scene.task}${at}[${key}]`,
        mark: scene.mark,
        outer: scene.outer,
        told: (result) => result,
      }
      const policy = policyOf(work, scene, caught)
      const done = ctx.step(at, { ...policy, key, input: place.name }, async (step) => {
        if (work.store && work.effect === 'read')
          await step.store.scope({ simulation: world.thread }).collection('c').put(place.name, { by: place.name })
        return world.call(process, place, work, step)
      })
      if (!caught) return done
      return done.catch((error: Error) => {
        // The run itself is over; not a failure of the step.
        if (ctx.abort.aborted) throw error
        return 'caught'
      })
    }
    case 'all':
      return Promise.all(statement.parts.map((part, i) => runStatement(part, { ...scene, at: `${at}.${i}` })))
    case 'loop': {
      const results: unknown[] = []
      for (let i = 0; i < statement.times; i++) {
        results.push(await runAll(statement.body, { ...scene, rounds: `${rounds}-${i}` }))
      }
      return results
    }
    case 'sleep':
      await ctx.sleep(statement.ms, { key: `${at}${key}` })
      return 'slept'
    case 'receive': {
      const name = `${n}:${at}${rounds}${scene.mark}`
      if (!statement.inTime) return (await ctx.receive(name, { timeoutMs: 30_000 })) ?? 'nothing'
      world.wanted.add(name)
      return ctx.receive(name)
    }
    default: {
      const late = { expiresIn: 60_000, onExpire: { answer: 'late' } }
      return ctx.pause(
        { at, rounds, inTime: statement.inTime },
        { key: `${at}${key}`, ...(statement.inTime ? {} : late) },
      )
    }
  }
}

function policyOf(work: WorkSpec, { world, process }: Surroundings, caught: boolean) {
  // What is caught must fail, or not, in every run alike: as many attempts as it needs, however the crashes fall.
  const attempts = caught ? work.mishaps.length + 2 : Math.max(1, work.mishaps.length + work.spareAttempts - 1)
  const hangs = work.mishaps.some((mishap) => mishap.startsWith('hang'))
  return {
    effect: work.effect,
    retry: { attempts, initialMs: 100, jitter: 0 },
    keyTtlMs: ttlOf(work),
    onUnknown: caught ? 'pause' : work.onUnknown,
    reconcile: (key: string) => world.reconcile(process, work, key),
    ...(hangs ? { timeoutMs: TIMEOUT_MS } : {}),
  } satisfies StepOptions
}

const STATE = {
  n: last<number>(),
  log: append<string>(),
  loops: merge<Record<string, number>>(),
  results: merge<Record<string, unknown>>(),
  /** In a subgraph: where in its parent's loops and fan-outs it runs. */
  outer: last<string>(),
}
type AnyGraph = Graph<typeof STATE, string, unknown>
type GraphState = StateOf<typeof STATE>
interface Ends {
  readonly entry: string
  readonly exit: string
}

function buildGraph(block: BlockSpec, around: GraphSurroundings, name: string): AnyGraph {
  const builder = new GraphBuilder(around, name)
  const { entry, exit } = builder.add(block, [])
  return builder.graph.edge(START, entry).edge(exit, END)
}

/** Every block has one node where it begins and one where it ends, so that each node runs once per round of its loops. */
class GraphBuilder {
  graph: AnyGraph
  readonly #around: GraphSurroundings

  constructor(around: GraphSurroundings, name: string) {
    this.#around = around
    this.graph = graph({ ...NAME, name, state: STATE }) as unknown as AnyGraph
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
        const [entry, exit] = [this.#plain(), this.#plain()]
        const parts = block.blocks.map((part) => this.add(part, loops))
        const entries = parts.map((part) => part.entry)
        this.graph = this.graph.branch(entry, () => entries[block.pick % entries.length], entries)
        for (const part of parts) this.graph = this.graph.edge(part.exit, exit)
        return { entry, exit }
      }
      case 'parallel': {
        const [entry, exit] = [this.#plain(), this.#plain()]
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

  #repeat({ times, block }: BlockSpec & { kind: 'repeat' }, loops: readonly string[]): Ends {
    const [loop, counter, exit] = [this.#id('loop'), this.#id('count'), this.#plain()]
    const { entry, exit: end } = this.add(block, [...loops, loop])
    const own = (state: GraphState) => `${state.n}:${loop}${roundsOf(state, loops)}`
    this.graph = this.graph
      .node(counter, (state) => ({ loops: { [own(state)]: (state.loops?.[own(state)] ?? 0) + 1 } }))
      .edge(end, counter)
      .branch(counter, (state) => ((state.loops?.[own(state)] ?? 0) < times ? entry : exit), [entry, exit])
    return { entry, exit }
  }

  #fan({ items, each }: BlockSpec & { kind: 'fan' }, loops: readonly string[]): Ends {
    const [entry, exit] = [this.#plain(), this.#plain()]
    const worker = each.kind === 'node' ? this.#node(each, loops, items) : this.#subgraph(each, loops)
    const sends = Array.from({ length: items }, (_, i) => send(worker.entry, i))
    this.graph = this.graph
      .branch(entry, () => (items === 0 ? exit : sends), [worker.entry, exit])
      .edge(worker.exit, exit)
    return { entry, exit }
  }

  #subgraph({ block }: SubgraphSpec, loops: readonly string[]): Ends {
    const id = this.#id('sub')
    this.graph = this.graph.node(id, buildGraph(block, this.#around, id), {
      input: (state, item) => ({
        n: state.n,
        outer: `${roundsOf(state, loops)}${item === undefined ? '' : `#${item}`}`,
      }),
      output: ({ log = [], results = {} }) => ({ log, results }),
    })
    return { entry: id, exit: id }
  }

  #node({ work, body, gate }: NodeSpec, loops: readonly string[], items = 1): Ends {
    const id = this.#id('n')
    const { world, process } = this.#around
    this.graph = this.graph.node(id, {
      ...(work ? policyOf(work, this.#around, false) : {}),
      run: async (state, ctx) => {
        const item = ctx.input === undefined ? '' : `#${ctx.input}`
        const mark = `${state.n}:${id}${roundsOf(state, loops)}${item}`
        const log = [mark]
        const task = `:${id}${items > 1 ? `[${ctx.input}]` : ''}`
        if (work === undefined) {
          const scene = {
            world,
            process,
            ctx,
            n: state.n as number,
            at: id,
            rounds: '',
            mark,
            outer: state.outer ?? '',
            task: `${task}/`,
          }
          return { log, results: { [mark]: await runAll(body, scene) } }
        }
        if (work.store && work.effect === 'read')
          await ctx.store.scope({ simulation: world.thread }).collection('c').put(mark, { by: mark })
        const place: Place = {
          name: mark,
          record: task,
          mark,
          outer: state.outer ?? '',
          told: (result) => ({ log, results: { [mark]: result } }),
        }
        return place.told(await world.call(process, place, work, ctx)) as { log: string[] }
      },
    })
    if (gate === 'before') this.graph = this.graph.pauseBefore(id)
    if (gate === 'after') this.graph = this.graph.pauseAfter(id)
    return { entry: id, exit: id }
  }

  #plain(): string {
    const id = this.#id('p')
    this.graph = this.graph.node(id, () => ({}))
    return id
  }

  #id(kind: string): string {
    return `${kind}${this.#around.ids.next++}`
  }
}

/** In which round of each of these loops, the outermost first, a state is. */
function roundsOf({ n, outer = '', loops: counts }: GraphState, loops: readonly string[]): string {
  let rounds = outer
  for (const loop of loops) rounds += `-${counts?.[`${n}:${loop}${rounds}`] ?? 0}`
  return rounds
}
