import { andThen } from '../../core/async/at-once.js'
import type { Draft } from '../../log/entry/draft.js'
import { type Op, remove, set } from '../../log/entry/ops.js'
import type { StoreWrite } from '../../log/items/store-write.js'
import type { Task } from '../program/program.js'
import type { Recorded, Update } from '../program/state/state-shape.js'
import type { TaskRecord, Waiting } from '../run/state/run-state.js'
import type { Drive } from '../run/run-terms.js'
import { type Activated, Activation } from '../step/call/activation.js'
import { missingNode, nameTasks, nodeOf, Places, statusOf, tooManySteps } from './tasks.js'
import { closeByChanges } from './closings.js'
import type { GraphScope } from './graph-scope.js'
import { Interrupted, NodeRun } from './node-run.js'

const NOW = Promise.resolve()

interface Last {
  readonly status: 'last'
  readonly update: Update
  readonly writes: readonly StoreWrite[]
  readonly closing: readonly Op[]
  readonly events: readonly unknown[]
}

/** The entry that closes a super-step; `more`, if another follows it. */
interface Closing {
  readonly entry: Draft
  readonly more: boolean
}

/** What a task returned: an update that is already recorded, one that closes the super-step, or none yet. */
type Landed =
  | { readonly status: 'recorded' }
  | Last
  | { readonly status: 'failed'; readonly error: unknown; readonly others?: readonly unknown[] }
  | { readonly status: 'suspended'; readonly waiting: readonly Waiting[] }

/**
 * Runs a graph, or a subgraph, starting from its recorded tasks. All tasks of a super-step run in parallel and each
 * result is recorded as it lands; the last one to land is recorded by the entry that closes the super-step. That entry
 * refers to the results recorded before it and does not copy them.
 */
export class GraphEngine {
  readonly #scope: GraphScope

  constructor(scope: GraphScope) {
    this.#scope = scope
  }

