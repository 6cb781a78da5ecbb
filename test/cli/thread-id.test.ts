import { fc, test } from '@fast-check/vitest'
import { formatThreadId, parseScope, parseThreadId } from '#src/cli/input/thread-id.js'
import { describe, expect, it } from 'vitest'
import { randomly } from '../support/scale.js'

describe('thread ids on the command line', () => {
  it.each<[string, string | Record<string, string>]>([
    ['bf-847', 'bf-847'],
    ['user=user-42,session=bf-847', { user: 'user-42', session: 'bf-847' }],
    ['{session=bf-847,user=user-42}', { user: 'user-42', session: 'bf-847' }],
    ['a=b%2cc%3dd', { a: 'b,c=d' }],
    ['YWJj=', 'YWJj='],
    ['a=b=c', 'a=b=c'],
    ['1=2', '1=2'],
    ['user-42/bf-847', 'user-42/bf-847'],
    ['\\a=b', 'a=b'],
    ['\\\\a', '\\a'],
  ])('reads %s', (text, id) => expect(parseThreadId(text)).toEqual(id))

  it('refuses a part that is named twice, and a scope without parts', () => {
    expect(() => parseThreadId('a=1,a=2')).toThrow('names a part twice')
    expect(() => parseScope('user-42')).toThrow('is not a scope')
  })

  const plain = fc.string({
    minLength: 1,
    unit: fc.constantFrom('a', '=', ',', '\\', '{', '}', '%', '2', 'c', ' ', 'é'),
  })
  const name = fc
    .string({ minLength: 1, unit: fc.constantFrom('a', 'b', '_', '-', '.') })
    .filter((key) => !/^[-.]/.test(key))
  test.prop([fc.oneof(plain, fc.dictionary(name, plain, { minKeys: 1 }))], randomly(200))(
    'are written so that the same id is read back',
    (id) => {
      const entries = typeof id === 'string' ? id : { ...id }
      expect(parseThreadId(formatThreadId(entries))).toEqual(entries)
    },
  )
})
