import assert from 'node:assert/strict'
import { isHoldfastError } from '#src/core/errors.js'
import type { BranchId } from '#src/core/ids.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { type Op, push, remove, type State, set, splice } from '#src/log/entry/ops.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { deepFreeze } from '../codec/values.js'
import { randomly, rounds } from '../support/scale.js'
import { logKey, openStore, rows } from './entry-codec-setup.js'
import { anyOp, applyPlainly } from './ops-model.js'

const log = logKey('fold')

/** Strings and lists long enough for blobs and keyframes, as some of the values. */
const heavyOp: fc.Arbitrary<Op> = fc
  .tuple(fc.constantFrom('a', 'b', 'heavy'), fc.constantFrom(900, 1500, 12_000), fc.nat(3))
  .map(([name, size, form]) => {
    const text = String(size).repeat(size / 4)
    return form === 0
      ? set(name, text)
      : form === 1
        ? set(name, { text: [text, text] })
        : form === 2
          ? push('list', { text })
          : set(name, new Uint8Array(size))
  })

const entry = fc.record({
  ops: fc.array(fc.oneof({ weight: 4, arbitrary: anyOp }, { weight: 1, arbitrary: heavyOp }), {
    minLength: 1,
    maxLength: 4,
  }),
  keyframe: fc.boolean(),
  reopen: fc.boolean(),
})

describe('folding stored entries', () => {
  it('gives what applying the operations in memory gives, across keyframes, blobs, reopening, forks and at any entry', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 1, maxLength: 12 }), fc.nat(), async (entries, pick) => {
        const driver = await openMemory({ clock: virtualClock() })
        const store = openStore(driver)
        let handle = await store.open(log)
        const states: State[] = []
        for (const { ops, keyframe, reopen } of entries) {
          const before = states.at(-1) ?? {}
          const expected = ops.reduce<State | 'refused'>(
            (current, op) => (current === 'refused' ? current : applyPlainly(current, op)),
            before,
          )
          const updated = handle.update(() => [deepFreeze({ kind: 'step', ops, keyframe })])
          if (expected === 'refused') {
            await assert.rejects(updated, (error) => isHoldfastError(error, 'invalid-value'))
            assert.deepStrictEqual(handle.fold.state, before)
          } else {
            assert.deepStrictEqual((await updated).fold.state, expected)
            states.push(expected)
          }
          if (reopen) {
            handle = await openStore(driver).open(log)
            assert.deepStrictEqual(handle.fold.state, states.at(-1) ?? {})
          }
        }
        if (states.length === 0) return
        const seq = pick % states.length
        assert.deepStrictEqual((await handle.at(seq)).state, states[seq])
        const fork = await handle.fork({ at: seq, branch: 'fork' as BranchId })
        assert.deepStrictEqual(fork.fold.state, states[seq])
        assert.deepStrictEqual((await openStore(driver).open(fork.key)).fold, fork.fold)
        let next = 0
        for await (const opened of handle.entries()) assert.deepStrictEqual(opened.fold.state, states[next++])
        assert.equal(next, states.length)
        const verification = await store.verify(log)
        assert.deepStrictEqual(verification?.problems, [])
      }),
      randomly(rounds(150)),
    )
  })

  it('keeps everything a fold knows in a keyframe: a reopened log equals the one that wrote it', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const store = openStore(driver)
    const main = await store.open(log)
    await main.update(() => [
      {
        kind: 'input',
        ops: [set('a', 1)],
        index: { status: 'running', expiresAt: 5, wakeAt: 6, metadata: { m: true }, tags: { t: 0 } },
      },
    ])
    const fork = await main.fork({ branch: 'fork' as BranchId })
    for (const handle of [main, fork]) {
      await handle.update(() => [{ kind: 'step', ops: [push('list', 1)], keyframe: true }])
      await handle.update(() => [{ kind: 'step', ops: [push('list', 2)] }])
      const { weight: _, ...fold } = (await openStore(driver).open(handle.key)).fold
      const { weight: __, ...known } = handle.fold
      assert.deepStrictEqual(fold, known)
    }
  })

  it('still knows where a fork came from after its first entry was pruned and it was written to again', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const store = openStore(driver)
    const main = await store.open(log)
    await main.update(() => [{ kind: 'input', ops: [set('a', 1)] }])
    const fork = await main.fork({ branch: 'fork' as BranchId })
    const origin = { branch: 'main', incarnation: main.fold.incarnation, seq: 0, hash: main.fold.hash }
    await fork.update(() => [{ kind: 'step', ops: [set('a', 2)], keyframe: true }])
    assert.deepEqual(await store.prune(fork.key, 1), { removed: 1 })
    const again = await openStore(driver).open(fork.key)
    assert.deepStrictEqual(again.fold.origin, origin)
    await again.update(() => [{ kind: 'step', ops: [set('a', 3)] }])
    assert.deepStrictEqual((await rows(driver, fork.key)).head.index.origin, origin)
    assert.deepStrictEqual((await store.verify(fork.key))?.problems, [])
  })

  it('refuses an operation that would nest the state deeper than a keyframe can hold, when it is written', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const store = openStore(driver, { limits: { maxDepth: 20 } })
    const handle = await store.open(log)
    const deep = (levels: number) => ['a', ...Array.from({ length: levels }, () => 'a')] as [string, ...string[]]
    await handle.update(() => [{ kind: 'step', ops: [set(deep(15), {})] }])
    await assert.rejects(
      handle.update(() => [{ kind: 'step', ops: [set(deep(30), 1)] }]),
      (error) => isHoldfastError(error, 'too-large'),
    )
    await assert.rejects(
      handle.update(() => [
        { kind: 'step', ops: [set(deep(10), { a: { a: { a: { a: { a: { a: { a: {} } } } } } } })] },
      ]),
      (error) => isHoldfastError(error, 'too-large'),
    )
    for (let levels = 1; levels < 40; levels++) {
      await handle
        .update(() => [{ kind: 'step', ops: [push([...deep(levels), 'list'] as [string, ...string[]], [])] }])
        .catch((error: unknown) => assert(isHoldfastError(error, 'too-large')))
    }
    await handle.update(() => [{ kind: 'step', keyframe: true }])
    assert.deepStrictEqual(
      (await openStore(driver, { limits: { maxDepth: 20 } }).open(log)).fold.state,
      handle.fold.state,
    )
  })
})

