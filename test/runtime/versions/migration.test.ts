import { isCompatible, migrateState } from '#src/runtime/upgrade/migration.js'
import { describe, expect, it } from 'vitest'

const migrations = {
  2: (state: object) => ({ ...state, two: true }),
  3: (state: object) => ({ ...state, three: Object.hasOwn(state, 'two') }),
  5: (state: object) => state as {},
}

describe('migrating a state', () => {
  it('goes from version to version in order, and leaves the old state alone', () => {
    const state = Object.freeze({ a: 1 })
    expect(migrateState(state, 1, 3, migrations)).toStrictEqual({ a: 1, two: true, three: true })
    expect(migrateState(state, 2, 3, migrations)).toStrictEqual({ a: 1, three: false })
    expect(migrateState(state, 3, 3, {})).toBe(state)
  })

  it('leaves the old state alone also where a migration changes what it is given', () => {
    const state = { list: ['a'] }
    const careless = (given: object) => {
      ;(given as typeof state).list.push('b')
      return given as {}
    }
    expect(migrateState(state, 1, 2, { 2: careless })).toStrictEqual({ list: ['a', 'b'] })
    expect(state).toStrictEqual({ list: ['a'] })
  })

  it('refuses a state that is newer than the program', () => {
    expect(() => migrateState({}, 4, 3, migrations)).toThrow(
      expect.objectContaining({
        code: 'incompatible',
        data: { from: 4, to: 3, reason: 'state-too-new', canResume: false },
      }),
    )
  })

  it('refuses a gap before it calls any migration', () => {
    let called = 0
    const counting = { ...migrations, 2: (state: object) => ((called += 1), state as {}) }
    expect(() => migrateState({}, 1, 5, counting)).toThrow(
      expect.objectContaining({ data: { from: 1, to: 5, missing: 4, reason: 'migration-missing', canResume: false } }),
    )
    expect(() => migrateState({}, 1, 5, counting)).toThrow('from 3 to 4')
    expect(called).toBe(0)
  })

  it.each([undefined, null, [], 5, Promise.resolve({})])('refuses a migration that returns %s', (result) => {
    expect(() => migrateState({}, 1, 2, { 2: () => result as never })).toThrow(
      expect.objectContaining({ data: expect.objectContaining({ reason: 'migration-failed', version: 2 }) }),
    )
  })
})

describe('a version may continue', () => {
  const may = (recorded: string, version: string, compatibleWith?: string) =>
    isCompatible(recorded, { version, compatibleWith })

  it.each([
    ['1.2.0', '1.2.0'],
    ['1.0.0', '1.9.3'],
    ['1.9.3', '1.0.0'],
    ['1.0.0-beta.1', '1.2.0'],
    ['1.2.0', '1.0.0-beta.1'],
    ['0.3.1', '0.3.9'],
    ['0.0.4', '0.0.4'],
    ['1.2.0+build', '1.2.0'],
  ])('the threads of %s as %s', (recorded, version) => {
    expect(may(recorded, version)).toBe(true)
  })

  it.each([
    ['2.0.0', '1.9.0'],
    ['1.9.0', '2.0.0'],
    ['2.0.0-rc.1', '1.9.0'],
    ['0.9.9', '1.0.0'],
    ['0.3.0', '0.4.0'],
    ['0.4.0-rc.1', '0.3.0'],
    ['0.0.4', '0.0.5'],
    ['not a version', '1.0.0'],
    ['', '1.0.0'],
  ])('but not those of %j as %s', (recorded, version) => {
    expect(may(recorded, version)).toBe(false)
  })

  it('only the threads in the range it declares, and always its own', () => {
    expect(may('1.4.2', '2.0.0', '^1.4.0')).toBe(true)
    expect(may('1.3.0', '2.0.0', '^1.4.0')).toBe(false)
    expect(may('2.0.0', '2.0.0', '^1.4.0')).toBe(true)
    expect(may('1.1.0', '1.2.0', '1.2.x')).toBe(false)
    expect(may('1.5.0', '3.0.0', '>=1.4.0 <4')).toBe(true)
  })
})
