import { DEFAULT_LIMITS } from '../../codec/limits.js'
import type { Value } from '../../codec/value.js'
import { writeParts } from '../../codec/encode/write-parts.js'
import { andThen } from '../../core/async/at-once.js'
import { type Op, type Path, remove, type State, set } from '../../log/entry/ops.js'
import type { GraphPlan } from '../program/program.js'
import { isPlainObject } from '../program/state/reduce-key.js'
import { ShownState } from '../program/state/shown-state.js'
import type { Update } from '../program/state/state-shape.js'
import { inScope, type Prefix, scopeAt, joinPath } from '../run/state/read-run-state.js'
import type { RunState, ScopeState, StepRecord, TaskRecord } from '../run/state/run-state.js'
import type { Run } from '../run/run.js'

/** A graph, or a subgraph, in a run: where its records are, and how they are read and changed. */
export class GraphScope {
  readonly run: Run
  readonly plan: GraphPlan
  readonly prefix: Prefix
  /** Where it is in the thread, for people; empty for the program itself. */
  readonly path: string
  /** The tasks were created here: nobody before us can have begun them. */
  isNew = false
  readonly #shown = new ShownState()

  constructor(run: Run, plan: GraphPlan, prefix: Prefix = [], path = '') {
    this.run = run
    this.plan = plan
    this.prefix = prefix
    this.path = path
  }

  /** The subgraph that a task runs. */
  inside(plan: GraphPlan, task: TaskRecord): GraphScope {
    return new GraphScope(this.run, plan, [...this.prefix, 'scopes', task.id], this.pathOf(task))
  }

  get records(): ScopeState {
    return scopeAt(this.run.state, this.prefix)
  }

  /** The state as the program sees it. */
  get state(): State {
    return this.#shown.show(this.records.state ?? {})
  }

  /** How many super-steps the graph has taken. */
  get count(): number {
    const { records } = this
    return this.prefix.length === 0 ? ((records as RunState).run?.count ?? 0) : (records.count ?? 0)
  }

  setCount(count: number): Op {
    return set(this.prefix.length === 0 ? ['run', 'count'] : this.at('count'), count)
  }

  at(...rest: readonly [string, ...(string | number)[]]): Path {
    return inScope(this.prefix, ...rest)
  }

  /** Where a task is in the thread. */
  pathOf({ id }: TaskRecord): string {
    return joinPath(this.path, id)
  }

  recordOf({ id }: TaskRecord): StepRecord | undefined {
    return this.records.steps?.[id]
  }

  setDone({ id }: TaskRecord, update: Update, more: Partial<StepRecord> = {}): Op {
    return set(this.at('steps', id), { status: 'done', result: update as Value, ...more })
  }

  /** The steps that are recorded inside of a node. */
  stepsInside(task: string): readonly string[] {
    return Object.keys(this.records.steps ?? {}).filter((path) => path.startsWith(`${task}/`))
  }

  /**
   * Records of steps inside of a node are of no use once the node itself is recorded.
   * @param hasSteps whether the node requested any here.
   */
  dropInside({ id }: TaskRecord, hasSteps = true): readonly Op[] {
    // With thousands of tasks side by side, looking for them costs more than the tasks.
    if (this.isNew && !hasSteps) return []
    return this.stepsInside(id).map((path) => remove(this.at('steps', path)))
  }

  /** What a subgraph kept while it ran. */
  leaveScope({ id }: TaskRecord): readonly Op[] {
    return this.records.scopes?.[id] === undefined ? [] : [remove(this.at('scopes', id))]
  }

  /**
   * What a node returned in the form in which it is recorded, part by part as the state takes it. Nobody else's: it is
   * shown to the program as its state, which is frozen.
   */
  keep(update: unknown): unknown {
    const { run, plan } = this
    const parts =
      run.redactor === undefined && isPlainObject(update)
        ? writeParts(update, plan.shape.partsOf, DEFAULT_LIMITS)
        : undefined
    return parts ?? run.keep(update)
  }

  /** An update as it is recorded. `kept` is what is in that form already. */
  check(update: unknown, where: string, kept?: unknown): Update | Promise<Update> {
    return andThen(
      this.plan.shape.check(update, where),
      (checked) => (checked === kept ? checked : this.keep(checked)) as Update,
    )
  }
}
