import assert from 'node:assert/strict'
import { type ErrorCode, isHoldfastError } from '#src/core/errors.js'
import {
  applyIndexPatch,
  checkIndexPatch,
  checkIndexSize,
  EMPTY_INDEX,
  type IndexPatch,
  indexFields,
  MAX_LABEL_NAME_BYTES,
  MAX_LABEL_VALUE_BYTES,
  MAX_LABELS,
  MAX_STATUS_BYTES,
} from '#src/log/entry/index-state.js'
import { describe, it } from 'vitest'
import { assertPristine, deepFreeze } from '../codec/values.js'

function refused(patch: unknown, code: ErrorCode, field: string): void {
  assert.throws(
    () => checkIndexPatch(patch as IndexPatch, 5),
    (error) => isHoldfastError(error, code) && error.data['field'] === field,
  )
}

describe('the index part of a fold', () => {
  it('takes a patch without touching what was before', () => {
    const before = deepFreeze({ ...EMPTY_INDEX, metadata: { a: 1, b: 'x' }, tags: { t: 1 }, createdAt: 7 })
    const after = applyIndexPatch(before, deepFreeze({ status: 'done', metadata: { a: null, c: false }, wakeAt: 9 }))
    assert.deepStrictEqual(after, {
      status: 'done',
      createdAt: 7,
      expiresAt: null,
      wakeAt: 9,
      metadata: { b: 'x', c: false },
      tags: { t: 1 },
    })
    assert.equal(after.tags, before.tags)
    assert.equal(applyIndexPatch(before, undefined), before)
    assert.equal(applyIndexPatch(after, { wakeAt: null }).wakeAt, null)
  })

  it('takes labels of any name', () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'é', '0', 'a.b', "'; drop table"]) {
      const patch = { metadata: Object.fromEntries([[name, 'v']]), tags: Object.fromEntries([[name, 0]]) }
      checkIndexPatch(patch, 0)
      const index = applyIndexPatch(EMPTY_INDEX, patch)
      assert.deepStrictEqual(Object.entries(index.metadata), [[name, 'v']])
      assert.deepStrictEqual(indexFields(index, 1, null).tags, [name])
      assert.deepStrictEqual(applyIndexPatch(index, { tags: Object.fromEntries([[name, null]]) }).tags, {})
      assert.deepStrictEqual(applyIndexPatch(EMPTY_INDEX, { tags: Object.fromEntries([[name, null]]) }).tags, {})
    }
    assertPristine()
  })

  it('bounds names, values and status, to the byte', () => {
    checkIndexPatch({ status: 'é'.repeat(MAX_STATUS_BYTES / 2) }, 0)
    refused({ status: `${'é'.repeat(MAX_STATUS_BYTES / 2)}x` }, 'too-large', 'status')
    const name = 'n'.repeat(MAX_LABEL_NAME_BYTES)
    checkIndexPatch({ metadata: { [name]: 'v'.repeat(MAX_LABEL_VALUE_BYTES) }, tags: { [name]: 0 } }, 0)
    refused({ metadata: { [`${name}n`]: 1 } }, 'too-large', `metadata.${name}n`)
    refused({ tags: { [`${name}n`]: 1 } }, 'too-large', `tags.${name}n`)
    refused({ metadata: { a: 'v'.repeat(MAX_LABEL_VALUE_BYTES + 1) } }, 'too-large', 'metadata.a')
    refused({ metadata: { a: '\udc00' } }, 'invalid-value', 'metadata.a')
    refused({ metadata: { a: 'x\u0000' } }, 'invalid-value', 'metadata.a')
    refused({ status: '\u0000' }, 'invalid-value', 'status')
    refused({ tags: { '\udc00': 1 } }, 'invalid-value', 'tags.\udc00')
  })

  it('bounds how many labels there are', () => {
    const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`l${i}`, i]))
    checkIndexSize({ ...EMPTY_INDEX, metadata: labels(MAX_LABELS), tags: labels(MAX_LABELS) })
    for (const field of ['metadata', 'tags'] as const) {
      assert.throws(
        () => checkIndexSize({ ...EMPTY_INDEX, [field]: labels(MAX_LABELS + 1) }),
        (error) => isHoldfastError(error, 'too-large'),
      )
    }
  })

  it('lets a tag mark any entry up to the one that brings it', () => {
    checkIndexPatch({ tags: { a: 0, b: 5, c: null } }, 5)
    for (const seq of [6, -1, 0.5, '1', Number.NaN, undefined]) refused({ tags: { a: seq } }, 'invalid-value', 'tags.a')
  })

  it('shows tags sorted', () => {
    const index = applyIndexPatch(EMPTY_INDEX, { tags: { b: 1, a: 2, B: 3 } })
    assert.deepStrictEqual(indexFields(index, 4, null).tags, ['B', 'a', 'b'])
    assert.equal(indexFields(index, 4, null).updatedAt, 4)
  })
})
