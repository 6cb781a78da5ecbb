import type { Principal } from '../access/principal.js'
import { HttpProblem } from './problem.js'

/** Counts open streams, so that one caller can't take them all. */
export class StreamSlots {
  readonly #perPrincipal: number
  readonly #open = new Map<string, number>()

  constructor(perPrincipal: number) {
    this.#perPrincipal = perPrincipal
  }

  /** How many streams are open, of all callers. */
  get size(): number {
    let size = 0
    for (const count of this.#open.values()) size += count
    return size
  }

  /** A place for one stream, to be given back once. */
  take({ tenant, subject }: Principal): { release(): void } {
    const who = JSON.stringify([tenant, subject])
    const open = this.#open.get(who) ?? 0
    if (open >= this.#perPrincipal) {
      throw new HttpProblem(429, 'too-many-streams', `You have ${open} streams open, which is the limit.`, {
        remedy: 'Close one, or raise `limits.streamsPerPrincipal`.',
        fields: { limit: this.#perPrincipal },
        headers: { 'retry-after': '1' },
      })
    }
    this.#open.set(who, open + 1)
    let isTaken = true
    return {
      release: () => {
        if (!isTaken) return
        isTaken = false
        const left = (this.#open.get(who) ?? 1) - 1
        if (left > 0) this.#open.set(who, left)
        else this.#open.delete(who)
      },
    }
  }
}
