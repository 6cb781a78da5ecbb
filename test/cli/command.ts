import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { runCli } from '#src/cli/run-cli.js'

export const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
export const pipelines = fileURLToPath(new URL('pipelines.mjs', import.meta.url))
export const programs = fileURLToPath(new URL('programs.mjs', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface CommandOptions {
  /** What standard input holds. */
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Who runs it. */
  readonly uid?: number
  /** As Ctrl-C would. */
  readonly signal?: AbortSignal
  /** How wide the terminal is that output goes to; without it, output goes to a pipe. */
  readonly columns?: number
  /** Called with everything that was printed so far, whenever there is more. */
  readonly onOutput?: (printed: string) => void
}

/** Runs a command line in this process, as if in a shell; nobody sits there who could be asked. */
export async function holdfast(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  const { input = '', env = {}, cwd = process.cwd(), signal = new AbortController().signal, onOutput } = options
  const screen = options.columns === undefined ? {} : { isTTY: true, columns: options.columns }
  let out = ''
  let err = ''
  const code = await runCli({
    args,
    env,
    cwd,
    uid: options.uid ?? process.getuid?.(),
    stdin: Readable.from([input]) as unknown as NodeJS.ReadStream,
    stdout: {
      ...screen,
      write: (text) => {
        out += text
        onOutput?.(out)
      },
    },
    stderr: { ...screen, write: (text) => void (err += text) },
    onInterrupt: () => signal,
  })
  return { code, out, err }
}

/** Runs a command as a user would: the built file, in a process of its own, without a terminal. */
export function holdfastProcess(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: options.cwd,
    env: { ...userEnv(), ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return collect(child)
}

/** The environment without what would change what commands do, or how node:test runs. */
export function userEnv(): NodeJS.ProcessEnv {
  const { HOLDFAST_STORE: _, HOLDFAST_TENANT: __, NO_COLOR: ___, NODE_TEST_CONTEXT: ____, ...env } = process.env
  return env
}

/** What a process says with --json once it is ready. Of its work it may tell before. */
export async function untilReady<Ready>(child: ReturnType<typeof spawn>): Promise<Ready> {
  for await (const line of createInterface({ input: child.stdout as Readable })) {
    if (line.startsWith('{"type":"ready"')) {
      // Read on: a process whose pipe is full stands still.
      child.stdout?.resume()
      return JSON.parse(line) as Ready
    }
  }
  throw new Error('It ended before it was ready.')
}

export function collect(child: ReturnType<typeof spawn>): Promise<Ended> {
  return new Promise((resolve, reject) => {
    let out = ''
    let err = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      err += text
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out, err }))
  })
}

/** The one JSON document that a command printed. */
// oxlint-disable-next-line typescript/no-explicit-any -- what was printed is what the test looks into.
export function parsed(ended: Ended): any {
  if (ended.out === '') throw new Error(`Nothing was printed: ${ended.err}`)
  return JSON.parse(ended.out)
}
