import { TimeLimit } from '#src/runtime/program/time-limit.js'
import { describe, expect, it } from 'vitest'

const LONG = { text: 'a text that a check may take hours for' }

/** Whether work ran under the limit: in a script of its own, which can be ended. */
function isLimited(): boolean {
  return new Error('where').stack?.includes('evalmachine') ?? false
}

describe('the time limit of a check', () => {
  it('is set once for the same check of the same value', () => {
    const limit = new TimeLimit()
    const [check, other] = [{}, {}]
    expect(limit.run(LONG, isLimited, check)).toBe(true)
    expect(limit.run({ ...LONG }, isLimited, check)).toBe(false)
    expect(limit.run(LONG, isLimited, other)).toBe(true)
    expect(limit.run({ text: `${LONG.text}!` }, isLimited, check)).toBe(true)
    expect(limit.run(LONG, isLimited)).toBe(true)
  })

  it('is set again for a value whose check did not end, and for one that has no JSON or is large', () => {
    const limit = new TimeLimit()
    const check = {}
    const fail = () => {
      throw new Error('not this one')
    }
    for (const value of [{ ...LONG, count: 1n }, { text: 'x'.repeat(5000) }]) {
      for (let turn = 0; turn < 2; turn++) expect(limit.run(value, isLimited, check)).toBe(true)
    }
    expect(() => limit.run(LONG, fail, check)).toThrow('not this one')
    expect(limit.run(LONG, isLimited, check)).toBe(true)
  })

  it('is set again after many other values', () => {
    const limit = new TimeLimit()
    const check = {}
    for (let i = 0; i < 40; i++) limit.run({ text: `${LONG.text} ${i}` }, isLimited, check)
    expect(limit.run({ text: `${LONG.text} 0` }, isLimited, check)).toBe(true)
  })

  it('is not set for short texts', () => {
    expect(new TimeLimit().run({ text: 'short' }, isLimited, {})).toBe(false)
  })
})
