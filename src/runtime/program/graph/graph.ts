import { checkOptionNames, type OptionNames } from '../../../core/wording/option-names.js'
import { InvalidProgramError } from '../../../core/errors.js'
import { parseRetention, type Retention } from '../../../core/retention.js'
import type { State } from '../../../log/entry/ops.js'
import type { SchemaInput, SchemaOutput, StandardSchema } from '../../../store/standard-schema.js'
import type { Context, RetryPolicy, StepPolicy } from '../../step/context.js'
import {
  checkDeclaredSchema,
  checkNodeName,
  checkProgramName,
  checkRange,
  checkVersion,
  type ContextOptions,
  planContext,
} from '../check-program.js'
import type { BranchDeclaration, Choice, END, GraphDeclaration, NodeDeclaration, START } from './graph-declaration.js'
import { planGraph } from './graph-plan.js'
import type { RunLimit } from '../../run/state/run-state.js'
import type { Approval, GraphPlan, Migrations, TypedProgram } from '../program.js'
import type { Shape, StateOf, UpdateOf } from '../state/state-key.js'
import { StateShape } from '../state/state-shape.js'
import { checkPolicy, pickPolicy, POLICY_OPTIONS } from '../step-policy.js'

/** What identifies a graph, what its state is, and how its nodes behave unless they say otherwise. */
export interface GraphOptions<S extends Shape, RunContext = unknown> extends ContextOptions<RunContext> {
  readonly name: string
  /** A semantic version. Recorded with every checkpoint. */
  readonly version: string
  readonly state: S
  /** What a run's input must match; its result is the first update. Default: any update of the state. */
  readonly input?: StandardSchema
  /** The versions whose threads this one continues, as a semver range. Default: those with the same major. */
  readonly compatibleWith?: string
  /**
   * How many super-steps one run may take before it fails: this ends a loop that does not end itself. Default 1,000.
   */
  readonly maxSteps?: number
  /** How many nodes of one super-step run at once, including those of a fan-out. Default: all. */
  readonly concurrency?: number
  /** Raise it when the meaning of the state changes; `migrations` lead to it. Default 1. */
  readonly stateVersion?: number
  readonly migrations?: Migrations
  /** From the names that nodes once had to their current names. */
  readonly aliases?: Readonly<Record<string, string>>
  /** For nodes that don't say otherwise. */
  readonly retry?: RetryPolicy
  /** For nodes that don't say otherwise. */
  readonly timeoutMs?: number
  /** How long its threads are kept, and which parts of them. Default: what the store says. */
  readonly retention?: Retention
}

/** Reads the state and returns what changes. What it does through `ctx` is recorded and survives a crash. */
export type NodeFunction<S extends Shape, Item = unknown, RunContext = unknown> = (
  state: StateOf<S>,
  ctx: Context<Item, RunContext>,
) => UpdateOf<S> | undefined | void | Promise<UpdateOf<S> | undefined | void>

/** A node that needs more than its function: an effect, retries, a time limit, an approval. */
export interface NodeOptions<S extends Shape, Schema extends StandardSchema = StandardSchema, RunContext = unknown>
  extends StepPolicy {
  /** What the items of a fan-out to this node must match; types `ctx.input`. */
  readonly input?: Schema
  /** How many tasks of a fan-out to this node run at once. Default: all. */
  readonly concurrency?: number
  /** Whether a person must agree before this node runs, and what follows from the answer. */
  readonly approval?: Approval
  readonly run: NodeFunction<S, SchemaOutput<Schema>, RunContext>
}

/**
 * How a subgraph's state is connected to its parent's. Without it, they share the keys that both declare the same way
 * (`last`, `append` or `merge`): values are passed in, and what the subgraph changed comes back.
 */
export interface SubgraphOptions<S extends Shape, Sub extends Shape, SubInput> {
  /** What the subgraph starts with. Default: the shared keys. `item` is what a fan-out sent, if one did. */
  readonly input?: (state: StateOf<S>, item: unknown) => SubInput | undefined
  /** What the parent takes from the subgraph's last state. */
  readonly output: (subState: StateOf<Sub>, state: StateOf<S>) => UpdateOf<S> | undefined | void
  /** How many tasks of a fan-out to this node run at once. Default: all. */
  readonly concurrency?: number
}

