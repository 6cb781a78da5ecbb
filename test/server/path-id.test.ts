import fc from 'fast-check'
import { pathId, readPathId } from 'holdfast/client'
import { describe, expect, it } from 'vitest'
import { randomly } from '../support/scale.js'

const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((one) => one.isWellFormed())
const odd = fc.constantFrom('{a=b}', '\\{', '~x', 'a/b', '..', '%2c', '{', 'a=b,c=d')

describe('a thread id in a path', () => {
  it('is read back as it was, whatever it holds', () => {
    const plain = fc.oneof(text, odd)
    const parts = fc.dictionary(fc.oneof(text, odd), fc.oneof(text, odd), {
      minKeys: 1,
      maxKeys: 3,
      noNullPrototype: true,
    })
    fc.assert(
      fc.property(fc.oneof(plain, parts), (id) => {
        expect(readPathId(decodeURIComponent(pathId(id)))).toEqual(id)
      }),
      randomly(500),
    )
  })
})
