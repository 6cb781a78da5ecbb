import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
export const programs = fileURLToPath(new URL('programs.mjs', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface CommandOptions {
  /** Written to standard input, with a while between the parts: a prompt throws away what comes before it asks. */
  readonly input?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** Runs the command as a user would: the built file, in a process of its own, without a terminal. */
export function holdfast(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  const { HOLDFAST_STORE: _, HOLDFAST_TENANT: __, NO_COLOR: ___, ...env } = process.env
  const child = spawn(process.execPath, [main, ...args], {
    cwd: options.cwd,
    env: { ...env, ...options.env },
    stdio: [options.input ? 'pipe' : 'ignore', 'pipe', 'pipe'],
  })
  return collect(child, options.input)
}

export function collect(child: ReturnType<typeof spawn>, input?: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    let out = ''
    let err = ''
    const left = [...(input ?? [])]
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      out += text
      // A prompt is on the screen: the next key.
      if (input && /[●○│]/.test(text) && left.length > 0) child.stdin?.write(left.shift() as string)
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      err += text
    })
    if (input && input[0]?.startsWith('{')) child.stdin?.end(left.shift())
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
