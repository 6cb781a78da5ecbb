/**
 * Versions and ranges of them as the semver package reads them with `includePrerelease`; the tests compare the two. Of
 * our own, because importing that package takes longer than importing half of this one.
 */
export interface Version {
  readonly major: number
  readonly minor: number
  readonly patch: number
  /** What stands behind the dash; empty for a release. */
  readonly pre: readonly (string | number)[]
}

interface Bound {
  readonly sign: '<' | '<=' | '>' | '>=' | '='
  readonly version: Version
}

/** Alternatives of bounds that hold together. No bounds: any version. */
export type VersionRange = readonly (readonly Bound[])[]

const MAX_LENGTH = 256
const NUMBER = '(0|[1-9]\\d{0,15})'
const IDENTIFIER = '(?:0|[1-9]\\d*|\\d*[A-Za-z-][0-9A-Za-z-]*)'
const TAIL = `(?:-(${IDENTIFIER}(?:\\.${IDENTIFIER})*))?(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?`
const WHOLE = new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}${TAIL}$`)
const ANY = '[xX*]'
const PART = `(${ANY}|0|[1-9]\\d{0,15})`
const SPAN = new RegExp(`^v?${PART}(?:\\.${PART}(?:\\.${PART}${TAIL})?)?$`)
const NOTHING: readonly Bound[] = [{ sign: '<', version: first(0, 0, 0) }]

export function parseVersion(text: string): Version | undefined {
  const match = text.length > MAX_LENGTH ? null : WHOLE.exec(text)
  return match ? numbered(match[1], match[2], match[3], match[4]) : undefined
}

/** Reads `^1.2.0`, `>=1.4 <3`, `1.x || 2.0.0 - 2.5`; undefined for what is no range. */
export function parseRange(text: string): VersionRange | undefined {
  const alternatives = text.split('||').map(parseAlternative)
  return alternatives.every((one) => one !== undefined) ? alternatives : undefined
}

export function isInRange(version: Version, range: VersionRange): boolean {
  return range.some((bounds) => bounds.every((bound) => holds(version, bound)))
}

function parseAlternative(text: string): readonly Bound[] | undefined {
  const hyphen = /^\s*(\S+)\s+-\s+(\S+)\s*$/.exec(text)
  if (hyphen) {
    const [from, to] = [readSpan(hyphen[1] as string), readSpan(hyphen[2] as string)]
    if (from === undefined || to === undefined) return undefined
    // Both ends are taken with their pre-releases, unless they name one.
    const low = from.whole && from.low.pre.length === 0 ? { ...from.low, pre: [0] } : from.low
    const high: Bound = to.low.pre.length > 0 && to.whole ? atMost(to.low) : below(to.end)
    return [...(from.any ? [] : [atLeast(low)]), ...(to.any ? [] : [high])]
  }
  const bounds: Bound[] = []
  for (const part of text.replace(/([<>=~^])\s+/g, '$1').split(/\s+/)) {
    const found = part === '' ? [] : parsePart(part)
    if (found === undefined) return undefined
    bounds.push(...found)
  }
  return bounds
}

function parsePart(part: string): readonly Bound[] | undefined {
  const match = /^(<=|>=|<|>|=|~>|~|\^)?(.+)$/.exec(part)
  const span = match && readSpan(match[2] as string)
  if (!span) return undefined
  const { low, end, whole, any } = span
  switch (match[1]) {
    case '<':
      return any ? NOTHING : [below(low)]
    case '>':
      return any ? NOTHING : [whole ? { sign: '>', version: low } : atLeast(end)]
    case '<=':
      return any ? [] : [whole ? atMost(low) : below(end)]
    case '>=':
      return any ? [] : [atLeast(low)]
    case '~':
    case '~>':
      return any ? [] : [atLeast(low), below(span.nextMinor)]
    case '^':
      return any ? [] : [atLeast(low), below(span.nextBreaking)]
    default:
      return any ? [] : whole ? [{ sign: '=', version: low }] : [atLeast(low), below(end)]
  }
}

/** What `1`, `1.2`, `1.2.3-rc` stand for: from where, up to where, and up to where `~` and `^` go. */
interface Span {
  readonly low: Version
  /** The first that is beyond it. */
  readonly end: Version
  readonly nextMinor: Version
  readonly nextBreaking: Version
  readonly whole: boolean
  readonly any: boolean
}

function readSpan(text: string): Span | undefined {
  const match = text.length > MAX_LENGTH ? null : SPAN.exec(text)
  if (!match) return undefined
  const open = [match[1], match[2], match[3]].findIndex((part) => part === undefined || /^[xX*]$/.test(part))
  const given = [match[1], match[2], match[3]].slice(0, open === -1 ? 3 : open)
  const rest = [match[1], match[2], match[3]].slice(given.length)
  // A number behind a placeholder, such as 1.x.3, says nothing.
  if (rest.some((part) => part !== undefined && /^\d/.test(part))) return undefined
  const version = numbered(given[0] ?? '0', given[1] ?? '0', given[2] ?? '0', open === -1 ? match[4] : undefined)
  if (version === undefined) return undefined
  const { major, minor, patch } = version
  const whole = given.length === 3
  const [majorEnd, minorEnd, patchEnd] = [
    first(major + 1, 0, 0),
    first(major, minor + 1, 0),
    first(major, minor, patch + 1),
  ]
  const end = whole ? patchEnd : given.length === 2 ? minorEnd : majorEnd
  const nextMinor = given.length > 1 ? minorEnd : majorEnd
  const nextBreaking = major > 0 || given.length < 2 ? majorEnd : minor > 0 || !whole ? minorEnd : patchEnd
  return {
    low: whole ? version : { ...version, pre: [0] },
    end,
    nextMinor,
    nextBreaking,
    whole,
    any: given.length === 0,
  }
}

function numbered(major = '', minor = '', patch = '', pre?: string): Version | undefined {
  const numbers = [Number(major), Number(minor), Number(patch)] as const
  if (!numbers.every(Number.isSafeInteger)) return undefined
  const identifiers = pre === undefined ? [] : pre.split('.').map((id) => (/^\d+$/.test(id) ? Number(id) : id))
  return { major: numbers[0], minor: numbers[1], patch: numbers[2], pre: identifiers }
}

/** The lowest there is with these numbers. */
function first(major: number, minor: number, patch: number): Version {
  return { major, minor, patch, pre: [0] }
}

function atLeast(version: Version): Bound {
  return { sign: '>=', version }
}

function atMost(version: Version): Bound {
  return { sign: '<=', version }
}

function below(version: Version): Bound {
  return { sign: '<', version }
}

function holds(version: Version, { sign, version: bound }: Bound): boolean {
  const order = compare(version, bound)
  if (order === 0) return sign.endsWith('=')
  return order < 0 ? sign.startsWith('<') : sign.startsWith('>')
}

function compare(a: Version, b: Version): number {
  const numbers = a.major - b.major || a.minor - b.minor || a.patch - b.patch
  if (numbers !== 0) return numbers
  // A release comes after its pre-releases.
  if (a.pre.length === 0 || b.pre.length === 0) return b.pre.length - a.pre.length
  for (let i = 0; i < Math.max(a.pre.length, b.pre.length); i++) {
    const order = compareIdentifiers(a.pre[i], b.pre[i])
    if (order !== 0) return order
  }
  return 0
}

function compareIdentifiers(a: string | number | undefined, b: string | number | undefined): number {
  if (a === b) return 0
  if (a === undefined || b === undefined) return a === undefined ? -1 : 1
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === typeof b) return a < b ? -1 : 1
  return typeof a === 'number' ? -1 : 1
}
