import type { ThreadId } from './types.js'

/** A thread's id as paths hold it. */
export function pathId(id: ThreadId): string {
  const stored = typeof id === 'string' ? (/^[{\\]/.test(id) ? `\\${id}` : id) : writeParts(id)
  return encodeURIComponent(isPlain(stored) ? stored : `~${base64url(stored)}`)
}

/** Any other name as paths hold it: a pause, a tag, a key. */
export function pathName(name: string): string {
  return encodeURIComponent(isPlain(name) ? name : `~${base64url(name)}`)
}

/** Named parts as one text: keys sorted, separators escaped. */
export function writeParts(parts: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${pairs.map(([name, value]) => `${escapePart(name)}=${escapePart(value)}`).join(',')}}`
}

function escapePart(part: string): string {
  return part.replace(/[%,={}]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
}

// A slash, or . and .., lead proxies to another path; so does text that begins like an encoded name.
function isPlain(text: string): boolean {
  return /^[\w{}=,.@:+ #-]*$/.test(text) && !/^\.{1,2}$/.test(text)
}

function base64url(text: string): string {
  let binary = ''
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte)
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** The id that a path holds: what the server calls `id` or `pathId`. */
export function readPathId(text: string): ThreadId {
  const stored = text.startsWith('~') ? fromBase64url(text.slice(1)) : text
  if (!stored.startsWith('{')) return stored.startsWith('\\') ? stored.slice(1) : stored
  const pairs = stored.slice(1, -1).split(',')
  return Object.fromEntries(pairs.map((pair) => pair.split('=').map(unescapePart) as [string, string]))
}

function unescapePart(part: string): string {
  return part.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

function fromBase64url(text: string): string {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return new TextDecoder().decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)))
}
