/** What made a function request something. */
export interface Cause {
  /** Names what the function reacted to: its call, or the end of steps. Undefined where it did other things in between. */
  readonly after: string | undefined
  /** What it reacted to was made here, by nobody before us. */
  readonly isLive: boolean
}

/** All that happens before the event loop turns to something else. */
interface Drain {
  /** What the function reacts to; what it received at the same time can't be told apart. */
  causes: (string | undefined)[]
  readonly isLive: boolean
  /** It has asked for something since it heard of these. */
  isAnswered: boolean
}

/** More at once are not worth telling apart. */
const MAX_CAUSES = 4

/** The function has been called. */
export const CALLED = '-'

/**
 * What a function reacts to when it requests a step. Without other code in between, it requests it in the same turn of
 * the event loop in which it received what it waited for. So a program that is the same reaches the same step again at
 * the same point, however long anything takes; one that does other things in between may reach it at any time.
 */
export class Trail {
  #drain: Drain | undefined

  /** The function is called now. */
  begin(): void {
    this.#drain = undefined
    this.#react(CALLED, false)
  }

  /** The function is told now of the end of something that it requested. */
  heard(hash: string | undefined, isLive: boolean): void {
    this.#react(hash, isLive)
  }

  /** What the function reacts to now. */
  get cause(): Cause {
    if (this.#drain === undefined) return { after: undefined, isLive: false }
    const { causes, isLive } = this.#drain
    const isKnown = causes.length <= MAX_CAUSES && !causes.includes(undefined)
    if (!isKnown) return { after: undefined, isLive }
    return { after: causes.length === 1 ? causes[0] : [...causes].sort().join(), isLive }
  }

  /** The function requests a step now. */
  ask(): Cause {
    const { cause } = this
    if (this.#drain) this.#drain.isAnswered = true
    return cause
  }

  #react(cause: string | undefined, isLive: boolean): void {
    const drain = this.#drain
    if (drain === undefined) {
      const begun: Drain = { causes: [cause], isLive, isAnswered: false }
      this.#drain = begun
      // After all promises that are settled now, and before anything that was waited for outside.
      process.nextTick(() => {
        if (this.#drain === begun) this.#drain = undefined
      })
      return
    }
    if (drain.isAnswered) drain.causes = [cause]
    else drain.causes.push(cause)
    drain.isAnswered = false
  }
}

/** What a recorded step followed. */
export function causesOf(after: string): readonly string[] {
  return after.split(',')
}

/** Short, for records: what is compared are the steps of one function. */
export function shortHash(text: string): string {
  let a = 0x811c9dc5
  let b = 0x9e3779b9
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x01000193)
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13)
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36)
}
