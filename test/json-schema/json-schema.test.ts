import { Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import { isHoldfastError } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { hasFormat } from '#src/json-schema/format.js'
import { Patterns } from '#src/json-schema/pattern.js'
import { checkAgainst, refuseSchema } from '#src/json-schema/schema-checker.js'
import { randomly, rounds } from '../support/scale.js'

type Json = Parameters<typeof checkAgainst>[0]

async function problemOf(schema: unknown, value: unknown) {
  try {
    await checkAgainst(schema as Json, value as Json)
    return undefined
  } catch (error) {
    if (!isHoldfastError(error, 'invalid-value')) throw error
    return { path: error.data.path, message: error.message }
  }
}

describe('a value and its JSON Schema', () => {
  it.each([
    [{ type: 'number', maximum: 100 }, 500, '$', 'must be at most 100, not 500'],
    [{ properties: { a: { items: { minLength: 2 } } } }, { a: ['ab', 'c'] }, '$.a[1]', 'at least 2 characters, not 1'],
    [{ type: ['string', 'null'] }, 5, '$', 'must be of type string or null, not 5'],
    [{ enum: ['a', 'b'] }, 'c', '$', 'must be one of ["a","b"], not "c"'],
    [{ additionalProperties: false }, { 'a b': 1 }, '$["a b"]', 'is not a known property'],
    [{ required: ['to'] }, {}, '$', 'lacks the property "to"'],
    [{ anyOf: [{ type: 'string' }, { properties: { a: { const: 1 } } }] }, { a: 2 }, '$.a', 'must be 1, not 2'],
    [{ format: 'date' }, '2025-02-29', '$', 'must be in the format "date"'],
    [{ multipleOf: 0.01 }, 0.005, '$', 'a multiple of 0.01'],
    [{ items: [{ type: 'string' }], additionalItems: false }, ['a', 'b'], '$[1]', 'is not allowed here'],
    [
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      '$[1]',
      'appears twice',
    ],
    [false, 1, '$', 'is not allowed'],
  ])('%j refuses %j, and says where and why', async (schema, value, path, message) => {
    expect(await problemOf(schema, value)).toMatchObject({ path, message: expect.stringContaining(message) })
  })

  it.each([
    [{ multipleOf: 0.01 }, 19.99],
    [{ maxLength: 2 }, '😀😀'],
    [{ $ref: '#/$defs/a%20b', $defs: { 'a b': { type: 'number' } } }, 1],
    [{ $id: 'https://a.test/root', $ref: 'part', $defs: { p: { $id: 'part', type: 'number' } } }, 1],
    [{ $ref: '#here', $defs: { p: { $anchor: 'here', type: 'number' } } }, 1],
    [{ properties: { pattern: { type: 'string' } }, const: { pattern: '(' } }, { pattern: '(' }],
    [{ type: 'object', properties: { next: { $ref: '#' } } }, { next: { next: {} } }],
  ])('%j takes %j', async (schema, value) => {
    expect(await problemOf(schema, value)).toBeUndefined()
  })

  it('checks what Zod writes, its own formats and patterns included', async () => {
    const schema = z.toJSONSchema(z.object({ mail: z.email(), at: z.iso.datetime(), id: z.uuid(), url: z.url() }))
    const value = {
      mail: 'ada@example.com',
      at: '2026-05-01T10:00:00Z',
      id: '123e4567-e89b-42d3-a456-426614174000',
      url: 'https://example.com/a?b=c',
    }
    expect(await problemOf(schema, value)).toBeUndefined()
    expect(await problemOf(schema, { ...value, mail: 'ada..@example.com' })).toMatchObject({ path: '$.mail' })
    expect(await problemOf(schema, { ...value, at: 'soon' })).toMatchObject({ path: '$.at' })
  })

  const scalar = fc.constantFrom<unknown>(null, true, false, 0, 1, 2, 2.5, -1, '', 'a', 'b', 'ab', 'abc')
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      scalar,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'ab'), tie('value'), { maxKeys: 3 }),
    ),
  }))
  const small = fc.nat(3)
  const { schema } = fc.letrec((tie) => {
    const one = tie('schema')
    const some = fc.array(one, { minLength: 1, maxLength: 3 })
    const names = fc.array(fc.constantFrom('a', 'b'), { maxLength: 2 })
    const map = fc.dictionary(fc.constantFrom('a', 'b'), one, { maxKeys: 2 })
    return {
      schema: fc.oneof(
        { depthSize: 'small' },
        fc.boolean(),
        fc.record(
          {
            type: fc.constantFrom('null', 'boolean', 'number', 'integer', 'string', 'array', 'object', [
              'string',
              'number',
            ]),
            minimum: small,
            maximum: small,
            exclusiveMinimum: small,
            exclusiveMaximum: small,
            minLength: small,
            maxLength: small,
            pattern: fc.constantFrom('a', '^a', 'b$', '^(a|b)+$', '^.$'),
            minItems: small,
            maxItems: small,
            uniqueItems: fc.boolean(),
            minProperties: small,
            maxProperties: small,
            required: names,
            enum: fc.array(scalar, { minLength: 1, maxLength: 3 }),
          },
          { requiredKeys: [] },
        ),
        fc.record(
          {
            const: value,
            allOf: some,
            anyOf: some,
            oneOf: some,
            not: one,
            if: one,
            // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema.
            then: one,
            else: one,
            $ref: fc.constantFrom('#/$defs/x', '#/$defs/y'),
          },
          { requiredKeys: [] },
        ),
        fc.record(
          {
            properties: map,
            patternProperties: fc.dictionary(fc.constantFrom('a', '^b', 'b$'), one, { maxKeys: 2 }),
            additionalProperties: one,
            propertyNames: one,
            dependentRequired: fc.dictionary(fc.constantFrom('a', 'b'), names, { maxKeys: 2 }),
            dependentSchemas: map,
            unevaluatedProperties: fc.boolean(),
          },
          { requiredKeys: [] },
        ),
        fc.record(
          { prefixItems: some, items: one, contains: one, minContains: small, maxContains: small },
          { requiredKeys: [] },
        ),
      ),
    }
  })
  const simple = fc.constantFrom<unknown>(true, { type: 'string' }, { minimum: 1 }, { required: ['a'] }, { const: 'a' })

  it('are judged as another validator judges them', async () => {
    await fc.assert(
      fc.asyncProperty(
        schema,
        simple,
        simple,
        fc.array(value, { minLength: 3, maxLength: 3 }),
        async (made, x, y, values) => {
          const root =
            typeof made === 'boolean' ? { allOf: [made], $defs: { x, y } } : { ...(made as object), $defs: { x, y } }
          const other = new Validator(root as never, '2020-12', false)
          for (const one of values) {
            const ours = await problemOf(root, one)
            expect({ one, fits: ours === undefined }).toEqual({ one, fits: other.validate(one).valid })
          }
        },
      ),
      randomly(rounds(400)),
    )
  })
})

