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

// A slash, or . and .., lead proxies to another path; so does what begins like an encoded name.
function isPlain(text: string): boolean {
  return /^[\w{}=,.@:+ #-]*$/.test(text) && !/^\.{1,2}$/.test(text)
}

function base64url(text: string): string {
  let binary = ''
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte)
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
