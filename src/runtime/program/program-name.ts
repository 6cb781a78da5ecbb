import valid from 'semver/functions/valid.js'
import validRange from 'semver/ranges/valid.js'
import { InvalidProgramError } from '../../core/errors.js'

const MAX_LENGTH = 128

/** Step paths use these as separators, so a node name must not contain them. */
const SEPARATORS = /[/[\]:]/

export function checkProgramName(name: unknown): asserts name is string {
  if (isPrintable(name)) return
  throw new InvalidProgramError(
    `A program's name is ${describe(name)}.`,
    'name',
    `Use 1 to ${MAX_LENGTH} printable characters.`,
  )
}

export function checkNodeName(name: unknown): asserts name is string {
  if (isPrintable(name) && !SEPARATORS.test(name) && name !== '__start__' && name !== '__end__') return
  throw new InvalidProgramError(
    `A node's name is ${describe(name)}.`,
    'node',
    `Use 1 to ${MAX_LENGTH} printable characters without / [ ] and :, and neither __start__ nor __end__.`,
  )
}

export function checkVersion(program: string, version: unknown): asserts version is string {
  // `valid` also accepts "v1.0.0" and " 1.0.0", which would be recorded as different versions than "1.0.0".
  if (typeof version === 'string' && /^\d\S*$/.test(version) && valid(version) !== null) return
  throw new InvalidProgramError(
    `The version of "${program}" is ${describe(version)}.`,
    'version',
    'Use a semantic version such as 1.2.0.',
  )
}

export function checkRange(program: string, range: unknown): asserts range is string | undefined {
  if (range === undefined) return
  if (typeof range === 'string' && range.trim() !== '' && validRange(range) !== null) return
  throw new InvalidProgramError(
    `The option compatibleWith of "${program}" is ${describe(range)}.`,
    'compatibleWith',
    'Use a semantic version range such as ^1.2.0 or >=1.4.0 <3.',
  )
}

function isPrintable(name: unknown): name is string {
  return (
    typeof name === 'string' &&
    name.length >= 1 &&
    name.length <= MAX_LENGTH &&
    name.trim() === name &&
    name.isWellFormed() &&
    !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)
  )
}

function describe(value: unknown): string {
  if (typeof value !== 'string') return value === undefined ? 'missing' : `a ${typeof value}`
  const shown = JSON.stringify(value.slice(0, MAX_LENGTH))
  return value.length > MAX_LENGTH ? `${shown}… with ${value.length} characters` : shown
}
