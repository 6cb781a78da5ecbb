import { IncompatibleError, InvalidProgramError } from '../../../core/errors.js'
import type { State } from '../../../log/entry/ops.js'
import { validate } from '../../../store/standard-schema.js'
import { type BranchDeclaration, END, type GraphDeclaration, type Send, START } from './graph-declaration.js'
import type { Following, Joins, NodePlan, Task } from '../program.js'
import { showState } from '../state/shown-state.js'

interface Join {
  readonly sources: readonly string[]
  readonly to: string
}

/** Decides what runs after what: a function of what finished, the state, and the joins in progress. */
export class GraphRoutes {
  readonly #title: string
  readonly #order: readonly string[]
  readonly #edges = new Map<string, string[]>()
  readonly #branches = new Map<string, BranchDeclaration[]>()
  readonly #joins = new Map<string, Join>()
  readonly #resolve: (name: string) => NodePlan | undefined

  constructor(declaration: GraphDeclaration, resolve: (name: string) => NodePlan | undefined) {
    this.#title = `graph "${declaration.name}"`
    this.#order = [...declaration.nodes.keys()]
    this.#resolve = resolve
    for (const { from, to } of declaration.edges) {
      const [source] = from
      if (from.length === 1 && source !== undefined) addTo(this.#edges, source, to)
      else this.#joins.set(joinKey(from, to), { sources: from, to })
    }
    for (const branch of declaration.branches) addTo(this.#branches, branch.from, branch)
  }

  async start(state: State): Promise<readonly Task[]> {
    const tasks = new TaskList()
    await this.#follow(START, state, tasks)
    return tasks.all
  }

  async next(finished: readonly string[], state: State, joins: Joins): Promise<Following> {
    const done = new Set(finished.map((name) => this.#current(name)))
    const tasks = new TaskList()
    // In the order of declaration, not of completion: siblings that finish in another order start the same tasks.
    for (const name of this.#order) {
      if (done.has(name)) await this.#follow(name, state, tasks)
    }
    const arrived = this.#arrivals(joins)
    const waiting: Record<string, readonly string[]> = {}
    for (const [key, { sources, to }] of this.#joins) {
      const before = arrived.get(key)
      const present = sources.filter((source) => done.has(source) || before?.has(source))
      if (present.length === sources.length) tasks.start(to)
      else if (present.length > 0) waiting[key] = present
    }
    return { tasks: tasks.all, joins: waiting }
  }

  async #follow(from: string, state: State, tasks: TaskList): Promise<void> {
    for (const to of this.#edges.get(from) ?? []) tasks.start(to)
    const branches = this.#branches.get(from)
    if (branches === undefined) return
    // What is new in it is noted but not written yet, or is in the records.
    const shown = showState(state)
    for (const branch of branches) await this.#choose(branch, shown, tasks)
  }

  async #choose(branch: BranchDeclaration, state: State, tasks: TaskList): Promise<void> {
    const choice: unknown = await branch.choose(state)
    const picks: readonly unknown[] = Array.isArray(choice) ? choice : [choice]
    if (picks.length === 0) this.#checkTarget(branch, END, 'an empty list, which ends the path')
    for (const pick of picks) {
      if (isSend(pick)) {
        this.#checkTarget(branch, pick.node, `send to ${quote(pick.node)}`)
        tasks.send(pick.node, await this.#checkItem(pick))
      } else {
        this.#checkTarget(branch, pick, quote(pick))
        tasks.start(pick)
      }
    }
  }

  #checkTarget({ from, targets }: BranchDeclaration, target: unknown, chosen: string): asserts target is string {
    if (targets.includes(target as string)) return
    throw new InvalidProgramError(
      `The branch from "${from}" in ${this.#title} chose ${chosen}, but its targets are: ${targets.join(', ')}.`,
      `branch from "${from}"`,
      'Add it to the targets of the branch, or choose one of them.',
      { node: from, target: typeof target === 'string' ? target : typeof target, targets },
    )
  }

  async #checkItem({ node, input }: Send): Promise<unknown> {
    if (node === END) {
      throw new InvalidProgramError(
        `A branch in ${this.#title} sends an input to END, where nothing runs.`,
        'branch',
        'Return END itself, or send to a node.',
        { target: END },
      )
    }
    const schema = this.#resolve(node)?.inputSchema
    return schema === undefined ? input : validate(schema, input, `input of "${node}"`)
  }

  /** Recorded joins under the current names of nodes. */
  #arrivals(joins: Joins): ReadonlyMap<string, ReadonlySet<string>> {
    const arrivals = new Map<string, Set<string>>()
    for (const [recorded, sources] of Object.entries(joins)) {
      const { sources: waitsFor, to } = readJoinKey(recorded)
      const key = joinKey(
        waitsFor.map((name) => this.#current(name)),
        to === END ? END : this.#current(to),
      )
      if (!this.#joins.has(key)) {
        throw new IncompatibleError(
          `A join of ${waitsFor.join(', ')} to "${to}" is in progress, but ${this.#title} has no such join.`,
          'unknown-join',
          'Declare it again, name renamed nodes in `aliases`, or run the version that recorded it.',
          { node: to, sources: waitsFor },
        )
      }
      arrivals.set(key, new Set([...(arrivals.get(key) ?? []), ...sources.map((name) => this.#current(name))]))
    }
    return arrivals
  }

  #current(name: string): string {
    const node = this.#resolve(name)
    if (node !== undefined) return node.name
    throw new IncompatibleError(
      `The node "${name}" is recorded, but ${this.#title} has no node of that name.`,
      'unknown-node',
      'Name it in `aliases` if it was renamed, or run the version that recorded it.',
      { node: name },
    )
  }
}

/** Nodes started by edges once each, and by sends once per item, in order. */
class TaskList {
  readonly all: Task[] = []
  readonly #started = new Set<string>([END])

  start(node: string): void {
    if (this.#started.has(node)) return
    this.#started.add(node)
    this.all.push({ node })
  }

  send(node: string, input: unknown): void {
    this.all.push(input === undefined ? { node } : { node, input })
  }
}

// Node names contain neither of the separators. Sorted: the order in which sources were listed means nothing.
function joinKey(sources: readonly string[], to: string): string {
  return `${[...sources].sort().join('/')}:${to}`
}

function readJoinKey(key: string): Join {
  const [sources = '', to = ''] = key.split(':')
  return { sources: sources.split('/'), to }
}

function addTo<Item>(lists: Map<string, Item[]>, key: string, item: Item): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [item])
  else list.push(item)
}

function isSend(pick: unknown): pick is Send {
  return (pick as Partial<Send> | null | undefined)?.kind === 'send'
}

function quote(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : `a value of type ${value === null ? 'null' : typeof value}`
}
