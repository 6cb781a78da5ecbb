import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const LONGEST_COMPLAINT = 4000

/** A process of the demo's own. It ends when the one that started it does, because their channel closes. */
export interface Child<To, From> {
  readonly process: ChildProcess
  readonly pid: number
  /** Resolves when it has ended and everything that it said was heard. */
  readonly ended: Promise<{ readonly code: number | null; readonly complaint: string }>
  send(message: To): void
  /** The next message of this kind, or an error when the child ends first. */
  next<Type extends (From & { readonly type: string })['type']>(
    type: Type,
  ): Promise<Extract<From, { readonly type: Type }>>
}

/** Starts one of the scripts next to this file. */
export function startChild<To extends object, From extends { readonly type: string }>(
  script: string,
  settings: object,
  onMessage: (message: From) => void = () => {},
): Child<To, From> {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const child = fork(path, [JSON.stringify(settings)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let complaint = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-LONGEST_COMPLAINT)
  })
  const waiting: { readonly type: string; readonly take: (message: From) => void }[] = []
  child.on('message', (message) => {
    const heard = message as From
    const at = waiting.findIndex(({ type }) => type === heard.type)
    if (at >= 0) waiting.splice(at, 1)[0]?.take(heard)
    onMessage(heard)
  })
  const ended = new Promise<{ readonly code: number | null; readonly complaint: string }>((resolve) => {
    child.on('error', (error) => resolve({ code: -1, complaint: error.message }))
    child.on('close', (code) => resolve({ code, complaint }))
  })
  return {
    process: child,
    pid: child.pid ?? -1,
    ended,
    send(message) {
      // Whoever was killed a moment ago hears nothing anymore, and that is no error.
      if (child.connected) child.send(message, () => {})
    },
    next(type) {
      const found = new Promise<From>((take) => waiting.push({ type, take }))
      const failed = ended.then(({ code }) => {
        throw new Error(`A process of the demo ended (${code}) before it was ${type}. ${complaint}`)
      })
      return Promise.race([found, failed]) as never
    },
  }
}
