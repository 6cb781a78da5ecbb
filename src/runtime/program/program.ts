import type { Value } from '../../codec/value.js'
import type { RetentionPolicy } from '../../core/retention.js'
import type { State } from '../../log/entry/ops.js'
import type { StandardSchema } from '../../store/standard-schema.js'
import type { SpanPlan } from '../../telemetry/observer.js'
import type { Context, StepPolicy } from '../step/context.js'
import type { RecordedError } from '../errors.js'
import type { LiveEvent } from '../events/events.js'
import type { Durable, Frequency } from '../run/record/record-policy.js'
import type { RunLimit } from '../run/state/run-state.js'
import type { StateShape, Update } from './state/state-shape.js'

export type { State } from '../../log/entry/ops.js'

/** One activation of a node that is about to run. */
export interface Task {
  readonly node: string
  /** The item of a fan-out, as validated by the node's input schema. Absent for a node started by an edge. */
  readonly input?: unknown
}

/** For each join in progress, which of its sources have finished. Plain data that the engine records. */
export type Joins = Readonly<Record<string, readonly string[]>>

/** By the version they lead to: 2 turns a state of version 1 into one of version 2. */
export type Migrations = Readonly<Record<number, Migration>>

/** Migrates a state to the version it is declared under. Must be pure, and returns the whole state. */
export type Migration = ((state: State) => State) | FullMigration

/** For waiting input and results that are recorded but not yet applied: they are updates of the older state. */
export interface FullMigration {
  readonly state: (state: State) => State
  /**
   * Turns input, or what a node returned, into an update of the new version. If omitted, an update stays as it is if it
   * changes only keys that `state` leaves alone, and is refused otherwise.
   */
  readonly update?: (update: Update) => Update
}

interface NodePlanBase {
  readonly name: string
  readonly policy: StepPolicy
  /** What items sent to this node must match; `start` and `next` have applied it to the tasks they return. */
  readonly inputSchema?: StandardSchema
  readonly pauseBefore: boolean
  readonly pauseAfter: boolean
  /** How many tasks of this node run at once. Default: all. */
  readonly concurrency?: number
  /** What the thread index shows while tasks of this node run. Default 'active'. */
  readonly status?: string
  readonly approval?: Approval
  /** The other kind of node that it may have begun as: such a task continues as what it was. */
  readonly otherwise?: NodePlan
  /** The update for a task that was never begun, because its run was ended before. Default: none. */
  readonly unbegun?: (input: unknown) => unknown
  /** What to report to listeners, once the update is recorded. */
  readonly report?: (update: Update, step: string) => readonly LiveEvent[]
}

/** What a person was shown, and what they have said so far. */
export interface Asked {
  readonly question: Value
  readonly answer?: Value
  /** What is shown is what runs. Questions of version 0.1 showed the arguments before the schema was applied. */
  readonly exact?: true
}

/** Whether a person must agree before a node runs, and what follows from the answer. All of it must be pure. */
export interface Approval {
  /**
   * Once the question was asked, its answer counts whatever this returns. `context` is what the caller passed along.
   */
  readonly needed: (state: State, input: unknown, context: unknown) => boolean | Promise<boolean>
  /** What the person is shown. `asked` is what was shown here before, if anything: returning it keeps its answer. */
  readonly question: (state: State, input: unknown, asked?: Asked) => unknown
  /** The JSON Schema of an answer, which holds at least `approved`. */
  readonly answer: Value | ((input: unknown) => Value | Promise<Value>)
  /** How long the question stays open, in milliseconds. Default: forever. */
  readonly expiresInMs?: number
  /** What happens then: a default answer, such as `{ answer: { approved: false } }`. Default: the run fails. */
  readonly onExpire?: { readonly answer: Value } | 'fail'
  /** Why this answer can't be accepted, in words for the person who gave it: the question then reopens. */
  readonly refuse?: (input: unknown, answer: unknown, asked: Asked) => string | undefined | Promise<string | undefined>
  /** The input that the node runs with after a yes: the person may have edited it. */
  readonly approved: (input: unknown, answer: unknown, asked: Asked) => unknown
  /** An update in place of the node's own after a yes: the person has done it themselves. Undefined runs the node. */
  readonly instead?: (input: unknown, answer: unknown) => unknown
  /** The update in place of the node's own after a no. */
  readonly denied: (input: unknown, answer: unknown) => unknown
}

export interface FunctionNodePlan extends NodePlanBase {
  readonly kind: 'function'
  /** Its own key for this input, instead of the derived one. */
  readonly key?: (input: unknown) => string | undefined | Promise<string | undefined>
  /**
   * The update from what a person says was the result of an effect with an unknown outcome. Default: the result itself.
   */
  readonly resolved?: (result: unknown, input: unknown) => unknown
  /** The update for a definite failure, which otherwise fails the run. */
  readonly failed?: (error: RecordedError, input: unknown) => unknown
  /** What a person is shown of the input before an effect on a fork, if that differs from what the node works with. */
  readonly shown?: (input: unknown) => unknown
  /** The span of an attempt, instead of a step's; undefined for none. */
  readonly span?: (input: unknown) => SpanPlan | undefined
  /** Its result is an update that has yet to be checked. */
  readonly run: (state: State, context: Context) => unknown
}

