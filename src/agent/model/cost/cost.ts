import { InvalidOptionError } from '../../../core/errors.js'
import type { ModelRef } from '../../messages/message.js'
import type { Usage } from './usage.js'

/** The price of a million tokens, in any currency; costs are in the same one. */
export interface Price {
  readonly input: number
  readonly output: number
  /** Default: `input`. */
  readonly cachedInput?: number
  /** Default: `input`. */
  readonly cacheWrite?: number
}

/**
 * Prices by model: `'gpt-4o'`, `'openai.chat/gpt-4o'` for one provider's, `'gpt-4o*'` for every model whose name begins
 * that way. An exact name is looked up first, then the longest prefix.
 */
export type PriceTable = Readonly<Record<string, Price>>

export function checkPrices(table: PriceTable, field = 'prices'): void {
  for (const [model, price] of Object.entries(table)) {
    for (const kind of ['input', 'output', 'cachedInput', 'cacheWrite'] as const) {
      const value: unknown = price?.[kind]
      if (value === undefined && (kind === 'cachedInput' || kind === 'cacheWrite')) continue
      if (typeof value === 'number' && Number.isFinite(value) && value >= 0) continue
      throw new InvalidOptionError(
        `${field}[${JSON.stringify(model)}].${kind}`,
        `must be 0 or more, not ${String(value)}`,
        'Pass what a million tokens cost.',
      )
    }
  }
}

export function findPrice(table: PriceTable, model: Pick<ModelRef, 'provider' | 'id'>): Price | undefined {
  const names = [`${model.provider}/${model.id}`, model.id]
  for (const name of names) {
    if (Object.hasOwn(table, name)) return table[name]
  }
  let longest = ''
  for (const pattern of Object.keys(table)) {
    if (!pattern.endsWith('*') || pattern.length <= longest.length) continue
    if (names.some((name) => name.startsWith(pattern.slice(0, -1)))) longest = pattern
  }
  return longest === '' ? undefined : table[longest]
}

/** What the tokens cost, or undefined if no price is known: an unknown cost must not count as zero. */
export function costOf(usage: Usage, model: Pick<ModelRef, 'provider' | 'id'>, table: PriceTable): number | undefined {
  const price = findPrice(table, model)
  if (price === undefined) return undefined
  const plain = Math.max(0, usage.input - usage.cachedInput - usage.cacheWrite)
  const millionths =
    plain * price.input +
    usage.cachedInput * (price.cachedInput ?? price.input) +
    usage.cacheWrite * (price.cacheWrite ?? price.input) +
    usage.output * price.output
  return millionths / 1_000_000
}
