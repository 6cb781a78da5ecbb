import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { FlowProgram, ThreadSummary } from '../index.js'
import { CliError, usageError } from './cli-error.js'
import type { CommandContext } from './context.js'

/** An agent, a graph or a flow: the commands need only its name and what the library makes of it. */
export type Program = FlowProgram

/** The programs that a user's module exports, as its default or by name. */
export async function loadPrograms(context: CommandContext, file: string): Promise<readonly Program[]> {
  const path = context.path(file)
  if (!existsSync(path)) {
    throw new CliError('not-found', `There is no file ${file}.`, {
      remedy: 'Pass the module that exports your programs.',
    })
  }
  const module = await importModule(path, file)
  const values = Object.values(module).flatMap(spread)
  const programs = new Map<string, Program>()
  for (const value of values) if (isProgram(value)) programs.set(value.plan.name, value)
  if (programs.size > 0) return [...programs.values()]
  throw usageError(
    `${file} exports no program.`,
    `It exports ${Object.keys(module).join(', ') || 'nothing'}. Export what agent(), graph() or flow() returned.`,
  )
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

async function importModule(path: string, file: string): Promise<Readonly<Record<string, unknown>>> {
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
  if (isProgram(value) || typeof value !== 'object' || value === null) return [value]
  return Object.values(value)
}

// By shape: the module may have another copy of the library than this command.
function isProgram(value: unknown): value is Program {
  const plan = (value as { readonly plan?: { readonly kind?: unknown; readonly name?: unknown } } | null)?.plan
  return typeof plan === 'object' && plan !== null && typeof plan.name === 'string' && typeof plan.kind === 'string'
}