export interface GraphNodePlan extends NodePlanBase {
  readonly kind: 'graph'
  readonly graph: GraphPlan
  /** The input of the subgraph, yet to be checked by `graph.checkInput`. */
  readonly enter: (state: State, input: unknown) => unknown
  /**
   * The update of this graph's state when the subgraph has ended, yet to be checked. May be a promise. `input` is what
   * its task was given.
   */
  readonly leave: (subState: State, state: State, input?: unknown) => unknown
}

export type NodePlan = FunctionNodePlan | GraphNodePlan

/** Why a task can't be continued by a program. */
export interface Refusal {
  readonly reason: string
  readonly remedy: string
}

/** What a program requires of the context that `run({ context })` passes. */
export interface ContextPlan {
  /** What it must match. */
  readonly schemas: readonly StandardSchema[]
  /** The first of them is the program's own, and its result is what the program gets. */
  readonly isMade: boolean
  /** What is never recorded: these keys, or all of it. */
  readonly transient: true | readonly string[]
}

/** How long threads of a program are kept. */
export interface RetentionPlan {
  /** What the program itself says about it. */
  readonly retention?: RetentionPolicy
  /** How long they live if nobody says anything. Default 7 days. */
  readonly defaultTtlMs?: number
}

/** What follows a super-step. */
export interface Following {
  readonly tasks: readonly Task[]
  readonly joins: Joins
}

/** What the engine uses of a graph. */
export interface GraphPlan extends RetentionPlan {
  readonly kind: 'graph'
  /** What it is called for observers, if it is more than a graph. */
  readonly role?: 'agent'
  readonly name: string
  readonly version: string
  readonly compatibleWith: string | undefined
  /** How many super-steps one run may take. */
  readonly maxSteps: number
  /** How many tasks of a super-step run at once. Default: all. */
  readonly concurrency?: number | undefined
  readonly shape: StateShape
  readonly nodes: ReadonlyMap<string, NodePlan>
  /** From a name that may be recorded to the current name of the node. */
  readonly aliases: Readonly<Record<string, string>>
  readonly stateVersion: number
  readonly migrations: Migrations
  readonly context?: ContextPlan | undefined
  readonly inputSchema?: StandardSchema
  /** What every run changes when it takes its input, before that: known to the program, so no input has to say it. */
  readonly begins?: Update
  /** For runs that don't say otherwise. */
  readonly defaults?: { readonly frequency?: Frequency; readonly durability?: Durable }
  /** The output of a completed run. Default: the state. */
  output?(state: State): unknown
  /** The limit that ended a run before it was done; undefined if it ended on its own. */
  limit?(state: State): RunLimit | undefined
  /** What a run that a limit ended had done: for whoever awaited it, and must not do it again. Must be pure. */
  done?(state: State): unknown
  /**
   * Why a recorded task can't be continued; undefined if it can. Must be pure. `begun`: it was begun, and its outcome
   * is unknown.
   */
  refuse?(task: Task, begun: boolean): Refusal | undefined
  /** The update that an input makes to the state when a run begins. No input changes nothing. */
  checkInput(input: unknown): Promise<Update>
  /** The update that a state may begin with. Default: any update of the state. */
  checkInitial?(initial: unknown): Promise<Update>
  /** The node with this name, or with the name it has now; undefined if there is none. */
  resolve(name: string): NodePlan | undefined
  /** What runs first. */
  start(state: State): readonly Task[] | Promise<readonly Task[]>
  /**
   * What follows after these nodes finished in one super-step; nothing, if the run has ended. Names and joins may be
   * recorded ones, from before a node was renamed.
   */
  next(finished: readonly string[], state: State, joins: Joins): Following | Promise<Following>
}

/** What the engine uses of a flow. */
export interface FlowPlan extends RetentionPlan {
  readonly kind: 'flow'
  readonly name: string
  readonly version: string
  readonly compatibleWith: string | undefined
  /** Its states are in the thread `{ [companion]: id }`, and are removed when the thread `id` is erased. */
  readonly companion?: string
  /** What its steps have unless they say otherwise. */
  readonly policy: StepPolicy
  readonly context?: ContextPlan | undefined
  readonly inputSchema?: StandardSchema
  readonly outputSchema?: StandardSchema
  /** A promise only if there is a schema to check it by. */
  checkInput(input: unknown): unknown
  checkOutput(output: unknown): unknown
  readonly run: (context: Context, input: unknown) => unknown
}

export type ProgramPlan = GraphPlan | FlowPlan

/** A program with its own types for input, state and output. */
export interface TypedProgram<Input = unknown, State = unknown, Output = unknown> {
  readonly kind: 'agent'
  readonly plan: GraphPlan
  /** Never present at runtime: carries the types. */
  readonly '~types'?: { readonly input: Input; readonly state: State; readonly output: Output }
}
