import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'

const NAMES = [
  'append',
  'apply-items',
  'bury',
  'count-index',
  'create',
  'erase',
  'headers',
  'heads',
  'index-labels',
  'mark-applied',
  'mark-bucket',
  'open-store',
  'prune',
  'put-blob',
  'read',
  'read-items',
  'reindex',
  'remove-blob',
  'renew',
  'reserve-due',
  'scan-index',
  'scan-items',
  'scan-tenants',
  'sweep-items',
  'tail',
  'take-due',
  'touch-blob',
  'write-items',
] as const

export type ScriptName = (typeof NAMES)[number]

export interface Script {
  readonly name: ScriptName
  readonly text: string
  /** By which the server knows it once it has seen the text. */
  readonly sha: string
}

export type Scripts = Readonly<Record<ScriptName, Script>>

/** The Lua files next to this one: one atomic operation each, with keys, arguments and replies in its header. */
export async function loadScripts(): Promise<Scripts> {
  const scripts = await Promise.all(NAMES.map(loadScript))
  return Object.fromEntries(scripts.map((script) => [script.name, script])) as Scripts
}

async function loadScript(name: ScriptName): Promise<Script> {
  const text = await expand(await readLua(`${name}.lua`))
  return { name, text, sha: createHash('sha1').update(text).digest('hex') }
}

// Comments travel to every server once and stay in its memory, so only the code is sent.
async function expand(source: string): Promise<string> {
  const lines = await Promise.all(
    source.split('\n').map((line) => {
      const include = /^\s*-- @include (\S+)$/.exec(line)?.[1]
      if (include !== undefined) return readLua(`include/${include}.lua`).then(expand)
      return /^\s*(--|$)/.test(line) ? '' : `${line}\n`
    }),
  )
  return lines.join('')
}

function readLua(path: string): Promise<string> {
  return readFile(new URL(`./scripts/${path}`, import.meta.url), 'utf8')
}
