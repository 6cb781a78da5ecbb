import { runInNewContext } from 'node:vm'
import type { RE2JS } from 're2js'

/** Longer ones cost more to compile than any check is worth. */
const MAX_PATTERN = 4000
/** For the few patterns that can't be matched in linear time. They block everything else in the meantime. */
const SLOW_LIMIT_MS = 250

/** Finds a pattern in texts. */
export interface Pattern {
  /** How much work a character of a text is, about. */
  readonly weight: number
  /** Undefined: it could not be told in time. */
  find(text: string): boolean | undefined
}

/**
 * Patterns come from whoever wrote a schema, and texts from models and strangers: `^(a+)+$` and 35 characters are
 * enough to block the event loop for hours. They are matched in linear time, by the rules of RE2. Those that RE2 does
 * not support (lookaround, backreferences) are matched by JavaScript within a time limit.
 */
export class Patterns {
  readonly #engine: typeof RE2JS | undefined
  readonly #compiled = new Map<string, Pattern>()

  private constructor(engine: typeof RE2JS | undefined) {
    this.#engine = engine
  }

  /** Loads the engine only for schemas that have patterns. */
  static async for(patterns: ReadonlySet<string>): Promise<Patterns> {
    return new Patterns(patterns.size === 0 ? undefined : (await import('re2js')).RE2JS)
  }

  get(pattern: string): Pattern {
    let found = this.#compiled.get(pattern)
    if (found === undefined) {
      found = this.#compile(pattern)
      this.#compiled.set(pattern, found)
    }
    return found
  }

  #compile(pattern: string): Pattern {
    const linear = toLinear(pattern)
    if (linear === undefined || this.#engine === undefined) return slowPattern(pattern)
    try {
      const compiled = this.#engine.compile(linear)
      return { weight: compiled.programSize(), find: (text) => compiled.matcher(text).find() }
    } catch {
      return slowPattern(pattern)
    }
  }
}

/** Why a pattern can't be used; undefined when it can. */
export function refusePattern(pattern: string): string | undefined {
  if (pattern.length > MAX_PATTERN) {
    return `has a pattern of ${pattern.length} characters, and at most ${MAX_PATTERN} are allowed`
  }
  if (compileAny(pattern) !== undefined) return undefined
  return `has the pattern ${JSON.stringify(pattern.slice(0, 100))}, which is not a regular expression`
}

function slowPattern(pattern: string): Pattern {
  const compiled = pattern.length > MAX_PATTERN ? undefined : compileAny(pattern)
  if (compiled === undefined) return { weight: 1, find: () => undefined }
  let isHopeless = false
  return {
    weight: 1,
    find(text) {
      // It would block everything just as long every time.
      if (isHopeless) return undefined
      try {
        const given = { source: compiled.source, flags: compiled.flags, text }
        return Boolean(runInNewContext('new RegExp(source, flags).test(text)', given, { timeout: SLOW_LIMIT_MS }))
      } catch {
        isHopeless = true
        return undefined
      }
    },
  }
}

/** JSON Schema requires the flag `u`; patterns that are valid only without it are common all the same. */
function compileAny(pattern: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags)
    } catch {
      // Tried with the next.
    }
  }
  return undefined
}

const SPACES = '\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}'
const LINE_ENDS = '\\n\\r\\x{2028}\\x{2029}'

/** The same pattern in the words of RE2, where some mean less or are written otherwise; undefined if it has none. */
function toLinear(pattern: string): string | undefined {
  if (pattern.length > MAX_PATTERN) return undefined
  let out = ''
  let isInClass = false
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i] as string
    if (char === '\\') {
      const escape = readEscape(pattern, i, isInClass)
      if (escape === undefined) return undefined
      out += escape.text
      i += escape.length - 1
    } else if (isInClass) {
      if (char === ']') isInClass = false
      // `[a[:alpha:]]` and `&&` mean something else there.
      out += char === '[' ? '\\[' : char === '&' ? '\\&' : char
    } else if (char === '[') {
      const [all = ''] = /^\[\^?\]/.exec(pattern.slice(i, i + 3)) ?? []
      if (all !== '') return undefined
      isInClass = true
      const negated = pattern[i + 1] === '^'
      out += negated ? '[^' : '['
      if (negated) i++
    } else if (char === '.') out += `[^${LINE_ENDS}]`
    else if (char === '(' && pattern[i + 1] === '?' && !/^\(\?(?::|<[A-Za-z_]\w*>)/.test(pattern.slice(i, i + 80))) {
      return undefined
    } else out += char
  }
  return isInClass ? undefined : out
}

function readEscape(
  pattern: string,
  at: number,
  isInClass: boolean,
): { readonly text: string; readonly length: number } | undefined {
  const [whole = '', code] = readCode(pattern.slice(at, at + 12))
  if (code !== undefined) return { text: `\\x{${code}}`, length: whole.length }
  const next = pattern[at + 1]
  if (next === undefined) return undefined
  if (next === 's') return { text: isInClass ? SPACES : `[${SPACES}]`, length: 2 }
  // Inside of a class it would need to be taken apart.
  if (next === 'S') return isInClass ? undefined : { text: `[^${SPACES}]`, length: 2 }
  if (next === 'b' && isInClass) return { text: '\\x08', length: 2 }
  if ('dDwWbBtnrfv'.includes(next)) return { text: `\\${next}`, length: 2 }
  if (next === '0' && !/\d/.test(pattern[at + 2] ?? '')) return { text: '\\x00', length: 2 }
  const [property] = /^\\[pP]\{[A-Za-z_]+\}/.exec(pattern.slice(at, at + 40)) ?? []
  if (property !== undefined) return { text: property, length: property.length }
  // Letters and digits that are left are backreferences, or nothing.
  return /[\dA-Za-z]/.test(next) ? undefined : { text: `\\${next}`, length: 2 }
}

/** `\u{…}`, `\uD83D\uDE00`, `\u0041` and `\x41`: how long it is, and the code in hexadecimal digits. */
function readCode(text: string): [whole: string, code: string] | [] {
  const [pair, high, low] = /^\\u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})/.exec(text) ?? []
  if (pair !== undefined) {
    const code = String.fromCharCode(Number.parseInt(high as string, 16), Number.parseInt(low as string, 16))
    return [pair, (code.codePointAt(0) as number).toString(16)]
  }
  const [whole, long, short, byte] = /^\\(?:u\{([\da-fA-F]{1,6})\}|u([\da-fA-F]{4})|x([\da-fA-F]{2}))/.exec(text) ?? []
  const code = long ?? short ?? byte
  return whole === undefined || code === undefined ? [] : [whole, code]
}
