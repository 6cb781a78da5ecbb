import { existsSync, readFileSync } from 'node:fs'
import { dirname, extname, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { Holdfast } from '../../index.js'
import { usageError } from '../cli-error.js'
import type { CommandContext } from '../context.js'
import { isProgram, loadModule, loadPrograms, type Program } from './load-programs.js'

/** Makes the programs of a file, once there is a store for them. */
export type Host = (hf: Holdfast) => Promise<readonly Program[]>

/** What `langgraph.json` says, as far as it is used. */
interface LangGraphFile {
  readonly node_version?: unknown
  readonly graphs?: Readonly<Record<string, string | { readonly path?: unknown }>>
  readonly env?: string | Readonly<Record<string, string>>
}

/**
 * The programs of a file that is served: a module that exports programs of Holdfast and compiled graphs of LangGraph.js, or a
 * `langgraph.json` that names where graphs are.
 */
export async function loadServed(context: CommandContext, file: string): Promise<Host> {
  const found = extname(file) === '.json' ? await loadListed(context, file) : await loadExported(context, file)
  const graphs = [...found].filter(([, value]) => isGraph(value))
  if (graphs.length === 0) {
    const programs =
      extname(file) === '.json' ? [...found.values()].filter(isProgram) : await loadPrograms(context, file)
    return async () => programs
  }
  // Loaded only now: it needs LangGraph, which whoever has graphs has.
  const { hostGraph } = await import('../../adapters/langgraph/index.js')
  const programs = [...found.values()].filter(isProgram)
  return async (hf) => [...programs, ...graphs.map(([name, graph]) => hostGraph(hf, graph, { name }))]
}

/** What a module exports that can be served, by name. */
async function loadExported(context: CommandContext, file: string): Promise<ReadonlyMap<string, unknown>> {
  const found = new Map<string, unknown>()
  const add = (name: string, value: unknown): void => {
    if (isProgram(value)) found.set(`program ${value.plan.name}`, value)
    else if (isGraph(value)) found.set(name === 'default' ? 'graph' : name, value)
  }
  for (const [name, value] of Object.entries(await loadModule(context.path(file), file))) {
    add(name, value)
    if (typeof value !== 'object' || value === null || isProgram(value) || isGraph(value)) continue
    for (const [inner, one] of Object.entries(value)) add(inner, one)
  }
  return found
}

/** The graphs that a `langgraph.json` lists, by their names there. */
async function loadListed(context: CommandContext, file: string): Promise<ReadonlyMap<string, unknown>> {
  const path = context.path(file)
  const remedy = 'Write { "graphs": { "agent": "./agent.ts:graph" } } to it.'
  let content: LangGraphFile
  try {
    content = JSON.parse(readFileSync(path, 'utf8')) as LangGraphFile
  } catch (error) {
    throw usageError(`${file} can't be read: ${(error as Error).message}.`, remedy)
  }
  const { graphs, env, node_version: wanted } = content
  if (typeof graphs !== 'object' || graphs === null || Object.keys(graphs).length === 0) {
    throw usageError(`${file} lists no graphs.`, remedy)
  }
  const [major] = process.versions.node.split('.')
  if (wanted !== undefined && String(wanted) !== major) {
    context.output.note(`${file} asks for Node ${String(wanted)}; this is Node ${process.versions.node}.`)
  }
  setEnvironment(env, dirname(path))
  const found = new Map<string, unknown>()
  for (const [name, given] of Object.entries(graphs)) {
    const place = String(typeof given === 'string' ? given : given.path)
    const [, module = place, exported = 'default'] = /^(.*?)(?::([\w$]+))?$/.exec(place) ?? []
    const value = (await loadModule(resolve(dirname(path), module), module))[exported]
    // A function makes the graph.
    const graph: unknown = typeof value === 'function' && !isGraph(value) ? await value({ configurable: {} }) : value
    if (!isGraph(graph) && !isProgram(graph)) {
      throw usageError(`"${place}" in ${file} is not a graph.`, `Export what compile() returned from ${module}.`)
    }
    found.set(name, graph)
  }
  return found
}

/** The variables that graphs are to find. What is set already stays: whoever starts a server has the last word. */
function setEnvironment(env: LangGraphFile['env'], folder: string): void {
  const file = typeof env === 'string' ? resolve(folder, env) : undefined
  if (file !== undefined && !existsSync(file)) {
    throw usageError(
      `The file langgraph.json reads its environment from ${String(env)}, which does not exist.`,
      'Create that file.',
    )
  }
  const variables = file === undefined ? ((env ?? {}) as Record<string, string>) : parseEnv(readFileSync(file, 'utf8'))
  for (const [name, value] of Object.entries(variables)) process.env[name] ??= String(value)
}

// By shape: LangGraph is not loaded to look.
function isGraph(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { lg_is_pregel: isPregel, compile, addNode, graph } = value as Readonly<Record<string, unknown>>
  const isBuilder = typeof compile === 'function' && typeof addNode === 'function'
  return isPregel === true || isBuilder || (typeof graph === 'object' && isGraph(graph))
}
