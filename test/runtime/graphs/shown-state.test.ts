import assert from 'node:assert/strict'
import type { Value } from '#src/codec/value.js'
import type { State } from '#src/log/entry/ops.js'
import { ShownState } from '#src/runtime/program/state/shown-state.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyValue } from '../../codec/values.js'
import { randomly, rounds } from '../../support/scale.js'

const change = fc.record({
  key: fc.constantFrom('a', 'b'),
  at: fc.nat({ max: 6 }),
  remove: fc.nat({ max: 2 }),
  insert: fc.array(fc.oneof(anyValue, fc.uint8Array({ maxLength: 4 })), { maxLength: 3 }),
  /** Something else than a list for a while. */
  other: fc.option(anyValue, { freq: 6 }),
})

/** As the log does it: lists are new, and share their items. */
function apply(
  state: State,
  { key, at, remove, insert, other }: typeof change extends fc.Arbitrary<infer T> ? T : never,
) {
  const old = Array.isArray(state[key]) ? (state[key] as readonly Value[]) : []
  const list = [...old.slice(0, at), ...(insert as Value[]), ...old.slice(at + remove)]
  return { ...state, [key]: other ?? list }
}

/** Whether nobody can change any of it: bytes are handed out as copies. */
function isFixed(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || value instanceof Date) return true
  return Object.isFrozen(value) && Object.values(value).every(isFixed)
}

describe('the state that a program sees', () => {
  it('is the one that is recorded, frozen, however its lists grew, shrank or were replaced', () => {
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 15 }), (changes) => {
        const shown = new ShownState()
        let state: State = { a: [], b: [] }
        for (const each of changes) {
          state = apply(state, each)
          const seen = shown.show(state)
          // Not with `toStrictEqual`, which takes a key named `constructor` for the class.
          assert.deepStrictEqual(seen, new ShownState().show(structuredClone(state) as State))
          expect(isFixed(seen)).toBe(true)
        }
      }),
      randomly(rounds(200)),
    )
  })

  it('keeps what it showed of items that are still there, so that nothing is made of them again', () => {
    const shown = new ShownState()
    const first = { bytes: new Uint8Array([1]) }
    const before = shown.show({ list: [first] })['list'] as readonly Value[]
    const after = shown.show({ list: [first, { n: 2 }] })['list'] as readonly Value[]
    expect(after[0]).toBe(before[0])
    expect(after[0]).not.toBe(first)
  })

  it('hands out bytes of a list as copies, also after the list has grown', () => {
    const shown = new ShownState()
    const bytes = new Uint8Array([1, 2])
    shown.show({ list: [bytes] })
    const { list } = shown.show({ list: [bytes, 'more'] }) as { readonly list: readonly Uint8Array[] }
    ;(list[0] as Uint8Array)[0] = 9
    expect([bytes[0], (list[0] as Uint8Array)[0]]).toEqual([1, 1])
  })
})