  /** Ends with the last entry noted but not yet written, so that it can say how the run ends. */
  async drive(): Promise<Drive> {
    const scope = this.#scope
    const { run, plan } = scope
    if (scope.records.tasks === undefined) {
      const starting = plan.start(scope.state)
      const tasks = nameTasks(starting instanceof Promise ? await this.#orLeft(starting) : starting, 0)
      run.log.add({ kind: 'step', ops: [set(scope.at('tasks'), tasks)] })
      scope.isNew = true
    }
    for (;;) {
      const tasks = scope.records.tasks ?? []
      if (tasks.length === 0) return { status: 'completed', output: scope.state }
      const { count } = scope
      if (count >= plan.maxSteps) return { status: 'failed', error: tooManySteps(plan) }
      if (run.draining) return { status: 'suspended', waiting: [] }
      const [only] = tasks
      // One alone waits for no turn, and is the last to land: most super-steps are like that.
      const landed =
        only !== undefined && tasks.length === 1 ? [await this.#runTask(only, isAlone)] : await this.#superStep(tasks)
      const end = endOf(landed)
      if (end !== undefined) return end
      let more: boolean
      try {
        const closing = this.#close(tasks, landed, count)
        const draft = closing instanceof Promise ? await closing : closing
        more = draft.more
        if (more) await run.record(draft.entry)
        else run.log.add(draft.entry)
      } catch (error) {
        await this.#keepLast(tasks, landed)
        throw error
      }
      for (const [i, one] of landed.entries())
        if (one.status === 'last') this.#report(tasks[i] as TaskRecord, one.update)
      scope.isNew = true
      if (!more) return { status: 'completed', output: scope.state }
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
    const { run: thread, plan } = this.#scope
    const { concurrency: most = Number.POSITIVE_INFINITY } = plan
    const all = most < tasks.length ? new Places(most) : undefined
    const byNode = new Map<string, Places>()
    return (task: TaskRecord, run: () => Promise<Landed>): Promise<Landed> => {
      const { concurrency } = plan.resolve(task.node) ?? {}
      if (concurrency === undefined && all === undefined) return run()
      // A task that waited for its turn may find that nothing new should start anymore.
      const start = async (): Promise<Landed> => (thread.draining ? { status: 'suspended', waiting: [] } : run())
      const inAll = () => (all ? all.run(start) : start())
      if (concurrency === undefined) return inAll()
      const places = byNode.get(task.node) ?? new Places(concurrency)
      byNode.set(task.node, places)
      return places.run(inAll)
    }
  }

  /** Never rejects: one whose result can't be written must not leave the others behind. */
  #runTask(task: TaskRecord, isLast: () => boolean): Promise<Landed> {
    const scope = this.#scope
    const { run, plan, prefix, isNew } = scope
    const failed = (error: unknown): Landed => ({ status: 'failed', error })
    try {
      const node = nodeOf(scope, task)
      if (node === undefined) throw missingNode(plan, task.node)
      const activation = new Activation(run, task.id, prefix, scope.path, { isNew })
      const running = new NodeRun(scope, node, task, activation, (inner) => new GraphEngine(inner).drive())
      return activation
        .run(() => running.run())
        .then((done) => {
          try {
            const landing = this.#land(running, activation, done, isLast)
            return landing instanceof Promise ? landing.catch(failed) : landing
          } catch (error) {
            return failed(error)
          }
        })
    } catch (error) {
      return Promise.resolve(failed(error))
    }
  }

  /** What became of a task: recorded by now, unless it is the last of its super-step. */
  #land(running: NodeRun, activation: Activation, done: Activated, isLast: () => boolean): Landed | Promise<Landed> {
    const scope = this.#scope
    const { run, isNew } = scope
    const { task, node, path, writes } = running
    if (done.status === 'suspended') return done
    if (done.status === 'failed') {
      if (!(done.error instanceof Interrupted)) return { ...done, error: activation.explainFailure(done.error) }
      const { drive } = done.error
      return drive.status === 'completed' ? { status: 'failed', error: done.error } : drive
    }
    const asked = activation.asking.closing(path)
    if (running.isRecorded) {
      if (asked.length > 0) run.log.add({ kind: 'step', ops: asked })
      return { status: 'recorded' }
    }
    const update = done.value as Update
    const events = [running.event, ...done.notes]
    const hasScope = node.kind === 'graph' || !isNew
    const closing = hasScope ? [...asked, ...scope.leaveScope(task)] : asked
    if (isLast()) return { status: 'last', update, writes, closing, events }
    const recording = run.record({
      kind: 'step',
      ops: [scope.setDone(task, update), ...scope.dropInside(task, activation.hasSteps), ...closing],
      data: { events },
      ...(writes.length > 0 ? { store: writes } : {}),
    })
    return recording.then(() => {
      this.#report(task, update)
      return { status: 'recorded' }
    })
  }

  /** Reports to listeners what a node's update means, now that it is recorded. */
  #report(task: TaskRecord, update: Update): void {
    const { run, plan } = this.#scope
    const events = plan.resolve(task.node)?.report?.(update, this.#scope.pathOf(task)) ?? []
    for (const event of events) run.emit(event)
  }

  /** What the super-step did to the state, and what comes next. */
  #close(tasks: readonly TaskRecord[], landed: readonly Landed[], count: number): Closing | Promise<Closing> {
    const scope = this.#scope
    const { plan, records, state } = scope
    const { steps, joins = {} } = records
    const byChanges = this.#isToldByChanges(tasks, landed)
    // The last result is recorded by this very entry: what each node returned is in the log, once.
    const updates = tasks.map((task, i): Recorded => {
      const own = landed[i] as Landed
      const update = own.status === 'last' ? own.update : ((steps?.[task.id]?.result ?? {}) as Update)
      return byChanges ? { update } : { update, from: scope.at('steps', task.id, 'result') }
    })
    const reduced = plan.shape.reduce(state, updates, [...scope.prefix, 'state'])
    const finished = tasks.map(({ node }) => node)
    const choosing = plan.next(finished, reduced.state, joins)
    return andThen(choosing instanceof Promise ? this.#orLeft(choosing) : choosing, (next) => {
      const [task, last] = lastOf(tasks, landed)
      const named = nameTasks(next.tasks, count + 1)
      const at = { steps: scope.at('steps'), tasks: scope.at('tasks') }
      const ops = byChanges
        ? closeByChanges(records, at, scope.setCount(count + 1), reduced.ops, named)
        : [
            ...(last ? [scope.setDone(task, last.update)] : []),
            ...reduced.ops,
            set(at.tasks, named),
            remove(at.steps),
            scope.setCount(count + 1),
          ]
      if (next.joins !== joins) ops.push(set(scope.at('joins'), next.joins))
      if (last) ops.push(...last.closing)
      const entry: Draft = {
        kind: 'step',
        ops,
        ...(last ? withEvents(last) : {}),
        ...this.#showStatus(tasks, next.tasks),
      }
      return { entry, more: next.tasks.length > 0 }
    })
  }

  /** One node alone did what its changes say, unless it is a subgraph, whose result is more than that. */
  #isToldByChanges(tasks: readonly TaskRecord[], landed: readonly Landed[]): boolean {
    const [only] = landed
    if (tasks.length !== 1 || only?.status !== 'last') return false
    const { plan, state, records } = this.#scope
    const { id, node } = tasks[0] as TaskRecord
    if (plan.resolve(node)?.kind !== 'function' || records.scopes?.[id] !== undefined) return false
    return plan.shape.isToldByOps(state, only.update)
  }

  /** A reducer or a branch that throws must not cost what the last node did: that is recorded on its own. */
  async #keepLast(tasks: readonly TaskRecord[], landed: readonly Landed[]): Promise<void> {
    const scope = this.#scope
    const [task, last] = lastOf(tasks, landed)
    if (last === undefined) return
    const ops = [scope.setDone(task, last.update), ...scope.dropInside(task), ...last.closing]
    await scope.run.record({ kind: 'step', ops, ...withEvents(last) })
  }

  /** A branch may wait for something that knows nothing about the run: it is left behind when the run is stopped. */
  async #orLeft<Result>(choice: Promise<Result>): Promise<Result> {
    const { signal } = this.#scope.run.abort
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
    const { plan, prefix } = this.#scope
    if (prefix.length > 0 || next.length === 0) return {}
    const status = statusOf(plan, next)
    return status === statusOf(plan, before) ? {} : { index: { status } }
  }
}

/** Why the graph can't go on after these tasks; undefined if it can. */
function endOf(landed: readonly Landed[]): Drive | undefined {
  if (landed.every(({ status }) => status === 'recorded' || status === 'last')) return undefined
  const [failure, ...others] = landed.flatMap((task) =>
    task.status === 'failed' ? [task.error, ...(task.others ?? [])] : [],
  )
  if (failure !== undefined) return { status: 'failed', error: failure, others }
  const waiting = landed.flatMap((task) => (task.status === 'suspended' ? [task] : []))
  if (waiting.length > 0) return { status: 'suspended', waiting: waiting.flatMap((task) => task.waiting) }
  return undefined
}

/** The task that is recorded by the entry that closes its super-step. */
function lastOf(tasks: readonly TaskRecord[], landed: readonly Landed[]) {
  const at = landed.findIndex(({ status }) => status === 'last')
  return [tasks[at] as TaskRecord, landed[at] as Last | undefined] as const
}

function withEvents({ events, writes }: Last): Pick<Draft, 'data' | 'store'> {
  return writes.length > 0 ? { data: { events }, store: writes } : { data: { events } }
}

function isAlone(): boolean {
  return true
}
