import { leftBegun, nondeterministic } from './errors.js'
import { isBegun, type StepRecord } from './run-state.js'

interface Held {
  readonly path: string
  readonly go: () => void
  readonly refuse: (error: unknown) => void
  /** A step that failed, and is tried again if nothing that is recorded depends on that. */
  readonly doubted?: 'read' | 'effect'
}

/**
 * Which recorded steps of an activation its function has come back to.
 *
 * Everything that a function has seen is recorded before what it did next. So it comes back to all of its records
 * without a new effect, unless it is another function by now: one that calls a step by a new name would do again what
 * is done. Effects are held back until that is ruled out.
 */
export class Revisits {
  readonly #id: string
  readonly #records: () => Readonly<Record<string, StepRecord>>
  #seen = new Set<string>()
  /** Recorded when the function was called and not come back to yet; known from the first effect on. */
  #missing: Set<string> | undefined
  #held: Held[] = []

  /** @param id where the activation's records begin; @param records all of its scope, as they are now. */
  constructor(id: string, records: () => Readonly<Record<string, StepRecord>>) {
    this.#id = id
    this.#records = records
  }

  /** How many effects wait. */
  get held(): number {
    return this.#held.length
  }

  /** Notes that the function asks for this step. False if it did before. */
  note(path: string): boolean {
    if (this.#seen.has(path)) return false
    this.#seen.add(path)
    if (this.#missing?.delete(path) && this.#missing.size === 0) this.#release(({ doubted }) => doubted !== 'effect')
    return true
  }

  /** Only effects are held back that failed before: whether the function still waits for them is to be seen. */
  get isOnlyInDoubt(): boolean {
    return this.#missing?.size === 0
  }

  /** Whether the function has asked for this step. */
  has(path: string): boolean {
    return this.#seen.has(path)
  }

  restart(): void {
    this.#seen = new Set()
    this.#missing = undefined
    this.#held = []
  }

  /** Refuses to end while a step was not asked for that is finished, or begun. */
  check(): void {
    for (const [path, record] of this.#own()) {
      if (this.#seen.has(path)) continue
      if (isBegun(record)) throw leftBegun(path)
      if (isFinished(record)) throw notRevisited(path)
    }
  }

  /** What a function that failed has to answer for: its error, or that it left an effect behind whose outcome is open. */
  explain(error: unknown): unknown {
    const left = this.#own().find(([path, record]) => isBegun(record) && !this.#seen.has(path))
    return left === undefined ? error : leftBegun(left[0], error)
  }

  /** Undefined if an effect may start now; otherwise resolves when it may. */
  hold(path: string): Promise<void> | undefined {
    const records = this.#records()
    // It was begun under this very name: what became of it is found out, whatever else the function does.
    if (Object.hasOwn(records, path) && isBegun(records[path] as StepRecord)) return undefined
    this.#missing ??= this.#notSeen()
    if (this.#missing.size === 0) return undefined
    return new Promise((go, refuse) => this.#held.push({ path, go, refuse }))
  }

  /**
   * As `hold`, for a step that failed: false when the function does not come back to the rest without that failure. An
   * effect also waits until the function has nothing else to do: one that nobody waits for any more must not happen.
   */
  holdDoubted(path: string, effect: 'read' | 'effect'): Promise<boolean> | true {
    this.#missing ??= this.#notSeen()
    if (this.#missing.size === 0 && effect === 'read') return true
    return new Promise((resolve) => {
      this.#held.push({ path, go: () => resolve(true), refuse: () => resolve(false), doubted: effect })
    })
  }

  /**
   * The function waits only for what is held back. If it has come back to all that is recorded, it waits for steps that
   * failed before, and they are tried again. If not, it went on from a failure of one of those, and is told so again: of
   * each effect, because the function may want none of them since; of reads one by one, another first each time the run
   * is resumed, because it is not known which it was. If there are none it is another function, and its effects must not
   * happen. Returns whether a failure was handed out again.
   */
  decide(turn: number): boolean {
    if (this.isOnlyInDoubt) {
      this.#release(() => true)
      return false
    }
    const effects = this.#held.filter(({ doubted }) => doubted === 'effect')
    const reads = this.#held.filter(({ doubted }) => doubted === 'read')
    const failed = effects.length > 0 || reads.length === 0 ? effects : [reads[turn % reads.length] as Held]
    if (failed.length > 0) {
      this.#held = this.#held.filter((held) => !failed.includes(held))
      for (const { refuse } of failed) refuse(undefined)
      return true
    }
    const [first] = this.#held
    const [missing] = this.#missing ?? []
    if (first === undefined || missing === undefined) return false
    for (const { refuse } of this.#held.splice(0)) refuse(notRevisited(missing, first.path))
    return false
  }

  #release(which: (held: Held) => boolean): void {
    const released = this.#held.filter(which)
    this.#held = this.#held.filter((held) => !which(held))
    for (const { go } of released) go()
  }

  #notSeen(): Set<string> {
    return new Set(this.#own().flatMap(([own, record]) => (mustReturn(record) && !this.#seen.has(own) ? [own] : [])))
  }

  #own(): readonly (readonly [string, StepRecord])[] {
    const begin = this.#id === '' ? '' : `${this.#id}/`
    return Object.entries(this.#records()).filter(([path]) => path !== this.#id && path.startsWith(begin))
  }
}

function isFinished({ status }: StepRecord): boolean {
  return status === 'done' || status === 'failed'
}

// An effect that was begun may have happened, too, unless it was begun on another branch.
function mustReturn(record: StepRecord): boolean {
  return isFinished(record) || isBegun(record)
}

function notRevisited(path: string, instead?: string) {
  const held = instead === undefined ? '' : ` "${instead}", an effect, was not started.`
  return nondeterministic(`Step "${path}" is recorded, but the program did not come back to it.${held}`, path)
}
