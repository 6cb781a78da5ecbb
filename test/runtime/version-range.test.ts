import { fc, test } from '@fast-check/vitest'
import { isInRange, parseRange, parseVersion } from '#src/runtime/version-range.js'
import semver from 'semver'
import { describe, expect, it } from 'vitest'
import { randomly } from '../support/scale.js'

const number = fc.constantFrom('0', '1', '2', '3', '10')
const identifier = fc.constantFrom('0', '1', '11', 'alpha', 'rc', 'x', '1a', '-')
const pre = fc.array(identifier, { minLength: 1, maxLength: 3 }).map((parts) => `-${parts.join('.')}`)
const build = fc.constantFrom('', '', '', '+b.1')
const version = fc
  .tuple(number, number, number, fc.option(pre, { nil: '' }), build)
  .map(([major, minor, patch, tail, meta]) => `${major}.${minor}.${patch}${tail}${meta}`)
const partial = fc.oneof(
  fc.constantFrom('*', 'x'),
  number,
  fc.tuple(number, fc.constantFrom('', '.x', '.*', '.x.x')).map(([major, rest]) => major + rest),
  fc.tuple(number, number, fc.constantFrom('', '.x')).map(([major, minor, rest]) => `${major}.${minor}${rest}`),
)
const part = fc
  .tuple(fc.constantFrom('', '=', '<', '<=', '>', '>=', '~', '~>', '^', '>= ', '^ ', 'v'), fc.oneof(version, partial))
  .map(([sign, of]) => sign + of)
const alternative = fc.oneof(
  fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(' ')),
  fc.tuple(fc.oneof(version, partial), fc.oneof(version, partial)).map(([from, to]) => `${from} - ${to}`),
)
const range = fc.array(alternative, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(' || '))

describe('version ranges', () => {
  test.prop([version, range], randomly(3000))('hold what the semver package says', (one, of) => {
    const [parsed, allowed] = [parseVersion(one), parseRange(of)]
    if (parsed === undefined || allowed === undefined) throw new Error(`${one} or ${of} is not read.`)
    expect(isInRange(parsed, allowed)).toBe(semver.satisfies(one, of, { includePrerelease: true }))
  })

  const junk = fc.string({ maxLength: 12, unit: fc.constantFrom('0', '1', '.', '-', '+', 'a', 'x', '01') })
  test.prop([junk], randomly(2000))('take as a version what the semver package takes', (text) => {
    expect(parseVersion(text) !== undefined).toBe(semver.valid(text) !== null)
  })

  it.each(['', 'v1.0.0', ' 1.0.0', '1.0', '01.0.0', '1.0.0-01', `1.0.${'9'.repeat(16)}`, `1.0.0-${'a'.repeat(256)}`])(
    'take no %j for a version',
    (text) => expect(parseVersion(text)).toBeUndefined(),
  )

  it.each(['latest', '1.x.3', '^1.2.3.4', '>', '1.0.0 -', '=>1', '^^1', '1 || next'])(
    'take no %j for a range',
    (text) => expect(parseRange(text)).toBeUndefined(),
  )
})