describe('a hostile schema or value', () => {
  const evil = `${'a'.repeat(35)}!`

  it.each([
    ['^(a+)+$', evil],
    ['^(a|a)*$', evil],
    ['^(([a-z])+.)+[A-Z]([a-z])+$', 'a'.repeat(60)],
    ['(x+x+)+y', 'x'.repeat(5000)],
    // No linear engine has these: they are given up in time.
    ['^(?=(a+)+$)b', evil],
    ['^(a+)+\\1$', evil],
  ])('does not hold the event loop with the pattern %s', async (pattern, text) => {
    expect(await problemOf({ pattern }, text)).toMatchObject({ path: '$' })
    expect(
      await problemOf({ patternProperties: { [pattern]: false }, additionalProperties: false }, { [text]: 1 }),
    ).toBeDefined()
  })

  it('is refused when its pattern costs too much for a text', async () => {
    const found = await problemOf({ pattern: '(a{1,100}b?){1,9}c' }, 'a'.repeat(1_000_000))
    expect(found?.message).toMatch(/can't be checked: that takes more than/)
  })

  it('is refused when references multiply', async () => {
    const $defs: Record<string, unknown> = { d0: { type: 'number' } }
    for (let i = 1; i <= 40; i++)
      $defs[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] }
    const schema = { $ref: '#/$defs/d40', $defs }
    expect(refuseSchema(schema as Json)).toBeUndefined()
    expect((await problemOf(schema, 1))?.message).toMatch(/can't be checked: that takes more than/)
  })

  it.each([
    [{ $ref: '#' }, /circle/],
    [
      { $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } }, $ref: '#/$defs/a' },
      /circle/,
    ],
    [
      { properties: { a: { $ref: 'https://evil.test/schema.json' } } },
      /"https:\/\/evil.test\/schema.json", which is not part/,
    ],
    [{ $ref: 'file:///etc/passwd' }, /which is not part of it/],
    [{ $ref: '#/$defs/gone' }, /which is not part of it/],
    [{ $ref: '#/constructor' }, /which is not part of it/],
    [{ properties: { a: { pattern: '(' } } }, /is not a regular expression/],
    [{ properties: { a: { pattern: 'a'.repeat(5000) } } }, /5000 characters/],
  ])('%# is refused by name when it is declared, and refuses every value', async (schema, message) => {
    expect(refuseSchema(schema as Json)).toMatch(message)
    const found = await problemOf(schema, { a: 'aaa' })
    expect(found).toBeDefined()
  })

  it('is refused when it is deeper than anything is', async () => {
    let schema: unknown = {}
    for (let i = 0; i < 5000; i++) schema = { not: schema }
    expect(refuseSchema(schema as Json)).toMatch(/inside each other/)
    expect((await problemOf(schema, 1))?.message).toMatch(/inside each other/)
  })

  it('has formats that take time in proportion to the text', () => {
    for (const format of ['date-time', 'duration', 'email', 'hostname', 'uri', 'json-pointer', 'time']) {
      for (const part of ['a', '1', '.', '/', 'a.', '@', ':', 'P1Y']) {
        expect(typeof hasFormat(format, `${part.repeat(200_000)}!`)).toBe('boolean')
      }
    }
  })
})