/** The result of an agent that is a node of a graph. */
export interface AgentNodeResult<SubState, Output> {
  /** What it said last. */
  readonly output: Output
  readonly state: SubState
  /** Set if its `maxTurns` or `budget` ended it before it was done. */
  readonly limit?: RunLimit
}

/** The input of an agent that is a node of a graph, and what the graph takes from its result. */
export interface AgentNodeOptions<S extends Shape, SubInput, SubState, Output> {
  /** Its input. `item` is what a fan-out sent, if one did. */
  readonly input: (state: StateOf<S>, item: unknown) => SubInput
  /** What the graph takes from it. */
  readonly output: (
    result: AgentNodeResult<SubState, Output>,
    state: StateOf<S>,
  ) => UpdateOf<S> | undefined | void | Promise<UpdateOf<S> | undefined | void>
  /** How many tasks of a fan-out to this node run at once. Default: all. */
  readonly concurrency?: number
}

/** A graph as a part of another, or as the program of a thread. */
export interface GraphProgram<S extends Shape = Shape, Input = unknown> {
  readonly kind: 'graph'
  /** The checked graph. Throws an InvalidProgramError that names what is wrong with it. */
  readonly plan: GraphPlan
  /** Never present at runtime: carries the types. */
  readonly '~types'?: { readonly shape: S; readonly input: Input }
}

/** A graph of nodes over a typed state. Every method returns a new graph; the one it is called on stays as it was. */
export class Graph<S extends Shape, Names extends string, Input, RunContext = unknown>
  implements GraphProgram<S, Input>
{
  readonly kind = 'graph'
  declare readonly '~types'?: { readonly shape: S; readonly input: Input }
  readonly #declaration: GraphDeclaration
  #plan: GraphPlan | undefined

  constructor(declaration: GraphDeclaration) {
    this.#declaration = declaration
  }

  get plan(): GraphPlan {
    this.#plan ??= planGraph(this.#declaration)
    return this.#plan
  }

  node<Name extends string>(
    name: Name,
    run: NodeFunction<S, unknown, RunContext>,
  ): Graph<S, Names | Name, Input, RunContext>
  node<Name extends string, Sub extends Shape, SubInput>(
    name: Name,
    subgraph: GraphProgram<Sub, SubInput>,
    options?: SubgraphOptions<S, Sub, SubInput>,
  ): Graph<S, Names | Name, Input, RunContext>
  node<Name extends string, SubInput, SubState, Output>(
    name: Name,
    agent: TypedProgram<SubInput, SubState, Output>,
    options: AgentNodeOptions<S, SubInput, SubState, Output>,
  ): Graph<S, Names | Name, Input, RunContext>
  node<Name extends string, Schema extends StandardSchema = StandardSchema>(
    name: Name,
    options: NodeOptions<S, Schema, RunContext>,
  ): Graph<S, Names | Name, Input, RunContext>
  node(
    name: string,
    work:
      | NodeFunction<S, unknown, RunContext>
      | NodeOptions<S, StandardSchema, RunContext>
      | GraphProgram
      | TypedProgram,
    options?: SubgraphOptions<S, Shape, unknown> | AgentNodeOptions<S, unknown, unknown, unknown>,
  ): Graph<S, string, Input, RunContext> {
    checkNodeName(name)
    const { nodes } = this.#declaration
    if (nodes.has(name)) {
      throw new InvalidProgramError(
        `${this.#title()} already has a node "${name}".`,
        `node "${name}"`,
        'Give every node its own name.',
        { node: name },
      )
    }
    const node = declareNode(name, work as unknown as AnyWork, options as unknown as AnyMapping | undefined)
    return this.#with({ nodes: new Map(nodes).set(name, node) })
  }

  /** `to` runs after `from`. A list of nodes is a join: `to` runs once all of them have finished since it last ran. */
  edge(from: Names | typeof START | readonly Names[], to: Names | typeof END): Graph<S, Names, Input, RunContext> {
    const sources: readonly string[] = typeof from === 'string' ? [from] : [...new Set(from)]
    if (sources.length === 0) {
      throw new InvalidProgramError(
        `A join to "${to}" in ${this.#title()} waits for no node.`,
        `edge to "${to}"`,
        'List the nodes that it waits for.',
        { target: to },
      )
    }
    return this.#with({ edges: [...this.#declaration.edges, { from: sources, to }] })
  }

  /**
   * After `from`, the function decides what runs: one of the targets, several, `END`, or a fan-out by `send`, which
   * starts its node once per item. A fan-out over a list that may be empty needs END among its targets, because the
   * path may end there.
   */
  branch<Target extends Names | typeof END>(
    from: Names | typeof START,
    choose: (state: StateOf<S>) => Choice<NoInfer<Target>> | Promise<Choice<NoInfer<Target>>>,
    targets: readonly Target[],
  ): Graph<S, Names, Input, RunContext> {
    if (typeof choose !== 'function' || !Array.isArray(targets) || targets.length === 0) {
      throw new InvalidProgramError(
        `The branch from "${from}" in ${this.#title()} lacks its function or its targets.`,
        `branch from "${from}"`,
        'Pass (state) => target, then the list of all targets it may return.',
        { node: from },
      )
    }
    const branch: BranchDeclaration = {
      from,
      choose: choose as unknown as BranchDeclaration['choose'],
      targets: [...targets],
    }
    return this.#with({ branches: [...this.#declaration.branches, branch] })
  }

  /** Runs pause before these nodes start, until they are continued. */
  pauseBefore(...names: readonly Names[]): Graph<S, Names, Input, RunContext> {
    return this.#with({ pauseBefore: [...this.#declaration.pauseBefore, ...names] })
  }

  /** Runs pause after these nodes finished, until they are continued. */
  pauseAfter(...names: readonly Names[]): Graph<S, Names, Input, RunContext> {
    return this.#with({ pauseAfter: [...this.#declaration.pauseAfter, ...names] })
  }

  #with<More extends string>(change: Partial<GraphDeclaration>): Graph<S, Names | More, Input, RunContext> {
    return new Graph({ ...this.#declaration, ...change })
  }

  #title(): string {
    return `graph "${this.#declaration.name}"`
  }
}

