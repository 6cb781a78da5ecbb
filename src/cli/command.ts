import type { CommandContext } from './context.js'

/** What was given for a command's own options. */
export interface Options {
  readonly [name: string]: unknown
}

/** One command. Returns its exit code; nothing means 0. */
export type Command = (
  context: CommandContext,
  args: readonly (string | undefined)[],
  options: Options,
) => Promise<number | void>

/** Flags as commander reads them, and what they do. One whose flags end in `…` may be repeated. */
export type CommandOption = readonly [flags: string, description: string]

export interface CommandDeclaration {
  /** `fork <thread>`, as commander reads it; `store put <scope> …` is a command of the group `store`. */
  readonly usage: string
  readonly summary: string
  /** The heading of help that it stands under. */
  readonly group?: string
  readonly options?: readonly CommandOption[]
  readonly examples?: readonly string[]
  /** Loaded only when the command runs, so that help is quick. */
  readonly load: () => Promise<{ readonly run: Command }>
}

/** An option that takes a text. */
export function text(options: Options, name: string): string | undefined {
  const value = options[name]
  return typeof value === 'string' ? value : undefined
}

/** An option that may be given several times. */
export function list(options: Options, name: string): readonly string[] {
  const value = options[name]
  return Array.isArray(value) ? (value as string[]) : []
}
