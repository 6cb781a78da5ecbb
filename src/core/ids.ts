import { InvalidIdError } from './errors.js'

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** The owner of threads. Every key starts with it. */
export type TenantId = Branded<'TenantId'>
/** One conversation or task, in its stored form: a plain id, or `{key=value,…}` for a structured one. */
export type ThreadId = Branded<'ThreadId'>
/** One log of a thread. */
export type BranchId = Branded<'BranchId'>

/** What users write: a string, or named parts, which can't collide with any string or with other parts. */
export type ThreadIdInput = string | Readonly<Record<string, string>>

export const MAX_ID_BYTES = 512
export const MAX_BRANCH_BYTES = 128
export const DEFAULT_TENANT = 'default' as TenantId
export const MAIN_BRANCH = 'main' as BranchId

// Control characters and line separators break logs and terminals; lone surrogates are not Unicode. Everything else is
// allowed and compared byte by byte: ids are never normalized, so you find exactly what you wrote.
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u

export function parseTenantId(input: unknown): TenantId {
  return checkText('tenant id', input, MAX_ID_BYTES) as TenantId
}

export function parseBranchId(input: unknown): BranchId {
  return checkText('branch id', input, MAX_BRANCH_BYTES) as BranchId
}

/**
 * `'bf-847'` is stored as it is; `{ user: 'u', session: 's' }` as `{session=s,user=u}` with its keys sorted and its
 * separators escaped. A plain id that begins like a structured one is stored with a leading backslash, so the two kinds
 * never collide.
 */
export function parseThreadId(input: unknown): ThreadId {
  if (typeof input === 'string') {
    const text = checkText('thread id', input, MAX_ID_BYTES)
    return (text.startsWith('{') || text.startsWith('\\') ? `\\${text}` : text) as ThreadId
  }
  return encodeParts('thread id', input, MAX_ID_BYTES) as ThreadId
}

/** The form the user wrote, from the stored form. */
export function threadIdInput(id: ThreadId): ThreadIdInput {
  if (id.startsWith('\\')) return id.slice(1)
  return id.startsWith('{') ? decodeParts(id) : id
}

/** The parts of a text that `encodeParts` produced. */
export function decodeParts(text: string): Readonly<Record<string, string>> {
  const parts: [string, string][] = text
    .slice(1, -1)
    .split(',')
    .map((part) => {
      const at = part.indexOf('=')
      return [unescapePart(part.slice(0, at)), unescapePart(part.slice(at + 1))]
    })
  return Object.fromEntries(parts)
}

/**
 * `{session=s,user=u}`: keys sorted, separators escaped. Different parts never give the same text, and no part contains
 * a brace.
 */
export function encodeParts(field: string, input: unknown, maxBytes: number): string {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    const kinds = field === 'thread id' ? 'a string or an object of strings' : 'an object of strings'
    const remedy = "Pass named parts such as { user: 'user-42', session: 'bf-847' }."
    throw new InvalidIdError(field, `must be ${kinds}, not ${describe(input)}`, remedy)
  }
  const entries = Object.entries(input)
  if (entries.length === 0) {
    throw new InvalidIdError(field, 'has no parts', "Name at least one part, such as { session: 'bf-847' }.")
  }
  const parts = entries.map(([key, value]) => {
    const name = checkText(`a key of the ${field}`, key, maxBytes)
    return [name, checkText(`${field} part "${key}"`, value, maxBytes)] as const
  })
  parts.sort(([a], [b]) => (a < b ? -1 : 1))
  const text = `{${parts.map(([key, value]) => `${escapePart(key)}=${escapePart(value)}`).join(',')}}`
  return checkLength(field, text, maxBytes)
}

/** Refuses what is not text, is empty or too long, or contains a character that is not printable. */
export function checkText(field: string, input: unknown, maxBytes: number): string {
  if (typeof input !== 'string') {
    throw new InvalidIdError(field, `must be a string, not ${describe(input)}`, 'Pass a string; write numbers as text.')
  }
  if (input === '') throw new InvalidIdError(field, 'is empty', 'Pass at least one character.')
  const bad = FORBIDDEN.exec(input)
  if (bad) {
    const code = bad[0].codePointAt(0) ?? 0
    throw new InvalidIdError(
      field,
      `holds the character U+${code.toString(16).toUpperCase().padStart(4, '0')} at position ${bad.index}`,
      'Use printable Unicode characters only.',
      { position: bad.index, codePoint: code },
    )
  }
  return checkLength(field, input, maxBytes)
}

export function checkLength(field: string, text: string, maxBytes: number): string {
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes) {
    throw new InvalidIdError(field, `has ${bytes} bytes`, `Use at most ${maxBytes} bytes of UTF-8; hash longer ids.`, {
      limit: maxBytes,
      actual: bytes,
    })
  }
  return text
}

function escapePart(part: string): string {
  return part.replace(/[%,={}]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
}

function unescapePart(part: string): string {
  return part.replace(/%([0-9a-f]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

function describe(input: unknown): string {
  if (input === null) return 'null'
  if (Array.isArray(input)) return 'an array'
  if (input === undefined) return 'undefined'
  return typeof input === 'object' ? 'an object' : `a ${typeof input}`
}