describe('a pattern', () => {
  const atom = fc.constantFrom(
    ...[
      'a',
      'b',
      '.',
      '\\s',
      '\\S',
      '\\d',
      '\\w',
      '\\W',
      '[a-c]',
      '[^a]',
      '[\\s1]',
      '[.[]',
      '[a&b]',
      '[^\\n]',
      '\\.',
      '\\u0041',
    ],
    ...['\\u{1F600}', '\\ud83d\\ude00', '\\x41', '\\b', '^', '$', '\\/', '\\t', '\\p{L}', '\\P{L}', '[\\]]', '[a\\-b]'],
  )
  const { pattern } = fc.letrec((tie) => ({
    pattern: fc.oneof(
      { depthSize: 'small' },
      atom,
      fc.tuple(atom, fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '*?')).map(([one, many]) => `(?:${one})${many}`),
      fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `${String(one)}${String(other)}`),
      fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `(${String(one)}|${String(other)})`),
    ),
  }))
  const text = fc
    .array(
      fc.constantFrom(
        'a',
        'b',
        'A',
        'é',
        ' ',
        '\u00a0',
        '\ufeff',
        '\n',
        '\r',
        '\u2028',
        '1',
        '_',
        '/',
        '.',
        '[',
        '&',
        '-',
        '😀',
        '\t',
      ),
      { maxLength: 6 },
    )
    .map((chars) => chars.join(''))

  it('is found where JavaScript finds it', async () => {
    await fc.assert(
      fc.asyncProperty(pattern, fc.array(text, { minLength: 5, maxLength: 5 }), async (one, texts) => {
        const source = String(one)
        const found = (await Patterns.for(new Set([source]))).get(source)
        for (const among of texts) {
          expect({ source, among, found: found.find(among) }).toEqual({
            source,
            among,
            found: new RegExp(source, 'u').test(among),
          })
        }
      }),
      randomly(rounds(300)),
    )
  })
})
