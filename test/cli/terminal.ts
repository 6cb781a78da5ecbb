import { stripVTControlCharacters } from 'node:util'
import pty from '@lydell/node-pty'
import { main, userEnv } from './command.js'

export interface Screen {
  readonly code: number
  /** Everything that was written, with its colours and cursor movements. */
  readonly raw: string
  /** The same as text, its line ends as they are in files. */
  readonly text: string
}

export interface TerminalOptions {
  readonly columns?: number
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** What the person does: when the text has appeared since the last of them, the keys are pressed. */
  readonly keys?: readonly (readonly [seen: string | RegExp, keys: string])[]
}

/** Runs a command on a terminal, where standard input, output and error are the same screen. */
export function onTerminal(args: readonly string[], options: TerminalOptions = {}): Promise<Screen> {
  const { columns = 80, env = {}, cwd = process.cwd(), keys = [] } = options
  const terminal = pty.spawn(process.execPath, [main, ...args], {
    cols: columns,
    rows: 40,
    cwd,
    env: { ...userEnv(), TERM: 'xterm-256color', ...env },
  })
  return new Promise((resolve, reject) => {
    let raw = ''
    let looked = 0
    const left = [...keys]
    terminal.onData((data) => {
      raw += data
      const next = left[0]
      if (next === undefined || !includes(stripVTControlCharacters(raw.slice(looked)), next[0])) return
      left.shift()
      looked = raw.length
      terminal.write(next[1])
    })
    terminal.onExit(({ exitCode }) => {
      const text = stripVTControlCharacters(raw).replaceAll('\r\n', '\n')
      if (left.length > 0) reject(new Error(`Never seen: ${left.map(([seen]) => seen).join(', ')}\n${text}`))
      else resolve({ code: exitCode, raw, text })
    })
  })
}

function includes(text: string, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)
}
