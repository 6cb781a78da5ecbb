import { spawn } from 'node:child_process'
import { afterEach } from 'vitest'
import { main, userEnv } from '../cli/command.js'

const TOKEN = 'token-for-the-tests'

/** `holdfast serve <file>` in processes of their own, which end with each test. */
export function setUpProcesses(file: string) {
  const children: ReturnType<typeof spawn>[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  /** One of them, once it listens. */
  async function serve(
    store: string,
    args: readonly string[] = [],
    env: Record<string, string> = { HOLDFAST_TOKEN: TOKEN },
    served = file,
  ) {
    const child = spawn(process.execPath, [main, 'serve', served, '--port', '0', '--json', '--store', store, ...args], {
      env: { ...userEnv(), ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.push(child)
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
    const line = await new Promise<string>((resolve) => child.stdout.once('data', (data) => resolve(String(data))))
    return { child, ended, ready: JSON.parse(line.split('\n')[0] as string) as { url: string; token?: string } }
  }

  return { serve, TOKEN }
}
