import assert from 'node:assert/strict'
import type { Value } from '#src/codec/value.js'
import { applyOp, isOp, type Path, type State, set } from '#src/log/entry/ops.js'
import { append, last, merge, reduced, type StateKey } from '#src/runtime/program/state/state-key.js'
import { type Recorded, StateShape } from '#src/runtime/program/state/state-shape.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { anyKey, anyValue, deepFreeze } from '../../codec/values.js'
import { randomly, rounds } from '../../support/scale.js'

/** A kind of key: how it is made, what its updates are, and what they mean in the plainest words. */
interface Kind {
  readonly key: StateKey
  readonly update: fc.Arbitrary<unknown>
  readonly start: Value | undefined
  readonly apply: (old: any, update: any) => unknown
}

const properties = fc.dictionary(anyKey, fc.oneof(anyValue, fc.constant(undefined)), { maxKeys: 4 })
const items = fc.array(anyValue, { maxLength: 4 })
const join = (old: any, update: any): unknown => {
  const joined = new Map<string, unknown>(Object.entries(old ?? {}))
  for (const [name, value] of Object.entries(update)) if (value !== undefined) joined.set(name, value)
  return Object.fromEntries(joined)
}
// Whatever an update is, so that the same reducer serves random values: keeps, replaces, grows or shortens a list.
const whim = (old: any, update: any): unknown => {
  if (typeof update === 'number') return old ?? null
  if (typeof update === 'string') return [...(Array.isArray(old) ? old : []), update]
  if (typeof update === 'boolean') return Array.isArray(old) ? old.slice(1) : update
  return update
}

const KINDS: readonly Kind[] = [
  { key: last(), update: anyValue, start: undefined, apply: (_, update) => update },
  { key: last(undefined, { initial: 'first' }), update: anyValue, start: 'first', apply: (_, update) => update },
  { key: append(), update: items, start: [], apply: (old, update) => [...old, ...update] },
  {
    key: append<Value>(undefined, { initial: [0] }),
    update: items,
    start: [0],
    apply: (old, update) => [...old, ...update],
  },
  { key: merge(), update: properties, start: undefined, apply: join },
  { key: merge(undefined, { initial: { a: 1 } }), update: properties, start: { a: 1 }, apply: join },
  { key: reduced(undefined, whim), update: anyValue, start: undefined, apply: whim },
  { key: reduced(undefined, whim, { initial: [1] }), update: anyValue, start: [1], apply: whim },
]

const names = ['a', 'b', 'c'] as const
const anyShape = fc.record({
  a: fc.constantFrom(...KINDS),
  b: fc.constantFrom(...KINDS),
  c: fc.constantFrom(...KINDS),
})

interface Case {
  readonly kinds: Readonly<Record<string, Kind>>
  /** Whether the fold has the initial values, or was recorded before the keys were declared. */
  readonly written: boolean
  readonly at: readonly string[]
  /** Each step: updates that are applied together, recorded or not. */
  readonly steps: readonly (readonly { readonly update: Record<string, unknown>; readonly recorded: boolean }[])[]
}

const anyCase: fc.Arbitrary<Case> = anyShape.chain((kinds) => {
  const update = fc.record({ a: kinds.a.update, b: kinds.b.update, c: kinds.c.update }, { requiredKeys: [] })
  return fc.record({
    kinds: fc.constant(kinds),
    written: fc.boolean(),
    at: fc.constantFrom([], ['values'], ['deep', 'er']),
    steps: fc.array(fc.array(fc.record({ update, recorded: fc.boolean() }), { maxLength: 3 }), { maxLength: 4 }),
  })
})

function valuesOf(fold: State, at: readonly string[]): State {
  let values: any = fold
  for (const part of at) values = values?.[part] ?? {}
  return Object.fromEntries(
    Object.entries(values).filter(([name]) => (names as readonly string[]).includes(name)),
  ) as State
}

describe('reducing updates', () => {
  it('gives what the reducers give, and ops that bring the fold to the same state', async () => {
    await fc.assert(
      fc.asyncProperty(anyCase, async ({ kinds, written, at, steps }) => {
        const shape = new StateShape(Object.fromEntries(names.map((name) => [name, kinds[name]!.key])))
        let fold: State = {}
        if (written) {
          for (const [name, value] of Object.entries(shape.initial())) {
            fold = applyOp(fold, set([...at, name] as unknown as Path, value))
          }
        }
        const expected = new Map<string, unknown>(written ? Object.entries(shape.initial()) : [])
        const owned = new Set<object>()
        for (const [number, step] of steps.entries()) {
          const updates: Recorded[] = []
          for (const [index, { update, recorded }] of step.entries()) {
            const checked = await shape.check(update, 'update')
            const from: Path = ['recorded', `${number}.${index}`]
            if (recorded) fold = applyOp(fold, set(from, withoutUndefined(checked)), owned)
            updates.push(recorded ? { update: checked, from } : { update: checked })
            for (const [name, value] of Object.entries(update)) {
              const { start, apply } = kinds[name]!
              expected.set(name, apply(expected.has(name) ? expected.get(name) : start, value))
            }
          }
          // What a reducer is handed is the fold's own; it must come through untouched.
          const before = deepFreeze(structuredClone(valuesOf(fold, at)))
          const { state, ops } = shape.reduce(before, updates, at)
          assert.deepStrictEqual(withoutUndefined(state), withoutUndefined(Object.fromEntries(expected)))
          for (const op of ops) {
            assert(isOp(op))
            fold = applyOp(fold, withoutUndefined(op) as typeof op, owned)
          }
          assert.deepStrictEqual(valuesOf(fold, at), withoutUndefined(state))
        }
      }),
      randomly(rounds(1500)),
    )
  })
})

/** As the log does: properties that are undefined are not stored. */
function withoutUndefined(value: unknown): any {
  if (Array.isArray(value)) return value.map(withoutUndefined)
  if (typeof value !== 'object' || value === null || value instanceof Date || value instanceof Uint8Array) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([name, item]) => [name, withoutUndefined(item)]))
}
