import assert from 'node:assert/strict'
import { isHoldfastError } from '#src/core/errors.js'
import { type BranchId, MAX_BRANCH_BYTES, parseBranchId } from '#src/core/ids.js'
import { formatCheckpointId, parseCheckpointId } from '#src/log/entry/checkpoint-id.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

const HASH = '0123456789abcdef'.repeat(4)

const ODD_BRANCHES = [
  'main',
  '~',
  '~~',
  'a~b',
  '~1~0123456789ab',
  'main~1~0123456789ab',
  '%',
  '%25',
  '%7E',
  '100%',
  'a b',
  'é',
  '😀',
  '/',
  '../..',
  '#?&=',
  '__proto__',
  '{a=b}',
  '\\',
  '"',
  '5',
]

const branch = fc.oneof(
  fc.constantFrom(...ODD_BRANCHES),
  fc.string({ unit: fc.constantFrom('~', '%', '2', '5', '0', 'a', 'é', '7', 'E'), minLength: 1, maxLength: 20 }),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => {
    try {
      return parseBranchId(text).length > 0
    } catch {
      return false
    }
  }),
)

describe('a checkpoint id', () => {
  it('comes back as what it names, whatever the branch is called', () => {
    fc.assert(
      fc.property(branch, fc.integer({ min: 0, max: 999_999_999_999_999 }), (name, seq) => {
        const id = formatCheckpointId(name as BranchId, seq, HASH)
        assert.deepStrictEqual(parseCheckpointId(id), { branch: name, seq, hashStart: HASH.slice(0, 12) })
        assert.match(id, /^[\x21-\x7e]+$/)
      }),
      randomly(rounds(1000)),
    )
  })

  it('differs for different entries', () => {
    fc.assert(
      fc.property(branch, branch, fc.nat(20), fc.nat(20), (a, b, m, n) => {
        const same = a === b && m === n
        assert.equal(formatCheckpointId(a as BranchId, m, HASH) === formatCheckpointId(b as BranchId, n, HASH), same)
      }),
      randomly(rounds(1000)),
    )
  })

  it('is refused when it is malformed', () => {
    const start = HASH.slice(0, 12)
    const bad = [
      undefined,
      null,
      5,
      {},
      '',
      'main',
      'main~1',
      `main~1~${start}x`,
      `main~1~${start.slice(1)}`,
      `main~-1~${start}`,
      `main~1.5~${start}`,
      `main~~${start}`,
      `~1~${start}`,
      `main~1~${start.toUpperCase()}`,
      `main~1~${start}\n`,
      `a\nb~1~${start}`,
      `${'b'.repeat(MAX_BRANCH_BYTES + 1)}~1~${start}`,
      `%00~1~${start}`,
    ]
    for (const id of bad)
      assert.throws(
        () => parseCheckpointId(id),
        (error) => isHoldfastError(error, 'invalid-id'),
        String(id),
      )
  })
})
