import assert from 'node:assert/strict'
import { isHoldfastError } from '#src/core/errors.js'
import {
  applyOp,
  concat,
  copy,
  isOp,
  type Op,
  type Path,
  push,
  remove,
  type State,
  set,
  splice,
  valueAt,
} from '#src/log/entry/ops.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { assertPristine, deepFreeze } from '../codec/values.js'
import { anyOp, anyState, applyPlainly, referringOp } from './ops-model.js'

const state: State = deepFreeze({
  a: { b: [1, { c: 2 }] },
  list: ['x', 'y', 'z'],
  text: 'hello',
  at: new Date(0),
  bytes: new Uint8Array(2),
  nothing: null,
})

function after(...ops: Op[]): State {
  return ops.reduce((before, op) => applyOp(before, op), state)
}

function refused(op: Op, path: string): void {
  assert.throws(
    () => applyOp(state, op),
    (error) => isHoldfastError(error, 'invalid-value') && error.data['path'] === path && error.remedy.length > 0,
  )
}

describe('operations', () => {
  it('set a value, making objects on the way', () => {
    assert.deepStrictEqual(after(set('new', 1)), { ...state, new: 1 })
    assert.deepStrictEqual(after(set(['x', 'y', 'z'], [1]))['x'], { y: { z: [1] } })
    assert.deepStrictEqual(after(set(['a', 'b', 1, 'c'], 3))['a'], { b: [1, { c: 3 }] })
    assert.deepStrictEqual(after(set(['list', 0], 'w'))['list'], ['w', 'y', 'z'])
    assert.deepStrictEqual(after(set('text', null))['text'], null)
  })

  it('remove a property, and change nothing when it is not there', () => {
    assert(!Object.hasOwn(after(remove('text')), 'text'))
    assert.deepStrictEqual(after(remove(['a', 'b', 1, 'c']))['a'], { b: [1, {}] })
    for (const path of [
      ['missing'],
      ['missing', 'deeper', 'still'],
      ['a', 'missing'],
      ['a', 'missing', 'x'],
      ['toString'],
    ] as unknown as Path[]) {
      assert.deepStrictEqual(after(remove(path)), state)
    }
  })

  it('push to a list, which is made if missing', () => {
    assert.deepStrictEqual(after(push('list', 1, 2))['list'], ['x', 'y', 'z', 1, 2])
    assert.deepStrictEqual(after(push(['made', 'here'], 1))['made'], { here: [1] })
    assert.deepStrictEqual(after(push('list'))['list'], ['x', 'y', 'z'])
  })

  it('splice a list', () => {
    assert.deepStrictEqual(after(splice('list', 1, 1, 'a', 'b'))['list'], ['x', 'a', 'b', 'z'])
    assert.deepStrictEqual(after(splice('list', 3, 0, 'end'))['list'], ['x', 'y', 'z', 'end'])
    assert.deepStrictEqual(after(splice('list', 0, 3))['list'], [])
    assert.deepStrictEqual(after(splice('fresh', 0, 0, 1))['fresh'], [1])
  })

  it('copy a value that lies elsewhere, and leave it there', () => {
    assert.deepStrictEqual(after(copy('new', ['a', 'b', 1])), { ...state, new: { c: 2 } })
    assert.deepStrictEqual(after(copy(['x', 'y'], ['list', 2]))['x'], { y: 'z' })
    assert.deepStrictEqual(after(copy(['a', 'b'], ['a']))['a'], { b: state['a'] as State })
    assert.deepStrictEqual(after(copy('at', ['nothing']))['at'], null)
    assert.deepStrictEqual(after(copy('list', ['list'])), state)
  })

  it('add the items of a list that lies elsewhere, or of the list itself', () => {
    assert.deepStrictEqual(after(concat('list', ['a', 'b']))['list'], ['x', 'y', 'z', 1, { c: 2 }])
    assert.deepStrictEqual(after(concat(['made', 'here'], ['list']))['made'], { here: ['x', 'y', 'z'] })
    assert.deepStrictEqual(after(concat('list', ['list']))['list'], ['x', 'y', 'z', 'x', 'y', 'z'])
    const nested = { list: [[1], 2] }
    assert.deepStrictEqual(applyOp(nested, concat(['list', 0], ['list'])), { list: [[1, [1], 2], 2] })
  })

  it('change a value in one of the places it lies in, and not in the other', () => {
    const owned = new Set<object>()
    const ops = [
      push('list', { n: 1 }, []),
      copy('other', ['list']),
      set(['list', 0, 'n'], 2),
      concat('third', ['list']),
      push(['third', 1], 'deep'),
      push(['list', 1], 'here'),
      push('other', 'end'),
      concat(['list', 1], ['list']),
    ]
    let folded: State = {}
    for (const op of ops) folded = applyOp(folded, op, owned)
    assert.deepStrictEqual(folded, {
      list: [{ n: 2 }, ['here', { n: 2 }, ['here']]],
      other: [{ n: 1 }, [], 'end'],
      third: [{ n: 2 }, ['deep']],
    })
  })

  it('take lists of any length', () => {
    const many = Array.from({ length: 300_000 }, (_, i) => i)
    const grown = applyOp({ list: many }, ['splice', ['list'], 1, 1, many])
    assert.equal((grown['list'] as unknown[]).length, 599_999)
    assert.equal((applyOp(grown, ['push', ['list'], many])['list'] as unknown[]).length, 899_999)
  })

  it('are refused with the path when they do not fit the state', () => {
    refused(push('text', 1), '$.text')
    refused(push('at', 1), '$.at')
    refused(push('nothing', 1), '$.nothing')
    refused(set(['text', 'x'], 1), '$.text.x')
    refused(set(['nothing', 'x'], 1), '$.nothing.x')
    refused(set(['at', 'x'], 1), '$.at.x')
    refused(set(['bytes', 'x'], 1), '$.bytes.x')
    refused(set(['bytes', 0], 1), '$.bytes[0]')
    refused(set(['list', 'x'], 1), '$.list.x')
    refused(set(['a', 0], 1), '$.a[0]')
    refused(set(['list', 3], 1), '$.list[3]')
    refused(set(['missing', 0], 1), '$.missing[0]')
    refused(remove(['list', 0]), '$.list[0]')
    refused(remove(['text', 'x']), '$.text.x')
    refused(splice('list', 4, 0), '$.list')
    refused(splice('list', 2, 2), '$.list')
    refused(splice(['a', 'b', 1], 0, 0), '$.a.b[1]')
    refused(copy('x', ['missing']), '$.missing')
    refused(copy('x', ['list', 3]), '$.list[3]')
    refused(copy('x', ['text', 'length']), '$.text.length')
    refused(copy('x', ['toString']), '$.toString')
    refused(copy('x', ['list', 'length']), '$.list.length')
    refused(copy('x', ['list', '0']), '$.list["0"]')
    refused(copy('x', ['bytes', 0]), '$.bytes[0]')
    refused(copy(['text', 'x'], ['list']), '$.text.x')
    refused(concat('list', ['missing']), '$.missing')
    refused(concat('list', ['a']), '$.a')
    refused(concat('text', ['list']), '$.text')
  })

  it('are made only from paths that begin with a key', () => {
    for (const path of [[], [0], [''.length], ['a', -1], ['a', 0.5], ['a', null], ['a', {}], 5, null, undefined, {}]) {
      assert.throws(
        () => set(path as unknown as Path, 1),
        (error) => isHoldfastError(error, 'invalid-value'),
      )
    }
    assert.throws(
      () => set(['a', ...Array.from({ length: 1000 }, () => 'a')] as unknown as Path, 1),
      (error) => isHoldfastError(error, 'invalid-value'),
    )
    assert.deepEqual(set('', 1), ['set', [''], 1])
  })

  it('are recognised exactly', () => {
    for (const op of [
      set('a', 1),
      remove('a'),
      push('a'),
      splice(['a', 0], 1, 2),
      copy('a', ['b', 0]),
      concat('a', ['b']),
    ]) {
      assert(isOp(op))
    }
    const bad = [
      null,
      'set',
      [],
      ['set'],
      ['set', ['a']],
      ['set', ['a'], 1, 2],
      ['set', 'a', 1],
      ['delete', ['a'], 1],
      ['push', ['a'], 1],
      ['push', ['a'], { length: 1 }],
      ['splice', ['a'], 0, 0],
      ['splice', ['a'], -1, 0, []],
      ['splice', ['a'], 0, 0.5, []],
      ['splice', ['a'], 0, Number.NaN, []],
      ['splice', ['a'], '0', 0, []],
      ['copy', ['a']],
      ['copy', ['a'], 'b'],
      ['copy', ['a'], []],
      ['copy', ['a'], ['b'], 1],
      ['concat', ['a'], [0]],
      ['concat', ['a'], null],
      ['toString', ['a']],
      ['__proto__', ['a'], 1],
    ]
    for (const op of bad) assert(!isOp(op), JSON.stringify(op))
  })

  it('treat __proto__ and its like as names of properties', () => {
    for (const key of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']) {
      const changed = applyOp({}, set([key, 'polluted'], true))
      assert.deepStrictEqual(Object.keys(changed), [key])
      assert.equal(Object.getPrototypeOf(changed), Object.prototype)
      assert.equal(valueAt(changed, [key, 'polluted']), true)
      assert.equal(valueAt({}, [key]), undefined)
      assert.equal(valueAt({}, [key, 'name']), undefined)
      const listed = applyOp({}, push([key, key], 1))
      assert.deepStrictEqual(valueAt(listed, [key, key]), [1])
      assert.deepStrictEqual(applyOp(changed, remove(key)), {})
    }
    assert.equal(valueAt({ text: 'x' }, ['text', 0]), undefined)
    assertPristine()
  })

  it('leave the state before, and what they were made of, untouched, and agree with the plainest code', () => {
    fc.assert(
      fc.property(anyState, fc.array(anyOp, { maxLength: 12 }), (before, ops) => {
        deepFreeze(before)
        deepFreeze(ops)
        let current: State = before
        for (const op of ops) {
          const expected = applyPlainly(current, op)
          if (expected === 'refused') {
            assert.throws(
              () => applyOp(current, op),
              (error) => isHoldfastError(error, 'invalid-value'),
            )
            continue
          }
          current = deepFreeze(applyOp(current, op))
          assert.deepStrictEqual(current, expected)
        }
        assertPristine()
      }),
      randomly(rounds(1500)),
    )
  })

  it('change in place only what the fold made itself, and come to the same', () => {
    fc.assert(
      fc.property(anyState, fc.array(anyOp, { maxLength: 20 }), (before, ops) => {
        deepFreeze(before)
        deepFreeze(ops)
        const owned = new Set<object>()
        let pure: State = before
        let inPlace: State = before
        for (const op of ops) {
          if (applyPlainly(pure, op) === 'refused') continue
          pure = applyOp(pure, op)
          inPlace = applyOp(inPlace, op, owned)
        }
        assert.deepStrictEqual(inPlace, pure)
      }),
      randomly(rounds(1000)),
    )
  })

  it('that refer to each other over a long tail come to the same in place', () => {
    fc.assert(
      fc.property(fc.array(referringOp, { maxLength: 60 }), (ops) => {
        deepFreeze(ops)
        const owned = new Set<object>()
        let plain: State = deepFreeze({ a: { list: [[1]] }, b: { a: {}, list: [] }, list: [[], [{}]] })
        let inPlace = plain
        for (const op of ops) {
          const next = applyPlainly(plain, op)
          // Lists that are added to themselves double: states must stay small.
          if (next === 'refused' || JSON.stringify(next).length > 5000) continue
          plain = next
          inPlace = applyOp(inPlace, op, owned)
          assert.deepStrictEqual(inPlace, plain)
        }
      }),
      randomly(rounds(1500)),
    )
  })
})
