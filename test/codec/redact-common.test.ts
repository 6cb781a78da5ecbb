import fc from 'fast-check'
import { redactCommon } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

const redact = redactCommon()

describe('the usual secrets', () => {
  it.each([
    ['4111 1111 1111 1111', '[redacted card]'],
    ['pay with 5500-0000-0000-0004 now', 'pay with [redacted card] now'],
    ['378282246310005.', '[redacted card].'],
    ['write to ada.lovelace+test@mail.example.co.uk, please', 'write to [redacted mail], please'],
    ['Authorization: Bearer abcdef1234567890', 'Authorization: Bearer [redacted key]'],
    ['OPENAI_API_KEY=sk-proj-abcdefghijklmnop', 'OPENAI_API_KEY=[redacted key]'],
    ['AKIAIOSFODNN7EXAMPLE', '[redacted key]'],
    ['ghp_abcdefghijklmnopqrstuvwxyz0123456789', '[redacted key]'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', '[redacted key]'],
    ['postgres://user:hunter2@host/db', 'postgres://[redacted key]@host/db'],
    ['{"password": "hunter2"}', '{"password": "[redacted key]"}'],
    ['-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----', '[redacted key]'],
  ])('in %s', (text, expected) => expect(redact(text, undefined)).toBe(expected))

  it.each([
    'Order ORD-2024-8847 of 2024-11-29T12:00:00Z',
    'invoice 4111111111111112',
    'at 1732881600000 ms',
    'f3b1c2d4e5f60718293a4b5c6d7e8f9012345678901234567890123456789012',
    'see @ada or https://example.com/a@b',
    'the key to success, a secret: patience',
    '0000000000000000',
    'v1.2.3 costs 12.50',
  ])('are not in %s', (text) => expect(redact(text, undefined)).toBe(text))

  it('are what certain properties hold, whatever it looks like', () => {
    expect(redact('open sesame', 'password')).toBe('[redacted key]')
    expect(redact('123', 'cvc')).toBe('[redacted card]')
    expect(redact('open sesame', 'title')).toBe('open sesame')
    expect(redact('', 'password')).toBe('')
  })

  it('can be chosen', () => {
    const text = 'ada@example.com 4111111111111111 sk-abcdefghijklmnop'
    expect(redactCommon({ cards: false, keys: false })(text, undefined)).toBe(
      '[redacted mail] 4111111111111111 sk-abcdefghijklmnop',
    )
    expect(redactCommon({ mails: false, cards: false, keys: false })(text, 'password')).toBe(text)
  })

  it('are gone after one pass: a second finds nothing', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '4111 1111 1111 1111',
        'a@b.co',
        'sk-abcdefghijklmnop',
        'Bearer abcdefghij',
        'password=',
        'api key: ',
        '://u:p@',
        '@',
        ' ',
        '-',
        '1',
        '[redacted key]',
      ),
      fc.string({ maxLength: 8 }),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const once = redact(pieces.join(''), undefined)
        expect(redact(once, undefined)).toBe(once)
      }),
      randomly(rounds(2000)),
    )
  })

  it('are looked for in time that grows with the text and no faster', () => {
    // Each would take hours with a pattern that tries again from every place.
    for (const unit of [
      'a.',
      '1 ',
      '@',
      'a@',
      'Bearer ',
      '-----BEGIN PRIVATE KEY-----',
      'eyJ',
      'password=',
      '://a:',
      'sk-',
    ]) {
      expect(redact(unit.repeat(50_000), undefined).length).toBeGreaterThan(0)
    }
  })
})
