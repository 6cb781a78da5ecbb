import assert from 'node:assert/strict'
import { isHoldfastError } from '#src/core/errors.js'
import {
  MAX_BRANCH_BYTES,
  MAX_ID_BYTES,
  parseBranchId,
  parseTenantId,
  parseThreadId,
  type ThreadIdInput,
  threadIdInput,
} from '#src/core/ids.js'
import { nameLog } from '#src/core/log-name.js'
import { randomIds } from '#src/core/random-id.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

/** Few characters that all mean something to the stored form, so that collisions would be found. */
const tricky = fc.string({
  unit: fc.constantFrom('{', '}', '=', ',', '%', '\\', 'a', '7', 'b', '2', 'c', '"', ' ', 'é'),
  minLength: 1,
  maxLength: 8,
})
const printable = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 30 })
  .filter((text) => !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text))
const text = fc.oneof(
  tricky,
  printable,
  fc.constantFrom('__proto__', 'constructor', '\\', '{}', '{a=b}', '\\{a=b}', '%7b', '%', '0'),
)
const structured = fc
  .uniqueArray(fc.tuple(text, text), { minLength: 1, maxLength: 4, selector: ([key]) => key })
  .map((parts): Record<string, string> => Object.fromEntries(parts))
const input: fc.Arbitrary<ThreadIdInput> = fc.oneof(text, structured)

function sameInput(a: ThreadIdInput, b: ThreadIdInput): boolean {
  if (typeof a === 'string' || typeof b === 'string') return a === b
  const order = (parts: Readonly<Record<string, string>>) =>
    JSON.stringify(Object.entries(parts).sort(([x], [y]) => (x < y ? -1 : 1)))
  return order(a) === order(b)
}

function refused(parse: () => unknown, field: string | RegExp): void {
  assert.throws(parse, (error) => {
    assert(isHoldfastError(error, 'invalid-id'), String(error))
    assert.match(String(error.data['field']), typeof field === 'string' ? new RegExp(`^${field}$`) : field)
    return error.remedy.length > 0
  })
}

describe('thread ids', () => {
  it('come back as they were written', () => {
    fc.assert(
      fc.property(input, (id) => {
        assert.deepStrictEqual(sameInput(threadIdInput(parseThreadId(id)), id), true)
      }),
      randomly(rounds(2000)),
    )
  })

  it('never meet: different inputs, plain or structured, have different stored forms', () => {
    fc.assert(
      fc.property(input, input, (a, b) => {
        assert.equal(parseThreadId(a) === parseThreadId(b), sameInput(a, b))
        // What one is stored as, written by somebody as a plain id, is another thread still.
        assert.equal(
          parseThreadId(String(parseThreadId(a))) === parseThreadId(a),
          typeof a === 'string' && !/^[{\\]/.test(a),
        )
      }),
      randomly(rounds(3000)),
    )
  })

  it('are stored in one form, whatever the order of their parts', () => {
    assert.equal(parseThreadId({ user: 'u', session: 's' }), '{session=s,user=u}')
    assert.equal(parseThreadId({ session: 's', user: 'u' }), '{session=s,user=u}')
    assert.equal(parseThreadId('bf-847'), 'bf-847')
    assert.equal(parseThreadId('{session=s}'), '\\{session=s}')
    assert.equal(parseThreadId({ 'a=b': '{c},%' }), '{a%3db=%7bc%7d%2c%25}')
    const proto = parseThreadId(JSON.parse('{"__proto__":"x"}'))
    assert.deepStrictEqual(Object.entries(threadIdInput(proto)), [['__proto__', 'x']])
    assert.notEqual(parseThreadId('é'), parseThreadId('e\u0301'))
  })

  it('are refused when they are no ids', () => {
    for (const bad of [undefined, null, 5, 5n, true, [], ['a'], Symbol('s'), () => 'x'])
      refused(() => parseThreadId(bad), 'thread id')
    refused(() => parseThreadId(''), 'thread id')
    refused(() => parseThreadId({}), 'thread id')
    refused(() => parseThreadId({ a: '' }), 'thread id part "a"')
    refused(() => parseThreadId({ a: 5 }), 'thread id part "a"')
    refused(() => parseThreadId({ a: undefined }), 'thread id part "a"')
    refused(() => parseThreadId({ '': 'x' }), 'a key of the thread id')
    refused(() => parseThreadId({ a: 'x\n' }), 'thread id part "a"')
    refused(() => parseThreadId({ 'a\n': 'x' }), 'a key of the thread id')
  })
})

describe('all ids', () => {
  const parsers = [
    ['tenant id', parseTenantId, MAX_ID_BYTES],
    ['thread id', parseThreadId, MAX_ID_BYTES],
    ['branch id', parseBranchId, MAX_BRANCH_BYTES],
  ] as const

  it.each(parsers)('%s: up to its limit in bytes of UTF-8', (field, parse, limit) => {
    for (const [char, bytes] of [
      ['a', 1],
      ['é', 2],
      ['水', 3],
      ['😀', 4],
    ] as const) {
      const longest = char.repeat(Math.floor(limit / bytes))
      assert.equal(parse(longest), longest)
      refused(() => parse(longest + char), field)
    }
  })

  it.each(parsers)('%s: any printable Unicode, and nothing else', (field, parse) => {
    for (let code = 0; code <= 0x2100; code++) {
      const forbidden = code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0x2028 || code === 0x2029
      const id = `a${String.fromCodePoint(code)}b`
      if (forbidden) refused(() => parse(id), field)
      else assert.equal(parse(id), id)
    }
    for (const lone of ['\ud800', 'a\udfff', '\ude00\ud83d']) refused(() => parse(lone), field)
    assert.equal(parse('😀'), '😀')
  })

  it('a structured id is bounded as it is stored', () => {
    const fits = { a: 'x'.repeat(MAX_ID_BYTES - '{a=}'.length) }
    assert.equal(Buffer.byteLength(parseThreadId(fits)), MAX_ID_BYTES)
    refused(() => parseThreadId({ a: `${fits.a}x` }), 'thread id')
    refused(() => parseThreadId({ a: '='.repeat(200) }), 'thread id')
  })

  it('name what is wrong and where', () => {
    assert.throws(
      () => parseTenantId('ab\u0007'),
      (error) => {
        assert(isHoldfastError(error, 'invalid-id'))
        assert.equal(error.data['position'], 2)
        assert.equal(error.data['codePoint'], 7)
        return error.message.includes('U+0007')
      },
    )
  })
})

describe('names of logs in messages', () => {
  it('leave out what is usual and show what is invisible', () => {
    assert.equal(nameLog({ tenant: 'default', thread: 'bf-847', branch: 'main' }), 'thread "bf-847"')
    assert.equal(nameLog({ tenant: 'acme', thread: 'a"b', branch: 'x' }), 'thread "a\\"b" branch "x" of tenant "acme"')
    assert.equal(
      nameLog({ tenant: 'default', thread: 'a\u202eb\u{e0041}', branch: 'main' }),
      'thread "a\\u{202e}b\\u{e0041}"',
    )
  })
})

describe('random ids', () => {
  it('are 16 characters that need no escaping, and do not repeat', () => {
    const next = randomIds()
    const seen = new Set<string>()
    for (let i = 0; i < 5000; i++) {
      const id = next()
      assert.match(id, /^[\w-]{16}$/)
      seen.add(id)
    }
    assert.equal(seen.size, 5000)
  })
})