/** Starts a graph; continue with `.node`, `.edge` and `.branch`. */
export function graph<const S extends Shape, Schema extends StandardSchema, RunContext = unknown>(
  options: GraphOptions<S, RunContext> & { readonly input: Schema },
): Graph<S, never, SchemaInput<Schema>, RunContext>
export function graph<const S extends Shape, RunContext = unknown>(
  options: GraphOptions<S, RunContext>,
): Graph<S, never, UpdateOf<S>, RunContext>
export function graph(options: GraphOptions<Shape>): Graph<Shape, never, unknown> {
  checkOptionNames('graph()', options, OPTIONS)
  const { name, version, compatibleWith, aliases = {}, migrations = {} } = options
  checkProgramName(name)
  checkVersion(name, version)
  checkRange(name, compatibleWith)
  const policy = pickPolicy(options)
  checkPolicy(policy, `graph "${name}"`)
  checkDeclaredSchema(options.input, `input of graph "${name}"`, 'input')
  return new Graph({
    name,
    version,
    shape: new StateShape(options.state),
    input: options.input,
    compatibleWith,
    maxSteps: options.maxSteps ?? 1000,
    concurrency: checkConcurrency(options.concurrency, `graph "${name}"`),
    stateVersion: options.stateVersion ?? 1,
    migrations: { ...migrations },
    aliases: { ...aliases },
    policy,
    context: planContext(`graph "${name}"`, options),
    retention: options.retention === undefined ? undefined : parseRetention(options.retention),
    nodes: new Map(),
    edges: [],
    branches: [],
    pauseBefore: [],
    pauseAfter: [],
  })
}

// The type of the state they read is dropped here: the engine passes them one created by the same shape.
type AnyWork = NodeFunction<Shape> | NodeOptions<Shape> | GraphProgram | TypedProgram
type AnyMapping = SubgraphOptions<Shape, Shape, unknown>

const OPTIONS: OptionNames<GraphOptions<Shape>> = {
  name: true,
  version: true,
  state: true,
  input: true,
  compatibleWith: true,
  maxSteps: true,
  concurrency: true,
  stateVersion: true,
  migrations: true,
  aliases: true,
  retry: true,
  timeoutMs: true,
  retention: true,
  context: true,
  transientContext: true,
}

const NODE_OPTIONS: OptionNames<NodeOptions<Shape>> = {
  ...POLICY_OPTIONS,
  input: true,
  approval: true,
  concurrency: true,
  run: true,
}

