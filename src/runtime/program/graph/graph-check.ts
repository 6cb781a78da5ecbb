import { InvalidProgramError } from '../../../core/errors.js'
import { END, type GraphDeclaration, START } from './graph-declaration.js'
import type { FullMigration, GraphPlan } from '../program.js'

/** Every check that can be made before a graph runs. Throws an InvalidProgramError that names what is wrong. */
export function checkGraph(declaration: GraphDeclaration): void {
  checkLimits(declaration)
  checkTargets(declaration)
  checkMentions(declaration)
  checkPaths(declaration)
  checkNesting(declaration)
}

function checkLimits({ name, maxSteps, stateVersion, migrations }: GraphDeclaration): void {
  if (!isCount(maxSteps)) throw refuse(name, `allows ${maxSteps} steps`, 'maxSteps', 'Use a whole number, 1 or more.')
  if (!isCount(stateVersion)) {
    throw refuse(name, `has state version ${stateVersion}`, 'stateVersion', 'Use a whole number, 1 or more.')
  }
  for (const [version, migrate] of Object.entries(migrations)) {
    const to = Number(version)
    if (isCount(to) && to >= 2 && to <= stateVersion && isMigration(migrate)) continue
    throw refuse(
      name,
      `has a migration to state version ${version}, but its state version is ${stateVersion}`,
      `migrations.${version}`,
      'Key each function, or { state, update }, by the version it leads to, from 2 up to stateVersion.',
    )
  }
}

function isMigration(migration: unknown): boolean {
  if (typeof migration === 'function') return true
  const { state, update } = (migration ?? {}) as Partial<FullMigration>
  return typeof state === 'function' && (update === undefined || typeof update === 'function')
}

function checkTargets({ name, nodes, edges, branches }: GraphDeclaration): void {
  for (const { from, to } of edges) {
    const field = `edge from ${from.map(quote).join(', ')} to ${quote(to)}`
    for (const source of from) {
      if (source === START && from.length === 1) continue
      if (!nodes.has(source)) throw unknownNode(name, `an edge from`, source, field)
    }
    if (to !== END && !nodes.has(to)) throw unknownNode(name, `an edge to`, to, field)
  }
  for (const { from, targets } of branches) {
    const field = `branch from ${quote(from)}`
    if (from !== START && !nodes.has(from)) throw unknownNode(name, `a branch from`, from, field)
    const target = targets.find((to) => to !== END && !nodes.has(to))
    if (target !== undefined) throw unknownNode(name, `a branch to`, target, field)
  }
}

function checkMentions({ name, nodes, pauseBefore, pauseAfter, aliases }: GraphDeclaration): void {
  for (const [field, names] of Object.entries({ pauseBefore, pauseAfter })) {
    const missing = names.find((node) => !nodes.has(node))
    if (missing !== undefined) throw unknownNode(name, `a pause at`, missing, field)
  }
  for (const [old, current] of Object.entries(aliases)) {
    if (!nodes.has(current)) throw unknownNode(name, `an alias of`, current, `aliases.${old}`)
    if (!nodes.has(old)) continue
    throw refuse(
      name,
      `has an alias ${quote(old)} that is the name of a node`,
      `aliases.${old}`,
      'Keep aliases for names that no node has anymore.',
      { node: old },
    )
  }
}

function checkPaths(declaration: GraphDeclaration): void {
  const { name, nodes } = declaration
  const forward = successors(declaration)
  if (forward.get(START) === undefined) {
    throw refuse(name, 'has no edge from START', 'edge from START', "Add .edge(START, 'first node').")
  }
  const reached = spread([START], forward)
  const unreached = [...nodes.keys()].find((node) => !reached.has(node))
  if (unreached !== undefined) {
    throw refuse(
      name,
      `never reaches the node ${quote(unreached)}`,
      `node ${quote(unreached)}`,
      'Lead an edge or a branch there, or remove it.',
      { node: unreached },
    )
  }
  const endings = [...nodes.keys()].filter((node) => !forward.has(node))
  const leaving = spread([END, ...endings], reversed(forward))
  const trapped = [...nodes.keys()].find((node) => !leaving.has(node))
  if (trapped === undefined) return
  throw refuse(
    name,
    `can never end after the node ${quote(trapped)}: it is part of, or leads to, a loop without an exit`,
    `node ${quote(trapped)}`,
    'Add a branch out of the loop, to END or to a node that ends.',
    { node: trapped },
  )
}

/** A graph inside one of the same name would be distinguished by nothing but its place, or nest forever. */
function checkNesting({ name, nodes }: GraphDeclaration): void {
  for (const node of nodes.values()) {
    if (node.work.kind !== 'graph' || !contains(node.work.graph, name)) continue
    throw refuse(
      name,
      `contains a graph of its own name at the node ${quote(node.name)}`,
      `node ${quote(node.name)}`,
      'Use a loop of edges instead of nesting a graph in itself, or give the inner graph another name.',
      { node: node.name },
    )
  }
}

function contains(plan: GraphPlan, name: string): boolean {
  if (plan.name === name) return true
  return [...plan.nodes.values()].some((node) => node.kind === 'graph' && contains(node.graph, name))
}

type Successors = Map<string, Set<string>>

function successors({ edges, branches }: GraphDeclaration): Successors {
  const found: Successors = new Map()
  for (const { from, to } of edges) for (const source of from) link(found, source, to)
  for (const { from, targets } of branches) for (const to of targets) link(found, from, to)
  return found
}

function reversed(forward: Successors): Successors {
  const found: Successors = new Map()
  for (const [from, targets] of forward) for (const to of targets) link(found, to, from)
  return found
}

function link(into: Successors, from: string, to: string): void {
  const targets = into.get(from) ?? new Set()
  into.set(from, targets.add(to))
}

function spread(begin: readonly string[], along: Successors): ReadonlySet<string> {
  const reached = new Set(begin)
  // A set also yields what is added to it while it is being walked.
  for (const node of reached) for (const next of along.get(node) ?? []) reached.add(next)
  return reached
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1
}

function quote(name: string): string {
  if (name === START) return 'START'
  return name === END ? 'END' : `"${name}"`
}

function unknownNode(graph: string, what: string, node: string, field: string): InvalidProgramError {
  return refuse(
    graph,
    `has ${what} ${quote(node)}, which is not one of its nodes`,
    field,
    'Declare it with .node, or correct the name.',
    { node },
  )
}

function refuse(
  graph: string,
  problem: string,
  field: string,
  remedy: string,
  data: Readonly<Record<string, unknown>> = {},
): InvalidProgramError {
  return new InvalidProgramError(`Graph "${graph}" ${problem}.`, field, remedy, { graph, ...data })
}
