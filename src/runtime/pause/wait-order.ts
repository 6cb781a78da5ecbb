import { AsyncLocalStorage } from 'node:async_hooks'

/** A wait without a key. */
export interface UnkeyedWait {
  /** Which one of its name it is, from 0. */
  readonly place: number
  /** Whether anything else of the function was open at any time while it was. */
  readonly isBeside: boolean
  /** Whether the function has had several things open at once, so that this wait may be one of a branch. */
  readonly hasBranches: boolean
  /** It is over. */
  end(): void
}

interface Open extends UnkeyedWait {
  isBeside: boolean
  isOpen: boolean
}

/** How many waits of each name the code that runs now has come by. */
interface Past {
  readonly of: WaitOrder
  readonly counts: ReadonlyMap<string, number>
}

const PAST = new AsyncLocalStorage<Past>()

/**
 * The order of a function's waits without a key, by which they are found again.
 *
 * The order in which they arrive is no identity: branches that run side by side come back in another order after a crash,
 * and would get each other's answers. So a wait is counted only where the program itself says what comes first: the code
 * that asks has come by all earlier ones of the name, or nothing else was open while the last of them was, nor is now. That
 * holds for one sequence of calls, also beside steps that run in parallel, and for calls made in one go. Any other wait
 * needs a key.
 */
export class WaitOrder {
  readonly #last = new Map<string, Open>()
  readonly #open = new Set<Open>()
  #hasBranches = false

  /** The function asks for something, whatever it is, while so much else of it is open. */
  asked(others: number): void {
    if (others === 0) return
    this.#hasBranches = true
    for (const wait of this.#open) wait.isBeside = true
  }

  /**
   * The next wait of a name; undefined where its place depends on what happens to come first.
   * @param others how much else of the function is open now.
   */
  next(name: string, others: number): UnkeyedWait | undefined {
    const last = this.#last.get(name)
    const place = last === undefined ? 0 : last.place + 1
    const past = PAST.getStore()
    const counts = past?.of === this ? past.counts : NONE
    const isAlone = others === 0 && last !== undefined && !last.isOpen && !last.isBeside
    if ((counts.get(name) ?? 0) !== place && !isAlone) return undefined
    return this.#take(name, place, others, counts)
  }

  /** The next wait of a name in the order of arrival: for runs that were begun by these rules, and for replays. */
  arrived(name: string, others: number): UnkeyedWait {
    return this.#take(name, (this.#last.get(name)?.place ?? -1) + 1, others, NONE)
  }

  #take(name: string, place: number, others: number, counts: ReadonlyMap<string, number>): UnkeyedWait {
    const isBranching = () => this.#hasBranches
    const close = () => this.#open.delete(wait)
    const wait: Open = {
      place,
      isBeside: others > 0,
      isOpen: true,
      get hasBranches() {
        return isBranching()
      },
      end() {
        wait.isOpen = false
        close()
      },
    }
    this.#last.set(name, wait)
    this.#open.add(wait)
    // For the code that goes on from here. Others that wait meanwhile have a past of their own.
    PAST.enterWith({ of: this, counts: new Map(counts).set(name, place + 1) })
    return wait
  }
}

const NONE: ReadonlyMap<string, number> = new Map()
