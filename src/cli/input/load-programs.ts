import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { FlowProgram, ThreadSummary } from '../../index.js'
import type { Pipeline } from '../../pipeline/index.js'
import { CliError, usageError } from '../cli-error.js'
import type { CommandContext } from '../context.js'

/** An agent, a graph or a flow: the commands need only its name and what the library makes of it. */
export type Program = FlowProgram

/** The programs that a user's module exports, as its default or by name. */
export async function loadPrograms(context: CommandContext, file: string): Promise<readonly Program[]> {
  const { values, names } = await loadExports(context, file)
  const programs = new Map<string, Program>()
  for (const value of values) if (isProgram(value)) programs.set(value.plan.name, value)
  if (programs.size > 0) return [...programs.values()]
  throw usageError(
    `${file} exports no program.`,
    `It exports ${names}. Export what agent(), graph() or flow() returned.`,
  )
}

/** The pipeline that a user's module exports, or the one of this name if there are several. */
export async function loadPipeline(context: CommandContext, file: string, wanted?: string): Promise<Pipeline> {
  const { values, names } = await loadExports(context, file)
  const found = new Map<string, Pipeline>()
  for (const value of values) if (isPipeline(value)) found.set(value.plan.name, value)
  if (found.size === 0) {
    throw usageError(`${file} exports no pipeline.`, `It exports ${names}. Export what pipeline() returned.`)
  }
  const known = [...found.keys()].join(', ')
  if (wanted !== undefined) {
    const pipeline = found.get(wanted)
    if (pipeline) return pipeline
    throw new CliError('not-found', `${file} exports no pipeline "${wanted}".`, { remedy: `It exports ${known}.` })
  }
  if (found.size === 1) return [...found.values()][0] as Pipeline
  throw usageError(`${file} exports several pipelines: ${known}.`, 'Choose one with --pipeline.')
}

/** What a module exports, lists and records taken apart. */
async function loadExports(context: CommandContext, file: string) {
  const module = await loadModule(context.path(file), file)
  return { values: Object.values(module).flatMap(spread), names: Object.keys(module).join(', ') || 'nothing' }
}

/** The one program that is meant: by name, as what the thread was recorded by, or as the only one there is. */
export function chooseProgram(
  programs: readonly Program[],
  wanted: string | undefined,
  thread?: ThreadSummary,
): Program {
  const recorded = thread?.metadata['holdfast.program']
  const name = wanted ?? (typeof recorded === 'string' ? recorded : undefined)
  const names = programs.map(({ plan }) => plan.name).join(', ')
  if (name !== undefined) {
    const found = programs.find(({ plan }) => plan.name === name)
    if (found) return found
    const whose = wanted === undefined ? 'The thread belongs to the program' : 'There is no program'
    throw new CliError('not-found', `${whose} "${name}", which the module does not export.`, {
      remedy: `It exports ${names}.`,
      data: { program: name },
    })
  }
  if (programs.length === 1) return programs[0] as Program
  throw usageError(`The module exports several programs: ${names}.`, 'Choose one with --program.')
}

/** A user's module, TypeScript too. */
export async function loadModule(path: string, file: string): Promise<Readonly<Record<string, unknown>>> {
  if (!existsSync(path)) {
    throw new CliError('not-found', `There is no file ${file}.`, {
      remedy: 'Pass the module that exports your programs.',
    })
  }
  if (/\.[cm]?tsx?$/.test(extname(path))) await prepareTypeScript(path, file)
  return (await import(pathToFileURL(path).href)) as Record<string, unknown>
}

// By tsx if the project has it: it also finds the .ts file that an import calls .js. Newer versions of Node strip types
// by themselves.
async function prepareTypeScript(path: string, file: string): Promise<void> {
  let loader: string
  try {
    loader = createRequire(path).resolve('tsx')
  } catch {
    if ((process.features as { typescript?: unknown }).typescript) return
    throw usageError(
      `${file} is TypeScript, which Node ${process.versions.node} can't load.`,
      'Run `npm install --save-dev tsx`, use Node 22.18 or later, or pass the compiled .js file.',
    )
  }
  await import(pathToFileURL(loader).href)
}

function spread(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  if (isProgram(value) || isPipeline(value) || typeof value !== 'object' || value === null) return [value]
  return Object.values(value)
}

// By shape: the module may have another copy of the library than this command.
export function isProgram(value: unknown): value is Program {
  const plan = (value as { readonly plan?: { readonly kind?: unknown; readonly name?: unknown } } | null)?.plan
  return typeof plan === 'object' && plan !== null && typeof plan.name === 'string' && typeof plan.kind === 'string'
}

function isPipeline(value: unknown): value is Pipeline {
  const { kind, plan } = (value ?? {}) as { readonly kind?: unknown; readonly plan?: { readonly name?: unknown } }
  return kind === 'pipeline' && typeof plan?.name === 'string'
}