const SUBGRAPH_OPTIONS: OptionNames<SubgraphOptions<Shape, Shape, unknown>> = {
  input: true,
  output: true,
  concurrency: true,
}

function declareNode(name: string, work: AnyWork, options: AnyMapping | undefined): NodeDeclaration {
  const limit =
    options?.concurrency ?? (typeof work === 'object' ? (work as NodeOptions<Shape>).concurrency : undefined)
  const concurrency = checkConcurrency(limit, `node "${name}"`)
  const plain = { name, policy: {}, inputSchema: undefined, approval: undefined, concurrency }
  if (isAgent(work)) return { ...plain, work: agentWork(name, work, options) }
  if (options !== undefined && !isGraph(work)) {
    throw new InvalidProgramError(
      `Node "${name}" has options after its function, which would be ignored.`,
      `node "${name}"`,
      'Pass them together: { run: function, effect, retry, … }.',
      { node: name },
    )
  }
  if (typeof work === 'function') return { ...plain, work: { kind: 'function', run: asRun(work) } }
  if (isGraph(work)) {
    checkOptionNames(`node "${name}"`, options, SUBGRAPH_OPTIONS)
    if (options?.input !== undefined && typeof options.output !== 'function') {
      throw new InvalidProgramError(
        `Node "${name}" maps the input of its subgraph but not its output.`,
        `node "${name}"`,
        'Pass { input, output }; what the two states share is only known when neither is given.',
        { node: name },
      )
    }
    const input = options?.input as ((state: State, input: unknown) => unknown) | undefined
    const output = options?.output as ((subState: State, state: State) => unknown) | undefined
    return { ...plain, work: { kind: 'graph', graph: work.plan, input, output } }
  }
  checkOptionNames(`node "${name}"`, work, NODE_OPTIONS)
  if (typeof work?.run !== 'function') {
    throw new InvalidProgramError(
      `Node "${name}" has nothing to run.`,
      `node "${name}"`,
      'Pass a function, { run: function, … }, a graph or an agent.',
      { node: name },
    )
  }
  const { input, approval, run, concurrency: _, ...policy } = work
  checkPolicy(policy, `node "${name}"`)
  checkDeclaredSchema(input, `input of node "${name}"`, `node "${name}".input`)
  return { name, policy, inputSchema: input, approval, concurrency, work: { kind: 'function', run: asRun(run) } }
}

function checkConcurrency(concurrency: unknown, owner: string): number | undefined {
  if (concurrency === undefined || (Number.isSafeInteger(concurrency) && (concurrency as number) >= 1)) {
    return concurrency as number | undefined
  }
  throw new InvalidProgramError(
    `The option concurrency of ${owner} must be a whole number of at least 1, not ${String(concurrency)}.`,
    'concurrency',
    'Pass for example 4, or leave it out.',
  )
}

function agentWork(name: string, { plan }: TypedProgram, options: AnyMapping | undefined): NodeDeclaration['work'] {
  checkOptionNames(`node "${name}"`, options, SUBGRAPH_OPTIONS)
  const { input, output } = (options ?? {}) as Partial<AgentNodeOptions<Shape, unknown, unknown, unknown>>
  if (typeof input !== 'function' || typeof output !== 'function') {
    throw new InvalidProgramError(
      `Node "${name}" is an agent, and the graph does not say what its input is and what to do with its output.`,
      `node "${name}"`,
      'Pass { input: (state) => text, output: ({ output }) => ({ … }) }.',
      { node: name },
    )
  }
  return {
    kind: 'graph',
    graph: plan,
    input: input as (state: State, item: unknown) => unknown,
    output: (subState, state) => {
      const limit = plan.limit?.(subState)
      const result = { output: plan.output?.(subState), state: subState, ...(limit ? { limit } : {}) }
      return output(result, state as never)
    },
  }
}

function isAgent(work: unknown): work is TypedProgram {
  return (work as Partial<TypedProgram> | null)?.kind === 'agent'
}

function isGraph(work: unknown): work is GraphProgram {
  return (work as Partial<GraphProgram> | null)?.kind === 'graph'
}

function asRun(run: NodeFunction<Shape>): (state: State, context: Context) => unknown {
  return run as (state: State, context: Context) => unknown
}
