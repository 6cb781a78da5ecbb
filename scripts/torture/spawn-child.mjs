// @ts-check
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const CHILD = fileURLToPath(new URL('./child.mjs', import.meta.url))

/**
 * Starts child.mjs, or another script beside it. `lines` fills as the child prints; `exited` resolves with its exit
 * code, or null when killed, after its last line was read.
 * @param {readonly string[]} args
 * @param {{ onLine?: (line: string) => void, nodePath?: string, script?: string }} [options]
 */
export function spawnChild(args, { onLine, nodePath = process.execPath, script } = {}) {
  const path = script === undefined ? CHILD : fileURLToPath(new URL(script, import.meta.url))
  const child = spawn(nodePath, [path, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  /** @type {string[]} */
  const lines = []
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  const reader = createInterface({ input: child.stdout })
  /** @type {{ matches: (line: string) => boolean, resolve: (line: string) => void }[]} */
  let waiting = []
  reader.on('line', (line) => {
    lines.push(line)
    onLine?.(line)
    for (const waiter of waiting.filter(({ matches }) => matches(line))) waiter.resolve(line)
    waiting = waiting.filter(({ matches }) => !matches(line))
  })
  const read = new Promise((resolve) => reader.on('close', () => resolve(undefined)))
  /** @type {Promise<number | null>} */
  const exited = new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', async (code) => {
      await read
      resolve(code)
    })
  })
  return {
    child,
    lines,
    exited,
    errors: () => errors,
    /** The next line that begins like this, or an error when the child ends first. @param {string} start @returns {Promise<string>} */
    line(start) {
      const found = new Promise((resolve) => {
        waiting.push({ matches: (line) => line.startsWith(start), resolve })
      })
      const ended = exited.then((code) => {
        throw new Error(`The child ended (${code}) before it printed "${start}": ${errors}`)
      })
      return Promise.race([found, ended])
    },
  }
}
