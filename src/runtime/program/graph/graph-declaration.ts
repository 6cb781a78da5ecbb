import type { RetentionPolicy } from '../../../core/retention.js'
import type { State } from '../../../log/entry/ops.js'
import type { StandardSchema } from '../../../store/standard-schema.js'
import type { Context, StepPolicy } from '../../step/context.js'
import type { Approval, ContextPlan, GraphPlan, Migrations } from '../program.js'
import type { StateShape } from '../state/state-shape.js'

/** Where every run begins: edges and branches from here say what runs first. */
export const START = '__start__'
/** Where a path ends. */
export const END = '__end__'

/** Starts a node with its own input; a list of these is a fan-out. */
export interface Send<Node extends string = string> {
  readonly kind: 'send'
  readonly node: Node
  readonly input: unknown
}

/** Starts a node for one item of a fan-out: return a list of these from the function of `.branch()`. */
export function send<Node extends string>(node: Node, input: unknown): Send<Node> {
  return { kind: 'send', node, input }
}

/** What a branch chose: nodes, END, or nodes with inputs. */
export type Choice<Target extends string = string> =
  | Target
  | Send<Exclude<Target, typeof END>>
  | readonly (Target | Send<Exclude<Target, typeof END>>)[]

export interface NodeDeclaration {
  readonly name: string
  readonly policy: StepPolicy
  readonly inputSchema: StandardSchema | undefined
  readonly concurrency: number | undefined
  readonly approval: Approval | undefined
  readonly work:
    | { readonly kind: 'function'; readonly run: (state: State, context: Context) => unknown }
    | {
        readonly kind: 'graph'
        readonly graph: GraphPlan
        readonly input: ((state: State, input: unknown) => unknown) | undefined
        readonly output: ((subState: State, state: State) => unknown) | undefined
      }
}

export interface EdgeDeclaration {
  /** More than one: a join. */
  readonly from: readonly string[]
  readonly to: string
}

export interface BranchDeclaration {
  readonly from: string
  readonly choose: (state: State) => Choice | Promise<Choice>
  readonly targets: readonly string[]
}

/** Everything a graph was told, before it is checked as a whole. */
export interface GraphDeclaration {
  readonly name: string
  readonly version: string
  readonly shape: StateShape
  readonly input: StandardSchema | undefined
  readonly compatibleWith: string | undefined
  readonly maxSteps: number
  readonly stateVersion: number
  readonly migrations: Migrations
  readonly aliases: Readonly<Record<string, string>>
  /** For nodes that don't say otherwise. */
  readonly policy: StepPolicy
  readonly concurrency: number | undefined
  readonly context: ContextPlan | undefined
  readonly retention: RetentionPolicy | undefined
  readonly nodes: ReadonlyMap<string, NodeDeclaration>
  readonly edges: readonly EdgeDeclaration[]
  readonly branches: readonly BranchDeclaration[]
  readonly pauseBefore: readonly string[]
  readonly pauseAfter: readonly string[]
}
