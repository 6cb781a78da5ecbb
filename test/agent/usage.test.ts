import { checkPrices, findPrice } from '#src/agent/model/cost/cost.js'
import { estimateTextTokens } from '#src/agent/messages/estimate.js'
import { completeUsage, NO_USAGE, readUsage } from '#src/agent/model/cost/usage.js'
import fc from 'fast-check'
import type { Usage } from 'holdfast'
import { addUsage, costOf, estimateTokens, loadTokenCounter, makeMessage } from 'holdfast/messages'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

const neverAsked = {
  input: () => expect.unreachable('no estimate is needed') as never,
  output: () => expect.unreachable('no estimate is needed') as never,
}

describe('usage', () => {
  it('is read from spec V3 and V4', () => {
    const reported = readUsage({
      inputTokens: { total: 100, noCache: 30, cacheRead: 60, cacheWrite: 10 },
      outputTokens: { total: 40, text: 25, reasoning: 15 },
    })
    expect(completeUsage(reported, neverAsked)).toEqual({
      input: 100,
      cachedInput: 60,
      cacheWrite: 10,
      output: 40,
      reasoning: 15,
      total: 140,
      basis: 'provider',
    })
  })

  it('is added up where spec V3 gives no totals', () => {
    const reported = readUsage({
      inputTokens: { total: undefined, noCache: 30, cacheRead: 60, cacheWrite: undefined },
      outputTokens: { total: undefined, text: 25, reasoning: 15 },
    })
    expect(reported).toMatchObject({ input: 90, output: 40 })
  })

  it('is read from spec V2, where some providers count the cached tokens and some do not', () => {
    const counted = { inputTokens: 100, outputTokens: 40, totalTokens: 150, reasoningTokens: 15, cachedInputTokens: 60 }
    expect(completeUsage(readUsage(counted), neverAsked)).toMatchObject({ input: 100, cachedInput: 60, total: 150 })
    expect(completeUsage(readUsage({ ...counted, inputTokens: 20 }), neverAsked)).toMatchObject({
      input: 80,
      cachedInput: 60,
    })
  })

  it.each([
    undefined,
    null,
    {},
    { inputTokens: undefined, outputTokens: Number.NaN },
    { inputTokens: {}, outputTokens: {} },
  ])('is estimated, and says so, where the provider gave %o', (raw) => {
    const usage = completeUsage(readUsage(raw), { input: () => 7, output: () => 3 })
    expect(usage).toEqual({ ...NO_USAGE, input: 7, output: 3, total: 10, basis: 'estimate' })
  })

  it('is mixed where half of it was given', () => {
    const usage = completeUsage(readUsage({ inputTokens: 50 }), { ...neverAsked, output: () => 3 })
    expect(usage).toMatchObject({ input: 50, output: 3, basis: 'mixed' })
  })

  it('adds up, whatever the order, and keeps who counted', () => {
    const count = fc.nat({ max: 1_000_000 })
    const usage = fc.record({
      input: count,
      cachedInput: count,
      cacheWrite: count,
      output: count,
      reasoning: count,
      total: count,
      basis: fc.constantFrom('provider', 'estimate', 'mixed') as fc.Arbitrary<Usage['basis']>,
    })
    fc.assert(
      fc.property(usage, usage, usage, (a, b, c) => {
        expect(addUsage(a, addUsage(b, c))).toEqual(addUsage(addUsage(c, a), b))
        expect(addUsage(a, b).input).toBe(a.input + b.input)
      }),
      randomly(rounds(100)),
    )
    const estimate: Usage = { ...NO_USAGE, input: 1, total: 1, basis: 'estimate' }
    expect(addUsage(NO_USAGE, estimate, undefined).basis).toBe('estimate')
    expect(addUsage(estimate, { ...estimate, basis: 'provider' }).basis).toBe('mixed')
    expect(addUsage()).toEqual(NO_USAGE)
  })
})

