import type { Draft } from '../../log/entry/draft.js'
import { type Op, remove, set } from '../../log/entry/ops.js'
import type { StoreWrite } from '../../log/items/store-write.js'
import type { Task } from '../program/program.js'
import type { Recorded, Update } from '../program/state-shape.js'
import type { TaskRecord, Waiting } from '../run/run-state.js'
import type { Drive } from '../run/run.js'
import { Activation } from '../step/activation.js'
import { nodeOf } from './begun-tasks.js'
import type { GraphScope } from './graph-scope.js'
import { Interrupted, NodeRun } from './node-run.js'
import { Places } from './places.js'
import { missingNode, nameTasks, statusOf, tooManySteps } from './tasks.js'

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
      const more = await this.#close(tasks, landed, count)
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
  async #runTask(task: TaskRecord, isLast: () => boolean): Promise<Landed> {
    const scope = this.#scope
    const { run, plan, prefix, isNew } = scope
    try {
      const node = nodeOf(scope, task)
      if (node === undefined) return { status: 'failed', error: missingNode(plan, task.node) }
      const path = scope.pathOf(task)
      const activation = new Activation(run, task.id, prefix, scope.path, { isNew })
      const running = new NodeRun(scope, node, task, path, activation, (inner) => new GraphEngine(inner).drive())
      const done = await activation.run(() => running.run())
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
      const { writes } = running
      const events = [running.event, ...done.notes]
      const hasScope = node.kind === 'graph' || !isNew
      const closing = hasScope ? [...asked, ...scope.leaveScope(task)] : asked
      if (isLast()) return { status: 'last', update, writes, closing, events }
      await run.record({
        kind: 'step',
        ops: [scope.setDone(task, update), ...scope.dropInside(task, activation.hasSteps), ...closing],
        data: { events },
        ...(writes.length > 0 ? { store: writes } : {}),
      })
      this.#report(task, update)
      return { status: 'recorded' }
    } catch (error) {
      return { status: 'failed', error }
    }
  }

  /** Reports to listeners what a node's update means, now that it is recorded. */
  #report(task: TaskRecord, update: Update): void {
    const { run, plan } = this.#scope
    const events = plan.resolve(task.node)?.report?.(update, this.#scope.pathOf(task)) ?? []
    for (const event of events) run.emit(event)
  }

  /**
   * Records what the super-step did to the state and what comes next; false if nothing does. A reducer or a branch that
   * throws must not cost what the last node did: that is recorded on its own.
   */
  async #close(tasks: readonly TaskRecord[], landed: readonly Landed[], count: number): Promise<boolean> {
    const scope = this.#scope
    const { run, plan } = scope
    const at = landed.findIndex(({ status }) => status === 'last')
    const last = landed[at] as Extract<Landed, { readonly status: 'last' }> | undefined
    const store = last && last.writes.length > 0 ? { store: last.writes } : {}
    try {
      const { steps, joins = {} } = scope.records
      // The last result is recorded by this very entry: what each node returned is in the log, once.
      const updates = tasks.map((task, i): Recorded => {
        const own = landed[i] as Landed
        const update = own.status === 'last' ? own.update : ((steps?.[task.id]?.result ?? {}) as Update)
        return { update, from: scope.at('steps', task.id, 'result') }
      })
      const reduced = plan.shape.reduce(scope.state, updates, [...scope.prefix, 'state'])
      const finished = tasks.map(({ node }) => node)
      const choosing = plan.next(finished, reduced.state, joins)
      const next = choosing instanceof Promise ? await this.#orLeft(choosing) : choosing
      const draft: Draft = {
        kind: 'step',
        ops: [
          ...(last ? [scope.setDone(tasks[at] as TaskRecord, last.update)] : []),
          ...reduced.ops,
          set(scope.at('tasks'), nameTasks(next.tasks, count + 1)),
          ...(next.joins === joins ? [] : [set(scope.at('joins'), next.joins)]),
          remove(scope.at('steps')),
          scope.setCount(count + 1),
          ...(last?.closing ?? []),
        ],
        ...(last ? { data: { events: last.events } } : {}),
        ...this.#showStatus(tasks, next.tasks),
        ...store,
      }
      if (next.tasks.length > 0) await run.record(draft)
      else run.log.add(draft)
      return next.tasks.length > 0
    } catch (error) {
      const task = tasks[at]
      if (task === undefined || last === undefined) throw error
      await run.record({
        kind: 'step',
        ops: [scope.setDone(task, last.update), ...scope.dropInside(task), ...last.closing],
        data: { events: last.events },
        ...store,
      })
      throw error
    }
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
  const [failure, ...others] = landed.flatMap((task) =>
    task.status === 'failed' ? [task.error, ...(task.others ?? [])] : [],
  )
  if (failure !== undefined) return { status: 'failed', error: failure, others }
  const waiting = landed.flatMap((task) => (task.status === 'suspended' ? [task] : []))
  if (waiting.length > 0) return { status: 'suspended', waiting: waiting.flatMap((task) => task.waiting) }
  return undefined
}

function isAlone(): boolean {
  return true
}
