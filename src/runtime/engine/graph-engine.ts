import { isDeepStrictEqual } from 'node:util'
import { cloneValue, showValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import { andThen } from '../../core/at-once.js'
import { HoldfastError, IncompatibleError } from '../../core/errors.js'
import type { Draft } from '../../log/entry/draft.js'
import { type Op, remove, type State, set } from '../../log/entry/ops.js'
import type { StoreWrite } from '../../log/items/store-write.js'
import { Activation } from '../step/activation.js'
import { Places } from './places.js'
import type { Approval, Asked, FunctionNodePlan, GraphNodePlan, GraphPlan, NodePlan, Task } from '../program/program.js'
import { leftBegun, nondeterministic, StepFailedError } from '../errors.js'
import { gapOf } from '../run/gap.js'
import { findLost } from '../step/past-effects.js'
import { perform, type Work } from '../step/perform.js'
import { isEffect } from '../step/revisits.js'
import {
  awaitsChild,
  findBegun,
  inScope,
  isBegun,
  type Prefix,
  type RunState,
  scopeAt,
  type StepRecord,
  type TaskRecord,
  type Waiting,
} from '../run/run-state.js'
import type { Drive, Run } from '../run/run.js'
import { explainFrozen, ShownState } from '../program/shown-state.js'
import type { Recorded, Update } from '../program/state-shape.js'

const NOW = Promise.resolve()

/** What a task returned: an update that is already recorded, one that closes the super-step, or none yet. */
type Landed =
  | { readonly status: 'recorded' }
  | {
      readonly status: 'last'
      readonly update: Update
      readonly writes: readonly StoreWrite[]
      readonly closing: readonly Op[]
      readonly events: readonly unknown[]
    }
  | { readonly status: 'failed'; readonly error: unknown; readonly others?: readonly unknown[] }
  | { readonly status: 'suspended'; readonly waiting: readonly Waiting[] }

/** What is known of a task while it runs. */
interface Made {
  /** Its result is written. */
  recorded: boolean
  writes: readonly StoreWrite[]
  event: unknown
}

/** What a person said at a gate. */
interface Gate {
  readonly approved: boolean
  readonly update?: Update | undefined
}

/** What a node may run with, or what it becomes instead. */
type Agreed = { readonly input: unknown } | { readonly denied: unknown }

/**
 * Runs a graph, or a subgraph, starting from its recorded tasks. All tasks of a super-step run in parallel and each
 * result is recorded as it lands; the last one to land is recorded by the entry that closes the super-step. That entry
 * refers to the results recorded before it and does not copy them.
 */
export class GraphEngine {
  readonly #run: Run
  readonly #plan: GraphPlan
  readonly #prefix: Prefix
  readonly #path: string
  readonly #shown = new ShownState()
  /** The tasks were created here: nobody before us can have begun them. */
  #isNew = false

  constructor(run: Run, plan: GraphPlan, prefix: Prefix = [], path = '') {
    this.#run = run
    this.#plan = plan
    this.#prefix = prefix
    this.#path = path
  }

  /** Ends with the last entry noted but not yet written, so that it can say how the run ends. */
  async drive(): Promise<Drive> {
    if (this.#scope().tasks === undefined) {
      const starting = this.#plan.start(this.#state())
      const tasks = nameTasks(starting instanceof Promise ? await this.#orLeft(starting) : starting, 0)
      this.#run.log.add({ kind: 'step', ops: [set(inScope(this.#prefix, 'tasks'), tasks)] })
      this.#isNew = true
    }
    for (;;) {
      const scope = this.#scope()
      const tasks = scope.tasks ?? []
      if (tasks.length === 0) return { status: 'completed', output: this.#state() }
      const count = this.#count(scope)
      if (count >= this.#plan.maxSteps) return { status: 'failed', error: tooManySteps(this.#plan) }
      if (this.#run.draining) return { status: 'suspended', waiting: [] }
      const [only] = tasks
      // One alone waits for no turn, and is the last to land: most super-steps are like that.
      const landed =
        only !== undefined && tasks.length === 1 ? [await this.#runTask(only, isAlone)] : await this.#superStep(tasks)
      const [failure, ...others] = landed.flatMap((task) =>
        task.status === 'failed' ? [task.error, ...(task.others ?? [])] : [],
      )
      if (failure !== undefined) return { status: 'failed', error: failure, others }
      const waiting = landed.flatMap((task) => (task.status === 'suspended' ? [task] : []))
      if (waiting.length > 0) return { status: 'suspended', waiting: waiting.flatMap((task) => task.waiting) }
      const more = await this.#close(tasks, landed, count)
      for (const [i, one] of landed.entries()) if (one.status === 'last') this.#report(tasks[i], one.update)
      this.#isNew = true
      if (!more) return { status: 'completed', output: this.#state() }
    }
  }

  async #superStep(tasks: readonly TaskRecord[]): Promise<readonly Landed[]> {
    // Those with a record too: one that still waits at its gate keeps the super-step from closing.
    let left = tasks.length
    let unfinished = false
    const inTurn = this.#turns(tasks)
    return Promise.all(
      tasks.map(async (task): Promise<Landed> => {
        // What begins together is all known before the first of it runs.
        await NOW
        const landed = await inTurn(task, () => this.#runTask(task, () => left === 1 && !unfinished))
        left--
        if (landed.status === 'failed' || landed.status === 'suspended') unfinished = true
        return landed
      }),
    )
  }

  /** Lets as many tasks run at once as the graph and their nodes say. */
  #turns(tasks: readonly TaskRecord[]) {
    const { concurrency: most = Number.POSITIVE_INFINITY } = this.#plan
    const all = most < tasks.length ? new Places(most) : undefined
    const byNode = new Map<string, Places>()
    return (task: TaskRecord, run: () => Promise<Landed>): Promise<Landed> => {
      const { concurrency } = this.#plan.resolve(task.node) ?? {}
      if (concurrency === undefined && all === undefined) return run()
      // A task that waited for its turn may find that nothing new should start anymore.
      const start = async (): Promise<Landed> => (this.#run.draining ? { status: 'suspended', waiting: [] } : run())
      const inAll = () => (all ? all.run(start) : start())
      if (concurrency === undefined) return inAll()
      const places = byNode.get(task.node) ?? new Places(concurrency)
      byNode.set(task.node, places)
      return places.run(inAll)
    }
  }

  /** The node of a task, as what it began as where it may be of two kinds. */
  #nodeOf({ id, node: name }: TaskRecord): NodePlan | undefined {
    const node = this.#plan.resolve(name)
    if (node?.otherwise === undefined || this.#isNew) return node
    const { steps = {}, scopes = {} } = this.#scope()
    const isFunction = Object.keys(steps).some((path) => path.startsWith(`${id}/`))
    const begun = scopes[id] !== undefined ? 'graph' : isFunction ? 'function' : node.kind
    return begun === node.kind ? node : node.otherwise
  }

  /** Never rejects: one whose result can't be written must not leave the others behind. */
  async #runTask(task: TaskRecord, isLast: () => boolean): Promise<Landed> {
    try {
      const node = this.#nodeOf(task)
      if (node === undefined) return { status: 'failed', error: missingNode(this.#plan, task.node) }
      const path = this.#path === '' ? task.id : `${this.#path}/${task.id}`
      const activation = new Activation(this.#run, task.id, this.#prefix, this.#path, { isNew: this.#isNew })
      const made: Made = { recorded: this.#record(task)?.status === 'done', writes: [], event: completed(path) }
      const done = await activation.run(() => this.#runNode(node, task, path, activation, made))
      if (done.status === 'suspended') return done
      if (done.status === 'failed') {
        if (!(done.error instanceof Interrupted)) return { ...done, error: activation.explainFailure(done.error) }
        const { drive } = done.error
        return drive.status === 'completed' ? { status: 'failed', error: done.error } : drive
      }
      if (made.recorded) {
        const closing = activation.asking.closing(path)
        if (closing.length > 0) this.#run.log.add({ kind: 'step', ops: closing })
        return { status: 'recorded' }
      }
      const update = done.value as Update
      const { writes } = made
      const events = [made.event, ...done.notes]
      const hasScope = node.kind === 'graph' || !this.#isNew
      const closing = [...activation.asking.closing(path), ...(hasScope ? this.#leaveScope(task.id) : [])]
      if (isLast()) return { status: 'last', update, writes, closing, events }
      await this.#run.record({
        kind: 'step',
        ops: [this.#setDone(task, update), ...this.#dropInner(task.id, activation), ...closing],
        data: { events },
        ...(writes.length > 0 ? { store: writes } : {}),
      })
      this.#report(task, update)
      return { status: 'recorded' }
    } catch (error) {
      return { status: 'failed', error }
    }
  }

  /** The update of a node; undefined if it is recorded and nothing is left to ask. */
  async #runNode(
    node: NodePlan,
    task: TaskRecord,
    path: string,
    activation: Activation,
    made: Made,
  ): Promise<Update | undefined> {
    // A "no" must not be ignored because the program no longer asks.
    const isGated = node.pauseAfter || activation.asking.askedAt(`${path} after`)?.answer !== undefined
    if (made.recorded && (!isGated || this.#record(task)?.passed === true)) return undefined
    let update: Update = {}
    if (!made.recorded) {
      const state = this.#state()
      const losing = this.#findLost(node, task, state, activation)
      const lost = losing && (await losing)
      const begun = this.#isBegun(task)
      const entering = lost ? OPEN_GATE : this.#enter(node, task, path, activation, begun)
      const entry = entering instanceof Promise ? await entering : entering
      if (lost) {
        made.writes = lost.writes
        update = await this.#check(lost.result, task)
      } else if (entry.approved) {
        const agreeing = this.#agree(node, task, path, state, activation, begun)
        const agreed = agreeing instanceof Promise ? await agreeing : agreeing
        if ('denied' in agreed) update = await this.#check(agreed.denied, task)
        else {
          if (!this.#isNew) this.#checkLeft(node, task)
          const ran =
            node.kind === 'graph'
              ? await this.#runSubgraph(node, agreed.input, task, path, state)
              : await this.#runFunction(node, agreed.input, state, activation)
          if ('drive' in ran) throw new Interrupted(ran.drive)
          made.writes = ran.writes
          made.event = { type: 'step', step: path, status: 'completed', attempt: ran.attempts, ms: ran.ms }
          const checking = this.#check(ran.value, task)
          update = checking instanceof Promise ? await checking : checking
          activation.checkRevisited()
        }
      }
      // What the person said comes first, and the node may overrule it.
      if (entry.update) update = { ...entry.update, ...update }
    }
    if (!isGated) return update
    if (!made.recorded) {
      // Before the question is asked, so that the node does not run again when it is answered.
      await this.#run.record({
        kind: 'step',
        ops: [this.#setDone(task, update), ...this.#dropInner(task.id, activation), ...this.#leaveScope(task.id)],
        data: { events: [made.event] },
        ...(made.writes.length > 0 ? { store: made.writes } : {}),
      })
      made.recorded = true
    }
    const exit = await this.#gate(activation, 'after', task, path)
    const result = exit.approved ? (this.#record(task)?.result as Update) : {}
    const left = { ...result, ...exit.update }
    // Remembered in the record, because the question is now closed and must not be asked again while others wait.
    this.#run.log.add({ kind: 'step', ops: [this.#setDone(task, left, { passed: true })] })
    return left
  }

  /** Reports to listeners what a node's update means, now that it is recorded. */
  #report(task: TaskRecord | undefined, update: Update): void {
    const node = task && this.#plan.resolve(task.node)
    if (node?.report === undefined) return
    const path = this.#path === '' ? task?.id : `${this.#path}/${task?.id}`
    for (const event of node.report(update, path ?? '')) this.#run.emit(event)
  }

  #check(update: unknown, task: TaskRecord): Update | Promise<Update> {
    const checking = this.#plan.shape.check(update, `the update of node "${task.node}"`)
    return andThen(checking, (checked) => this.#own(checked))
  }

  /**
   * The outcome of a node's effect whose record the store may have lost. Resolved before its gates: a "no" there refers
   * to something that has yet to happen. Undefined if none of it happened, or nothing is in doubt.
   */
  #findLost(node: NodePlan, task: TaskRecord, state: State, activation: Activation) {
    const hasGate = node.pauseBefore || (node.kind === 'function' && node.approval !== undefined)
    if (node.kind !== 'function' || !hasGate || gapOf(this.#run.state) === undefined) return undefined
    return this.#findLostEffect(node, cloneValue(task.input as Value | undefined), state, activation)
  }

  async #findLostEffect(node: FunctionNodePlan, input: unknown, state: State, activation: Activation) {
    const work = this.#workOf(node, input, await node.key?.(input), state, activation)
    try {
      return await findLost(this.#run, work)
    } catch (error) {
      return { result: await this.#ifFailed(node, input, error), writes: [] as readonly StoreWrite[] }
    }
  }

  async #runFunction(node: FunctionNodePlan, input: unknown, state: State, activation: Activation) {
    const work = this.#workOf(node, input, node.key && (await node.key(input)), state, activation)
    try {
      const { result: value, writes, attempts, ms } = await perform(this.#run, work)
      return { value, writes, attempts, ms }
    } catch (error) {
      const value = await this.#ifFailed(node, input, error)
      return { value, writes: [] as readonly StoreWrite[], attempts: 1, ms: 0 }
    }
  }

  /** What a node makes of the failure of its effect, if it makes anything of it. */
  #ifFailed(node: FunctionNodePlan, input: unknown, error: unknown): unknown {
    if (!(error instanceof StepFailedError) || node.failed === undefined) throw error
    return node.failed(error.recorded, input)
  }

  #workOf(
    node: FunctionNodePlan,
    input: unknown,
    idempotencyKey: string | undefined,
    state: State,
    activation: Activation,
  ): Work {
    const options = { ...node.policy, input, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) }
    const work = activation.wholeWork(options, async (step) => {
      activation.restart()
      try {
        return (await node.run(state, activation.context(showInput(input), step))) ?? {}
      } catch (error) {
        throw explainFrozen(error, `Node "${node.name}"`, node.name)
      } finally {
        await activation.settled()
      }
    })
    const ask: typeof work.ask = async (kind, question, schema) => {
      // Of an effect that nobody has begun, they are asked about what it will be.
      const made = kind === 'permission' && node.shown ? { input: await node.shown(input) } : {}
      const answer = await work.ask(kind, { ...(question as object), ...made }, schema)
      const { outcome, allowed, result } = answer as { outcome?: string; allowed?: boolean; result?: unknown }
      // A person's own result stands in for the effect's, not for the node's update.
      const given = kind === 'unknown-effect' ? outcome === 'succeeded' : !allowed && result !== undefined
      if (!given || node.resolved === undefined) return answer
      return { ...(answer as object), result: await node.resolved(result, input) }
    }
    const isUnderWay = () => this.#inner(String(work.at.at(-1))).length > 0
    return { ...work, ask, sees: { state, input, isUnderWay }, span: node.span && (() => node.span?.(input)) }
  }

  async #runSubgraph(node: GraphNodePlan, input: unknown, task: TaskRecord, path: string, state: State) {
    const plan = node.graph
    const prefix = [...this.#prefix, 'scopes', task.id]
    if (scopeAt(this.#run.state, prefix).state === undefined) {
      const update = this.#own(await plan.checkInput(await node.enter(state, input)))
      const begun = plan.shape.reduce(plan.shape.initial(), [{ update }], [])
      this.#run.log.add({
        kind: 'step',
        ops: [
          set(inScope(prefix, 'state'), begun.state),
          // Absent means 1: most subgraphs never change theirs.
          ...(plan.stateVersion === 1 ? [] : [set(inScope(prefix, 'stateVersion'), plan.stateVersion)]),
        ],
      })
    }
    const drive = await this.#watched(path, new GraphEngine(this.#run, plan, prefix, path))
    if (drive.status !== 'completed') return { drive }
    const value = await node.leave(drive.output as State, state, input)
    return { value, writes: [] as readonly StoreWrite[], attempts: 1, ms: 0 }
  }

  /** Drives a subgraph within a span of its own, which fails with it. */
  async #watched(path: string, engine: GraphEngine): Promise<Drive> {
    const { watch, abort } = this.#run
    let drive: Drive | undefined
    // A drive reports its end, a span takes it from what is thrown.
    const once = async () => {
      drive = await engine.drive()
      if (drive.status === 'failed') throw drive.error
      if (drive.status === 'suspended') throw new Interrupted(drive)
      return drive
    }
    try {
      return await watch.step(path, 1, once, undefined, () => drive?.status === 'suspended' || abort.signal.aborted)
    } catch (error) {
      if (drive === undefined) throw error
      return drive
    }
  }

  /**
   * Whether any of a task was begun. Then no gate is asked anymore: a "no" would be recorded for what has happened, and
   * what is known about it would be dropped.
   */
  #isBegun({ id }: TaskRecord): boolean {
    if (this.#isNew) return false
    const { steps = {}, scopes = {} } = this.#scope()
    if ((isBegun(steps[id]) && !steps[id].missing) || scopes[id] !== undefined) return true
    return Object.entries(steps).some(
      ([path, record]) =>
        path.startsWith(`${id}/`) &&
        (isBegun(record) || awaitsChild(record) || record.status === 'done' || record.status === 'failed'),
    )
  }

  /**
   * A node may be of another kind than when it began. What it did then is in no record that it would reach again, so
   * this is checked before the node does anything: a subgraph in place of a function and the reverse, or a function
   * that is now itself an effect and used to have steps.
   */
  #checkLeft(node: NodePlan, { id }: TaskRecord): void {
    const { steps = {}, scopes = {} } = this.#scope()
    const own = Object.hasOwn(steps, id) ? steps[id] : undefined
    if (node.kind === 'graph' && isBegun(own)) throw leftBegun(id)
    if (node.kind === 'function' && scopes[id] !== undefined) {
      const begun = findBegun(scopes[id])
      if (begun !== undefined) throw leftBegun(`${id}/${begun}`)
      throw nondeterministic(`Node "${id}" was a subgraph when it began, and is a function now.`, id)
    }
    // One that was an effect before has an intent of its own, unless 0.1 wrote it.
    const isSame = isBegun(own) || own?.status === 'retry' || this.#run.state.run?.incarnation === undefined
    if (node.kind === 'function' && (isSame || (node.policy.effect ?? 'read') === 'read')) return
    for (const [path, record] of Object.entries(steps)) {
      if (!path.startsWith(`${id}/`) || !isEffect(record)) continue
      if (isBegun(record) || awaitsChild(record)) throw leftBegun(path)
      throw nondeterministic(`Step "${path}" is recorded, but node "${id}" is another by now and has no steps.`, path)
    }
  }

  /**
   * The gate before a node, if it has one and none of it was begun. What a person said there before counts, even if the
   * program no longer asks.
   */
  #enter(node: NodePlan, task: TaskRecord, path: string, activation: Activation, begun: boolean): Gate | Promise<Gate> {
    if (!begun && node.pauseBefore) return this.#gate(activation, 'before', task, path)
    const said = activation.asking.askedAt(`${path} before`)?.answer
    return said === undefined ? OPEN_GATE : this.#readGate(said)
  }

  /** Asks a person first, where the node says so: before anything is recorded as begun. */
  #agree(
    node: NodePlan,
    task: TaskRecord,
    path: string,
    state: State,
    activation: Activation,
    begun: boolean,
  ): Agreed | Promise<Agreed> {
    const input = showInput(task.input)
    const { approval } = node
    if (approval === undefined) return { input }
    // A "no" must not be ignored because the rule returns something else today.
    const before = activation.asking.askedAt(`${path} approval`)
    const needed = before !== undefined || begun || approval.needed(state, input, this.#run.context)
    return needed ? this.#askFirst(approval, input, path, state, activation, { before, begun, needed }) : { input }
  }

  async #askFirst(
    approval: Approval,
    input: Value | undefined,
    path: string,
    state: State,
    activation: Activation,
    asked: {
      readonly before: Asked | undefined
      readonly begun: boolean
      readonly needed: boolean | Promise<boolean>
    },
  ): Promise<Agreed> {
    const place = `${path} approval`
    const { before, begun } = asked
    if (!(await asked.needed)) return { input }
    if (begun) {
      // It was begun with what was agreed to then.
      const agreed = (before?.answer as { readonly approved?: boolean } | undefined)?.approved === true
      return { input: before && agreed ? await approval.approved(input, before.answer, before) : input }
    }
    const shown = (await approval.question(state, input, before)) as Value
    const jsonSchema = typeof approval.answer === 'function' ? await approval.answer(input) : approval.answer
    const isSame = before !== undefined && isDeepStrictEqual(before.question, shown)
    const shownWith = (answer: unknown): Asked => ({
      question: shown,
      answer: answer as Value,
      ...(isSame && !before.exact ? {} : { exact: true }),
    })
    const answer = await activation.ask('approval', place, shown, {
      jsonSchema,
      refuse: (given) => approval.refuse?.(input, given, shownWith(given)),
      ...(approval.expiresInMs === undefined ? {} : { expiresInMs: approval.expiresInMs }),
      ...(approval.onExpire === undefined ? {} : { onExpire: approval.onExpire }),
    })
    const { approved } = answer as { readonly approved?: boolean }
    if (!approved) return { denied: await approval.denied(input, answer) }
    const instead = await approval.instead?.(input, answer)
    return instead === undefined
      ? { input: await approval.approved(input, answer, shownWith(answer)) }
      : { denied: instead }
  }

  /** Asks whether to continue. An answer may bring an update of its own. */
  async #gate(activation: Activation, kind: 'before' | 'after', task: TaskRecord, path: string) {
    const result = kind === 'after' ? this.#scope().steps?.[task.id]?.result : undefined
    const shown = {
      node: task.node,
      ...(task.input === undefined ? {} : { input: task.input }),
      ...(result === undefined ? {} : { update: result }),
    }
    return this.#readGate(await activation.ask(kind, `${path} ${kind}`, shown, { jsonSchema: GATE_SCHEMA }))
  }

  async #readGate(answer: unknown): Promise<Gate> {
    const { approved, update } = answer as { readonly approved: boolean; readonly update?: unknown }
    const checked = update === undefined ? undefined : await this.#plan.shape.check(update, 'the answer’s update')
    return { approved, update: checked }
  }

  /**
   * Records what the super-step did to the state and what comes next; false if nothing does. A reducer or a branch that
   * throws must not cost what the last node did: that is recorded on its own.
   */
  async #close(tasks: readonly TaskRecord[], landed: readonly Landed[], count: number): Promise<boolean> {
    const at = landed.findIndex(({ status }) => status === 'last')
    const last = landed[at] as Extract<Landed, { readonly status: 'last' }> | undefined
    const store = last && last.writes.length > 0 ? { store: last.writes } : {}
    try {
      const scope = this.#scope()
      // The last result is recorded by this very entry: what each node returned is in the log, once.
      const updates = tasks.map((task, i): Recorded => {
        const own = landed[i] as Landed
        const from = inScope(this.#prefix, 'steps', task.id, 'result')
        const update = own.status === 'last' ? own.update : ((scope.steps?.[task.id]?.result ?? {}) as Update)
        return { update, from }
      })
      const reduced = this.#plan.shape.reduce(this.#state(), updates, [...this.#prefix, 'state'])
      const joins = scope.joins ?? {}
      const finished = tasks.map(({ node }) => node)
      const choosing = this.#plan.next(finished, reduced.state, joins)
      const next = choosing instanceof Promise ? await this.#orLeft(choosing) : choosing
      const draft: Draft = {
        kind: 'step',
        ops: [
          ...(last ? [this.#setDone(tasks[at] as TaskRecord, last.update)] : []),
          ...reduced.ops,
          set(inScope(this.#prefix, 'tasks'), nameTasks(next.tasks, count + 1)),
          ...(next.joins === joins ? [] : [set(inScope(this.#prefix, 'joins'), next.joins)]),
          remove(inScope(this.#prefix, 'steps')),
          set(this.#prefix.length === 0 ? ['run', 'count'] : inScope(this.#prefix, 'count'), count + 1),
          ...(last?.closing ?? []),
        ],
        ...(last ? { data: { events: last.events } } : {}),
        ...this.#showStatus(tasks, next.tasks),
        ...store,
      }
      if (next.tasks.length > 0) await this.#run.record(draft)
      else this.#run.log.add(draft)
      return next.tasks.length > 0
    } catch (error) {
      const task = tasks[at]
      if (task === undefined || last === undefined) throw error
      await this.#run.record({
        kind: 'step',
        ops: [this.#setDone(task, last.update), ...this.#dropInner(task.id), ...last.closing],
        data: { events: last.events },
        ...store,
      })
      throw error
    }
  }

  /** A branch may wait for something that knows nothing about the run: it is left behind when the run is stopped. */
  async #orLeft<Result>(choice: Promise<Result>): Promise<Result> {
    const { signal } = this.#run.abort
    let leave = () => {}
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(signal.reason)
      // One that is aborted already says so no more.
      if (signal.aborted) leave()
      else signal.addEventListener('abort', leave, { once: true })
    })
    try {
      return await Promise.race([choice, left])
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** What the index says changes when tasks begin or end that have a status of their own. */
  #showStatus(before: readonly Task[], next: readonly Task[]): Pick<Draft, 'index'> {
    if (this.#prefix.length > 0 || next.length === 0) return {}
    const status = statusOf(this.#plan, next)
    return status === statusOf(this.#plan, before) ? {} : { index: { status } }
  }

  #leaveScope(task: string): readonly Op[] {
    return this.#scope().scopes?.[task] === undefined ? [] : [remove(inScope(this.#prefix, 'scopes', task))]
  }

  #record({ id }: TaskRecord): StepRecord | undefined {
    return this.#scope().steps?.[id]
  }

  #setDone({ id }: TaskRecord, update: Update, more: Partial<StepRecord> = {}): Op {
    return set(inScope(this.#prefix, 'steps', id), { status: 'done', result: update as Value, ...more })
  }

  /** Records of steps inside of a node are of no use once the node itself is recorded. */
  #dropInner(task: string, activation?: Activation): readonly Op[] {
    // With thousands of tasks side by side, looking for them costs more than the tasks.
    if (this.#isNew && activation?.hasSteps === false) return []
    return this.#inner(task).map((path) => remove(inScope(this.#prefix, 'steps', path)))
  }

  /** The steps that are recorded inside of a node. */
  #inner(task: string): readonly string[] {
    return Object.keys(this.#scope().steps ?? {}).filter((path) => path.startsWith(`${task}/`))
  }

  #count(scope: ReturnType<typeof scopeAt>): number {
    return this.#prefix.length === 0 ? ((scope as RunState).run?.count ?? 0) : (scope.count ?? 0)
  }

  /** The state as the program sees it. */
  #state(): State {
    return this.#shown.show(this.#scope().state ?? {})
  }

  /** Nobody else's: what is noted is shown to the program as its state, which is frozen. */
  #own(update: Update): Update {
    return this.#run.keep(update) as Update
  }

  #scope(): ReturnType<typeof scopeAt> {
    return scopeAt(this.#run.state, this.#prefix)
  }
}

function completed(step: string) {
  return { type: 'step', step, status: 'completed' }
}

function isAlone(): boolean {
  return true
}

/** Carries the end of a subgraph out of the activation of its node. */
class Interrupted extends Error {
  readonly drive: Drive

  constructor(drive: Drive) {
    super(`The subgraph ${drive.status}.`)
    this.drive = drive
  }
}

const OPEN_GATE: Gate = { approved: true }

const GATE_SCHEMA: Value = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, update: { type: 'object' } },
  required: ['approved'],
  additionalProperties: false,
}

/** What the index shows of a thread while these tasks run. */
export function statusOf(plan: GraphPlan, tasks: readonly Task[]): string {
  for (const { node } of tasks) {
    const status = plan.resolve(node)?.status
    if (status !== undefined) return status
  }
  return 'active'
}

/** Names tasks so that each is found again: by super-step, node and position among those of the same node. */
export function nameTasks(tasks: readonly Task[], count: number): readonly TaskRecord[] {
  const places = new Map<string, number>()
  for (const { node } of tasks) places.set(node, (places.get(node) ?? 0) + 1)
  const next = new Map<string, number>()
  return tasks.map((task) => {
    const place = next.get(task.node) ?? 0
    next.set(task.node, place + 1)
    const many = (places.get(task.node) ?? 0) > 1
    return { ...task, id: many ? `${count}:${task.node}[${place}]` : `${count}:${task.node}` }
  })
}

function missingNode(plan: GraphPlan, node: string): IncompatibleError {
  return new IncompatibleError(
    `The run waits at node "${node}", which ${plan.name} ${plan.version} does not have.`,
    'missing-node',
    `Bring the node back, or name its successor in aliases: { ${JSON.stringify(node)}: … }.`,
    { node, program: plan.name, version: plan.version },
  )
}

function tooManySteps(plan: GraphPlan): HoldfastError {
  return new HoldfastError('step-failed', `${plan.name} reached its limit of ${plan.maxSteps} super-steps.`, {
    data: { maxSteps: plan.maxSteps, reason: 'step-limit' },
    remedy: 'Raise maxSteps, or give its loop an exit.',
  })
}

/** A copy: while records are written behind the program, a task's input is still the object that the program made. */
function showInput(input: unknown): Value | undefined {
  return showValue(cloneValue(input as Value | undefined))
}