describe('a state that outgrew the limits', () => {
  it.each([
    ['bytes', { maxBytes: 200_000 }],
    ['keys', { maxKeys: 500 }],
  ])('of %s stops nobody from writing; only a keyframe that is asked for is refused', async (_, limits) => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver, { limits }).open(log)
    // Three times the limit, and past several moments at which a keyframe is due.
    for (let i = 0; i < 600; i++) {
      await handle.update(() => [{ kind: 'step', ops: [push('list', { i, text: 'x'.repeat(1000) })] }])
    }
    const claim = await handle.claim({ owner: 'w', ms: 1000 })
    await claim.update(() => [{ kind: 'step', ops: [set('last', 1)] }])
    for (const refused of [
      claim.update(() => [{ kind: 'step', keyframe: true }]),
      handle.fork({ branch: 'fork' as BranchId }),
    ]) {
      await assert.rejects(refused, (error) => isHoldfastError(error, 'too-large'))
    }
    const again = await openStore(driver, { limits }).open(log)
    assert.deepStrictEqual(again.fold.state, handle.fold.state)
    assert.equal((await openStore(driver, { limits }).verify(log))?.ok, true)

    // Cut down, it gets its keyframe again.
    await claim.update(() => [{ kind: 'step', ops: [remove('list')], keyframe: true }])
    assert.equal(handle.fold.weight.keyframe, handle.fold.seq)
  })

  it.each([{ maxBytes: Number.NaN }, { maxDepth: 0 }, { maxKeys: '5' }, { maxByte: 5 }])(
    'a limit that is none is refused: %o',
    async (limits) => {
      const driver = await openMemory({ clock: virtualClock() })
      assert.throws(
        () => openStore(driver, { limits: limits as never }),
        (error) => isHoldfastError(error, 'invalid-option'),
      )
    },
  )

  it('a place that is no number is not found, and not taken for damage', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver).open(log)
    await handle.update(() => [{ kind: 'step', ops: [set('a', 1)] }])
    for (const seq of [Number.NaN, 0.5, -1]) {
      await assert.rejects(handle.at(seq), (error) => isHoldfastError(error, 'not-found'))
    }
  })
})