describe('cost', () => {
  const usage: Usage = {
    ...NO_USAGE,
    input: 1_000_000,
    cachedInput: 400_000,
    cacheWrite: 100_000,
    output: 500_000,
    total: 1_500_000,
  }

  it('weighs cached tokens by their own price', () => {
    const prices = { m: { input: 2, cachedInput: 0.5, cacheWrite: 2.5, output: 8 } }
    expect(costOf(usage, { provider: 'p', id: 'm' }, prices)).toBeCloseTo(0.5 * 2 + 0.4 * 0.5 + 0.1 * 2.5 + 0.5 * 8, 10)
    expect(costOf(usage, { provider: 'p', id: 'm' }, { m: { input: 2, output: 8 } })).toBeCloseTo(6, 10)
  })

  it('is unknown, not nothing, without a price', () => {
    expect(costOf(usage, { provider: 'p', id: 'toString' }, {})).toBeUndefined()
  })

  it('finds the exact name first, of the provider before others, then the longest beginning', () => {
    const price = (input: number) => ({ input, output: 0 })
    const table = { 'p/m-1': price(1), 'm-1': price(2), 'm-*': price(3), 'm-1-2*': price(4), '*': price(5) }
    const found = (provider: string, id: string) => findPrice(table, { provider, id })?.input
    expect([found('p', 'm-1'), found('q', 'm-1'), found('q', 'm-2'), found('q', 'm-1-2025'), found('q', 'z')]).toEqual([
      1, 2, 3, 4, 5,
    ])
  })

  it.each([
    [{ m: { input: -1, output: 1 } }],
    [{ m: { input: 1 } }],
    [{ m: { input: 1, output: 1, cachedInput: '0' } }],
    [{ m: null }],
  ])('refuses the prices %o', (prices) => {
    expect(() => checkPrices(prices as never)).toThrow(expect.objectContaining({ code: 'invalid-option' }))
  })
})

describe('an estimate of tokens', () => {
  const samples = {
    prose:
      'The customer ordered two mugs on Monday and would like to return one of them, because its handle broke off in the mail. Please tell her how to send it back and when she will have her money.',
    json: JSON.stringify({
      orderId: 'ORD-2024-8847',
      status: 'shipped',
      lines: [{ sku: 'MUG-1', quantity: 2, price: 12.5 }],
    }),
    code: 'export function add(a: number, b: number): number {\n  return a + b\n}\n',
    german: 'Die Kundin möchte eine der beiden Tassen zurückgeben, weil der Henkel in der Post abgebrochen ist.',
    chinese: '客户想退回其中一个杯子，因为手柄在邮寄过程中断了。请告诉她如何寄回以及何时能收到退款。',
  }

  it.each(Object.entries(samples))('of %s is near what a tokenizer counts', async (_kind, text) => {
    const count = await loadTokenCounter()
    const ratio = estimateTextTokens(text) / count(text)
    expect(ratio).toBeGreaterThan(0.8)
    expect(ratio).toBeLessThan(1.25)
  })

  it('counts text that spells a special token as text', async () => {
    const count = await loadTokenCounter()
    expect(count('<|endoftext|>')).toBeGreaterThan(1)
  })

  it('grows with every message, tool and file, and takes a counter of its own', () => {
    const question = makeMessage('user', 'Where is it?')
    const one = estimateTokens([question])
    expect(estimateTokens([question, question])).toBeGreaterThan(one)
    expect(estimateTokens([question], { tools: [{ name: 'getOrder', inputSchema: {} }] })).toBeGreaterThan(one)
    const image = makeMessage('user', [
      { type: 'file', mediaType: 'image/png', data: { kind: 'url', url: 'https://a.example' } },
    ])
    expect(estimateTokens([image])).toBeGreaterThan(500)
    const note = makeMessage('user', [
      { type: 'file', mediaType: 'text/plain', data: { kind: 'bytes', bytes: Buffer.from('x'.repeat(450)) } },
    ])
    expect(estimateTokens([note])).toBe(100 + estimateTokens([makeMessage('user', [])]))
    const used = makeMessage('assistant', [
      { type: 'tool-call', callId: 'c', name: 'n', input: { at: new Date(0), n: 1n } },
      { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example/a/very/long/address/that/is/never/sent' },
    ])
    expect(estimateTokens([used], { count: () => 1 })).toBe(3 + 4 + 8 + 2)
  })
})
