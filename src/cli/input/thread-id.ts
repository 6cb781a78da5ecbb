import type { ThreadIdInput } from '../../index.js'
import { usageError } from '../cli-error.js'

const PART = /^([A-Za-z_][\w.-]*)=([^=]+)$/

/**
 * Reads a thread id as people write it: `bf-847`, or named parts `user=user-42,session=bf-847`. Whatever follows a
 * backslash is a plain id taken literally, so `\a=b` is the plain id `a=b`. In parts, `%2c %3d %25 %7b %7d` stand for
 * the separators , = % { }.
 */
export function parseThreadId(text: string): ThreadIdInput {
  if (text.startsWith('\\')) return text.slice(1)
  const braced = text.startsWith('{') && text.endsWith('}')
  return parseParts(braced ? text.slice(1, -1) : text) ?? text
}

/** Named parts such as `user=user-42`, for scopes, which are never plain. */
export function parseScope(text: string): Readonly<Record<string, string>> {
  const scope = parseParts(text)
  if (scope === undefined) {
    throw usageError(`"${text}" is not a scope.`, 'Write named parts, such as user=user-42 or team=sales,region=eu.')
  }
  return scope
}

/** The shortest form that `parseThreadId` reads back as the same id. */
export function formatThreadId(id: ThreadIdInput): string {
  if (typeof id !== 'string') return formatParts(id)
  return parseThreadId(id) === id ? id : `\\${id}`
}

export function formatParts(parts: Readonly<Record<string, string>>): string {
  const entries = Object.entries(parts)
  const text = entries.map(([key, value]) => `${escape(key)}=${escape(value)}`).join(',')
  // A key that is no name would be read as a plain id without the braces.
  return entries.every(([key, value]) => PART.test(`${escape(key)}=${escape(value)}`)) ? text : `{${text}}`
}

function parseParts(text: string): Readonly<Record<string, string>> | undefined {
  const parts = text.split(',').map((part) => PART.exec(part))
  if (!parts.every((part) => part !== null)) return undefined
  const names = parts.map((part) => part[1] as string)
  if (new Set(names).size < names.length) throw usageError(`"${text}" names a part twice.`, 'Name each part once.')
  return Object.fromEntries(parts.map((part) => [part[1] as string, unescape(part[2] as string)]))
}

function escape(part: string): string {
  return part.replace(/[%,={}]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
}

function unescape(part: string): string {
  return part.replace(/%(25|2c|3d|7b|7d)/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
