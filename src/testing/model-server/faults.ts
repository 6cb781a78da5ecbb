import { createHash } from 'node:crypto'
import type { ScriptedAnswer } from './reply.js'

/** How often things go wrong, each from 0 to 1. What goes wrong depends on the seed and the request, not on timing. */
export interface ModelFaults {
  readonly seed: number
  /** 429 with a Retry-After. */
  readonly rate429?: number
  readonly rate500?: number
  /** A connection that is reset: half of them before the reply, half in the middle of it. */
  readonly dropRate?: number
  /** What Retry-After asks for, in seconds. Default 0. */
  readonly retryAfterSeconds?: number
}

const MAX_BODIES = 10_000

/**
 * Numbers from a seed for each request, by its content and by how often it has come. The order in which concurrent
 * requests arrive differs from run to run, so it must not matter.
 */
export class RequestDice {
  readonly #seed: number
  readonly #seen = new Map<string, number>()

  constructor(seed: number) {
    this.#seed = seed
  }

  roll(body: string): { readonly id: string; readonly numbers: readonly [number, number] } {
    const content = createHash('sha256').update(body).digest('base64')
    const before = this.#seen.get(content) ?? 0
    this.#seen.delete(content)
    this.#seen.set(content, before + 1)
    if (this.#seen.size > MAX_BODIES) {
      for (const oldest of this.#seen.keys()) {
        this.#seen.delete(oldest)
        break
      }
    }
    const digest = createHash('sha256').update(`${this.#seed} ${before} ${content}`).digest()
    const numbers = [digest.readUInt32BE(0) / 2 ** 32, digest.readUInt32BE(4) / 2 ** 32] as const
    return { id: digest.toString('hex', 8, 16), numbers }
  }
}

/** The fault that hits a request, if one does. */
export function pickFault(faults: ModelFaults, [which, how]: readonly [number, number]): ScriptedAnswer | undefined {
  const { rate429 = 0, rate500 = 0, dropRate = 0, retryAfterSeconds = 0 } = faults
  if (which < rate429) {
    const headers = { 'retry-after': String(retryAfterSeconds) }
    const message = 'Rate limit reached. Please try again later.'
    return { error: { status: 429, headers, message, type: 'requests', code: 'rate_limit_exceeded' } }
  }
  if (which < rate429 + rate500) {
    return { error: { status: 500, message: 'The server had an error while processing your request.' } }
  }
  if (which < rate429 + rate500 + dropRate) {
    return { drop: how < 0.5 ? 'before' : { afterChunks: 1 + Math.floor((how - 0.5) * 8) } }
  }
  return undefined
}