describe('a draft that could not be read back is refused with nothing written', () => {
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  it.each([
    ['no draft', null, 'kind'],
    ['no kind', {}, 'kind'],
    ['an odd kind', { kind: 'Step' }, 'kind'],
    ['a kind in a list', { kind: ['step'] }, 'kind'],
    ['a long kind', { kind: 's'.repeat(33) }, 'kind'],
    ['a kind with a line break', { kind: 'step\n' }, 'kind'],
    ['operations that are no list', { kind: 'step', ops: {} }, 'ops'],
    ['something that is no operation', { kind: 'step', ops: [['merge', ['a'], 1]] }, 'ops'],
    ['an operation without a path', { kind: 'step', ops: [['set', [], 1]] }, 'ops'],
    ['an index that is null', { kind: 'step', index: null }, 'index'],
    ['an index that is a number', { kind: 'step', index: 5 }, 'index'],
    ['an index that is a list', { kind: 'step', index: [] }, 'index'],
    ['an index that is a date', { kind: 'step', index: new Date() }, 'index'],
    ['an unknown field of the index', { kind: 'step', index: { owner: 'x' } }, 'index.owner'],
    ['a status that is no text', { kind: 'step', index: { status: 5 } }, 'status'],
    ['a status with a lone surrogate', { kind: 'step', index: { status: '\ud800' } }, 'status'],
    ['a time that is a Date', { kind: 'step', index: { wakeAt: new Date() } }, 'wakeAt'],
    ['a time that is a fraction', { kind: 'step', index: { expiresAt: 0.5 } }, 'expiresAt'],
    ['metadata that is a list', { kind: 'step', index: { metadata: ['x'] } }, 'metadata'],
    ['metadata that is text', { kind: 'step', index: { metadata: 'x' } }, 'metadata'],
    ['metadata that is a Map', { kind: 'step', index: { metadata: new Map() } }, 'metadata'],
    ['metadata with an object in it', { kind: 'step', index: { metadata: { a: {} } } }, 'metadata.a'],
    ['metadata with NaN', { kind: 'step', index: { metadata: { a: Number.NaN } } }, 'metadata.a'],
    ['metadata with undefined', { kind: 'step', index: { metadata: { a: undefined } } }, 'metadata.a'],
    ['metadata without a name', { kind: 'step', index: { metadata: { '': 1 } } }, 'metadata'],
    ['a tag of an entry that does not exist', { kind: 'step', index: { tags: { a: 99 } } }, 'tags.a'],
    ['a tag of no entry', { kind: 'step', index: { tags: { a: -1 } } }, 'tags.a'],
    ['tags that are a list', { kind: 'step', index: { tags: ['a'] } }, 'tags'],
    ['data with a function', { kind: 'step', data: { f: () => 1 } }, '$.data.f'],
    ['data with a cycle', { kind: 'step', data: cyclic }, '$.data.self'],
    ['a value that is undefined', { kind: 'step', ops: [['set', ['a'], undefined]] }, '$.ops[0][2]'],
    ['an operation that does not fit', { kind: 'step', ops: [['push', ['text'], [1]]] }, '$.text'],
  ])('%s', async (_, draft, field) => {
    const driver = await openMemory({ clock: virtualClock() })
    const store = openStore(driver)
    const handle = await store.open(log)
    await handle.update(() => [{ kind: 'input', ops: [set('text', 'hello')] }])
    const before = handle.fold
    await assert.rejects(
      handle.update(() => [draft as never]),
      (error) => {
        assert(isHoldfastError(error, 'invalid-value'), error as Error)
        assert.equal(error.data['field'], field)
        return error.remedy.length > 0
      },
    )
    assert.equal(handle.fold, before)
    assert.equal((await driver.head(log))?.seq, 0)
    await handle.update(() => [{ kind: 'step', ops: [remove('text'), splice('list', 0, 0, 1)] }])
    assert.deepStrictEqual((await openStore(driver).open(log)).fold.state, { list: [1] })
  })
})
