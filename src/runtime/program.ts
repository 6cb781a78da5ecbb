import type { Value } from '../codec/value.js'
import type { State } from '../log/ops.js'
import type { StandardSchema } from '../store/standard-schema.js'
import type { Context, StepPolicy } from './context.js'
import type { StateShape, Update } from './state-shape.js'

/** One activation of a node that is to run. */
export interface Task {
  readonly node: string
  /** The item of a fan-out, as the node's input schema made it. Absent for a node started by an edge. */
  readonly input?: unknown
}

/** For each join under way, which of its sources have finished. Plain data that the engine records. */
export type Joins = Readonly<Record<string, readonly string[]>>

/** By the version they lead to: 2 turns a state of version 1 into one of version 2. */
export type Migrations = Readonly<Record<number, Migration>>

export type Migration = ((state: State) => State) | FullMigration

/** For a thread in the middle of a super-step: results that are recorded already are updates of the older state. */
export interface FullMigration {
  readonly state: (state: State) => State
  /** Turns what a node returned into an update of the new version. Default: it is one already. */
  readonly update?: (update: Update) => Update
}

interface NodePlanBase {
  readonly name: string
  readonly policy: StepPolicy
  /** What items sent to this node must fit; `start` and `next` have applied it to the tasks they return. */
  readonly inputSchema?: StandardSchema
  readonly pauseBefore: boolean
  readonly pauseAfter: boolean
}

/** Whether a person must agree before a node runs, and what follows from the answer. All of it must only compute. */
export interface Approval {
  readonly needed: (state: State, input: unknown) => boolean | Promise<boolean>
  /** What the person is shown. */
  readonly question: (state: State, input: unknown) => unknown
  /** The JSON Schema of an answer, which holds at least `approved`. */
  readonly answer: Value
  /** The input that the node runs with after a yes: the person may have edited it. */
  readonly approved: (input: unknown, answer: unknown) => unknown
  /** The update in place of the node's own after a no. */
  readonly denied: (input: unknown, answer: unknown) => unknown
}

export interface FunctionNodePlan extends NodePlanBase {
  readonly kind: 'function'
  readonly approval?: Approval
  /** Its result is an update that is still to be checked. */
  readonly run: (state: State, context: Context) => unknown
}

export interface GraphNodePlan extends NodePlanBase {
  readonly kind: 'graph'
  readonly graph: GraphPlan
  /** The input of the subgraph, still to be checked by `graph.checkInput`. */
  readonly enter: (state: State, input: unknown) => unknown
  /** The update of this graph's state when the subgraph has ended, still to be checked. May be a promise. */
  readonly leave: (subState: State, state: State) => unknown
}

export type NodePlan = FunctionNodePlan | GraphNodePlan

/** What the engine uses of a graph. */
export interface GraphPlan {
  readonly kind: 'graph'
  readonly name: string
  readonly version: string
  readonly compatibleWith: string | undefined
  /** How many super-steps one run may take. */
  readonly maxSteps: number
  readonly shape: StateShape
  readonly nodes: ReadonlyMap<string, NodePlan>
  /** From a name that may be recorded to the name that the node has now. */
  readonly aliases: Readonly<Record<string, string>>
  readonly stateVersion: number
  readonly migrations: Migrations
  readonly inputSchema?: StandardSchema
  /** The update that an input makes of the state when a run begins. No input changes nothing. */
  checkInput(input: unknown): Promise<Update>
  /** The node of this name, or of the name it has now; undefined if there is none. */
  resolve(name: string): NodePlan | undefined
  /** What runs first. */
  start(state: State): Promise<readonly Task[]>
  /**
   * What follows after these nodes finished in one super-step; nothing, when the run has come to its end. Names and
   * joins may be recorded ones, from before a node was renamed.
   */
  next(
    finished: readonly string[],
    state: State,
    joins: Joins,
  ): Promise<{ readonly tasks: readonly Task[]; readonly joins: Joins }>
}

/** What the engine uses of a flow. */
export interface FlowPlan {
  readonly kind: 'flow'
  readonly name: string
  readonly version: string
  readonly compatibleWith: string | undefined
  /** What its steps have unless they say otherwise. */
  readonly policy: StepPolicy
  readonly inputSchema?: StandardSchema
  readonly outputSchema?: StandardSchema
  checkInput(input: unknown): Promise<unknown>
  checkOutput(output: unknown): Promise<unknown>
  readonly run: (context: Context, input: unknown) => unknown
}

export type ProgramPlan = GraphPlan | FlowPlan
