import { cloneValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import { andThen, nowOrLater } from '../../core/async/at-once.js'
import { isHoldfastError } from '../../core/errors.js'
import { set, type State } from '../../log/entry/ops.js'
import type { StoreWrite } from '../../log/items/store-write.js'
import { StepFailedError } from '../errors.js'
import type { FunctionNodePlan, GraphNodePlan, NodePlan } from '../program/program.js'
import { explainFrozen } from '../program/state/shown-state.js'
import type { NotedEvent } from '../events/events.js'
import type { Update } from '../program/state/state-shape.js'
import { gapOf } from '../run/request/gap.js'
import { inScope, scopeAt } from '../run/state/read-run-state.js'
import type { TaskRecord } from '../run/state/run-state.js'
import type { Drive } from '../run/run-terms.js'
import type { Activation } from '../step/call/activation.js'
import { findLost } from '../step/attempt/past-effects.js'
import type { Attempt } from '../step/attempt/call-work.js'
import { perform } from '../step/perform.js'
import type { OwnWork, Performed, Work } from '../step/work.js'
import { checkLeft, isTaskBegun } from './tasks.js'
import { Gates, OPEN_GATE, showInput } from './gates.js'
import type { GraphScope } from './graph-scope.js'

/** What a person says about an effect. */
interface Told {
  readonly outcome?: string
  readonly allowed?: boolean
  readonly result?: unknown
}

/** Drives a subgraph from its recorded tasks. */
export type DriveGraph = (scope: GraphScope) => Promise<Drive>

/** Runs the node of one task, with its gates, and knows what became of it. */
export class NodeRun {
  /** Its result is written. */
  isRecorded: boolean
  writes: readonly StoreWrite[] = NO_WRITES
  event: NotedEvent
  readonly node: NodePlan
  readonly task: TaskRecord
  readonly path: string
  readonly #scope: GraphScope
  readonly #activation: Activation
  readonly #driveGraph: DriveGraph
  /** What the node's function returned, in the form in which it is recorded. */
  #kept: unknown

  constructor(scope: GraphScope, node: NodePlan, task: TaskRecord, activation: Activation, driveGraph: DriveGraph) {
    this.#scope = scope
    this.node = node
    this.task = task
    this.path = scope.pathOf(task)
    this.#activation = activation
    this.#driveGraph = driveGraph
    this.isRecorded = scope.recordOf(task)?.status === 'done'
    this.event = { type: 'step', step: this.path, status: 'completed' }
  }

  /** The update of the node; undefined if it is recorded and nothing is left to ask. */
  async run(): Promise<Update | undefined> {
    const task = this.task
    const gates = new Gates(this.#scope, this.node, task, this.path, this.#activation)
    const { hasExit } = gates
    if (this.isRecorded) {
      const isOver = !hasExit || this.#scope.recordOf(task)?.passed === true
      return isOver ? undefined : this.#leave(gates, {})
    }
    const { state } = this.#scope
    const losing = this.#findLost(state)
    const lost = losing && (await losing)
    const begun = isTaskBegun(this.#scope, task)
    const entering = lost ? OPEN_GATE : gates.enter(begun)
    const entry = entering instanceof Promise ? await entering : entering
    let update: Update = {}
    if (lost) {
      this.writes = lost.writes
      update = await this.#check(lost.result)
    } else if (entry.approved) {
      const agreeing = gates.agree(state, begun)
      const agreed = agreeing instanceof Promise ? await agreeing : agreeing
      if ('denied' in agreed) update = await this.#check(agreed.denied)
      else {
        if (!this.#scope.isNew) checkLeft(this.#scope, this.node, task)
        const checking = this.#check(await this.#execute(agreed.input, state))
        update = checking instanceof Promise ? await checking : checking
        this.#activation.checkRevisited()
      }
    }
    // What the person said comes first, and the node may overrule it.
    if (entry.update) update = { ...entry.update, ...update }
    return hasExit ? this.#leave(gates, update) : update
  }

  #execute(input: unknown, state: State): unknown {
    const { node } = this
    if (node.kind === 'graph') return this.#runSubgraph(node, input, state)
    const key = node.key && nowOrLater(node.key(input))
    return andThen(key, (own) => this.#runFunction(node, input, own, state))
  }

  /** Asks what becomes of the result, once that is recorded: the node must not run again when it is answered. */
  async #leave(gates: Gates, update: Update): Promise<Update> {
    const { run } = this.#scope
    const task = this.task
    if (!this.isRecorded) {
      const { hasSteps } = this.#activation
      await run.record({
        kind: 'step',
        ops: [
          this.#scope.setDone(task, update),
          ...this.#scope.dropInside(task, hasSteps),
          ...this.#scope.leaveScope(task),
        ],
        data: { events: [this.event] },
        ...(this.writes.length > 0 ? { store: this.writes } : {}),
      })
      this.isRecorded = true
    }
    const exit = await gates.leave()
    const result = exit.approved ? (this.#scope.recordOf(task)?.result as Update) : {}
    const left = { ...result, ...exit.update }
    // Remembered in the record, because the question is now closed and must not be asked again while others wait.
    run.log.add({ kind: 'step', ops: [this.#scope.setDone(task, left, { passed: true })] })
    return left
  }

  #check(update: unknown): Update | Promise<Update> {
    return this.#scope.check(update, `the update of node "${this.task.node}"`, this.#kept)
  }

  /**
   * The outcome of a node's effect whose record the store may have lost. Resolved before its gates: a "no" there refers
   * to something that has yet to happen. Undefined if none of it happened, or nothing is in doubt.
   */
  #findLost(state: State) {
    const node = this.node
    const hasGate = node.pauseBefore || (node.kind === 'function' && node.approval !== undefined)
    if (node.kind !== 'function' || !hasGate || gapOf(this.#scope.run.state) === undefined) return undefined
    return this.#findLostEffect(node, cloneValue(this.task.input as Value | undefined), state)
  }

  async #findLostEffect(node: FunctionNodePlan, input: unknown, state: State) {
    const work = this.#workOf(node, input, await node.key?.(input), state)
    try {
      return await findLost(this.#scope.run, work)
    } catch (error) {
      return { result: await ifFailed(node, input, error), writes: NO_WRITES }
    }
  }

  #runFunction(node: FunctionNodePlan, input: unknown, key: string | undefined, state: State): unknown {
    const work = this.#workOf(node, input, key, state)
    const performed = ({ result, writes, attempts, ms }: Performed): unknown => {
      this.#ran(writes, attempts, ms)
      this.#kept = result
      return result
    }
    const failed = (error: unknown): unknown => {
      this.#ran(NO_WRITES, 1, 0)
      return ifFailed(node, input, error)
    }
    try {
      const performing: Performed | Promise<Performed> = perform(this.#scope.run, work)
      return performing instanceof Promise ? performing.then(performed, failed) : performed(performing)
    } catch (error) {
      return failed(error)
    }
  }

  #ran(writes: readonly StoreWrite[], attempt: number, ms: number): void {
    this.writes = writes
    const { path: step } = this
    this.event = attempt === 1 ? { type: 'step', step, ms } : { type: 'step', step, status: 'completed', attempt, ms }
  }

  #workOf(node: FunctionNodePlan, input: unknown, idempotencyKey: string | undefined, state: State): Work {
    const activation = this.#activation
    const options = idempotencyKey === undefined ? { input } : { input, idempotencyKey }
    const attempt = (step: Attempt) => {
      activation.restart()
      const returned = (update: unknown) => andThen(activation.settling(), () => update ?? {})
      const threw = (error: unknown) =>
        andThen(activation.settling(), () => {
          throw explainFrozen(error, `Node "${node.name}"`, node.name)
        })
      try {
        const running = nowOrLater(node.run(state, activation.context(showInput(input), step)))
        return running instanceof Promise ? running.then(returned, threw) : returned(running)
      } catch (error) {
        return threw(error)
      }
    }
    return activation.wholeWork(node.policy, options, attempt, (ask) => this.#ownWork(node, input, state, ask))
  }

  /** What the work of a node has beyond that of a step. */
  #ownWork(node: FunctionNodePlan, input: unknown, state: State, askPerson: Work['ask']): OwnWork {
    const ask: Work['ask'] = async (kind, question, schema) => {
      // Of an effect that nobody has begun, they are asked about what it will be.
      const made = kind === 'permission' && node.shown ? { input: await node.shown(input) } : {}
      const isGiven = ({ outcome, allowed, result }: Told) =>
        kind === 'unknown-effect' ? outcome === 'succeeded' : !allowed && result !== undefined
      // A person's own result stands in for the effect's, not for the node's update.
      const updateOf = ({ result }: Told) =>
        node.resolved === undefined ? (result ?? {}) : node.resolved(result, input)
      const refuse = async (told: unknown) => {
        const refused = isGiven(told as Told) && (await this.#refuse(() => updateOf(told as Told)))
        return refused || undefined
      }
      const told = (await askPerson(kind, { ...(question as object), ...made }, schema, refuse)) as Told
      return isGiven(told) ? { ...told, result: await updateOf(told) } : told
    }
    const isUnderWay = () => this.#scope.stepsInside(this.task.id).length > 0
    return {
      ask,
      keep: (result) => this.#scope.keep(result),
      sees: { state, input, isUnderWay },
      span: node.span && (() => node.span?.(input)),
    }
  }

  /** Why the state can't take an update that a person gave. The effect is never repeated: every resume would fail. */
  async #refuse(update: () => unknown): Promise<string | undefined> {
    try {
      await this.#check(await update())
      return undefined
    } catch (error) {
      if (isHoldfastError(error, 'invalid-value') || isHoldfastError(error, 'invalid-program')) return error.message
      throw error
    }
  }

  async #runSubgraph(node: GraphNodePlan, input: unknown, state: State): Promise<unknown> {
    const { run } = this.#scope
    const scope = this.#scope.inside(node.graph, this.task)
    const { plan, prefix } = scope
    if (scopeAt(run.state, prefix).state === undefined) {
      const update = run.keep(await plan.checkInput(await node.enter(state, input))) as Update
      const begun = plan.shape.reduce(plan.shape.initial(), [{ update }], [])
      run.log.add({
        kind: 'step',
        ops: [
          set(inScope(prefix, 'state'), begun.state),
          // Absent means 1: most subgraphs never change theirs.
          ...(plan.stateVersion === 1 ? [] : [set(inScope(prefix, 'stateVersion'), plan.stateVersion)]),
        ],
      })
    }
    const drive = await this.#watched(scope)
    if (drive.status !== 'completed') throw new Interrupted(drive)
    const value = await node.leave(drive.output as State, state, input)
    this.#ran(NO_WRITES, 1, 0)
    return value
  }

  /** Drives a subgraph within a span of its own, which fails with it. */
  async #watched(scope: GraphScope): Promise<Drive> {
    const { watch, abort } = scope.run
    let drive: Drive | undefined
    // A drive reports its end, a span takes it from what is thrown.
    const once = async () => {
      drive = await this.#driveGraph(scope)
      if (drive.status === 'failed') throw drive.error
      if (drive.status === 'suspended') throw new Interrupted(drive)
      return drive
    }
    const isLeft = () => drive?.status === 'suspended' || abort.aborted
    try {
      return await watch.step(this.path, 1, once, undefined, isLeft)
    } catch (error) {
      if (drive === undefined) throw error
      return drive
    }
  }
}

/** Carries the end of a subgraph out of the activation of its node. */
export class Interrupted extends Error {
  readonly drive: Drive

  constructor(drive: Drive) {
    super(`The subgraph ${drive.status}.`)
    this.drive = drive
  }
}

const NO_WRITES: readonly StoreWrite[] = []

/** What a node makes of the failure of its effect, if it makes anything of it. */
function ifFailed(node: FunctionNodePlan, input: unknown, error: unknown): unknown {
  if (!(error instanceof StepFailedError) || node.failed === undefined) throw error
  return node.failed(error.recorded, input)
}
