import { AsyncLocalStorage } from 'node:async_hooks'
import { CALLED, shortHash } from '../step/trail.js'

/** A wait without a key. */
export interface UnkeyedWait {
  /** Which one of its name it is, from 0. */
  readonly place: number
  /** What the code that asks came by last, for its record. Undefined where waits are told apart by arrival alone. */
  readonly past: string | undefined
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

/** What the code that runs now has come by. Code that runs beside it has a past of its own. */
interface Past {
  readonly of: WaitOrder | undefined
  /** How many waits of each name. */
  readonly counts: ReadonlyMap<string, number>
  /** What it asked for last, whatever that was. */
  readonly last: string
  /** Since when something further on may have been begun without a record. */
  readonly since: number | undefined
}

const PAST = new AsyncLocalStorage<Past>()
const NONE: ReadonlyMap<string, number> = new Map()
const NOTHING: Past = { of: undefined, counts: NONE, last: '', since: undefined }

/**
 * Calls a function whose code has come by nothing yet. Node keeps the past of a promise only from the first use of the
 * storage on: without this, the first function of a process would come by something that was asked for beside it.
 */
export function fromTheStart<Result>(call: () => Result): Result {
  return PAST.run(NOTHING, call)
}

/**
 * The order of a function's waits without a key, by which they are found again.
 *
 * The order in which they arrive is no identity: branches that run side by side come back in another order after a crash,
 * and would get each other's answers. So a wait is counted only where the program itself says what comes first: the code
 * that asks has come by all earlier ones of the name, or nothing else was open while the last of them was, nor is now. That
 * holds for one sequence of calls, also beside steps that run in parallel, and for calls made in one go. Any other wait
 * needs a key.
 *
 * The first wait of a name has no earlier one to show whose it is. So each record also says what came before the wait in
 * the program's own order, and is handed only to code that has come by the same.
 */
export class WaitOrder {
  readonly #since: number | undefined
  readonly #last = new Map<string, Open>()
  readonly #open = new Set<Open>()
  #hasBranches = false

  /** @param since since when something of the function may have been begun without a record. */
  constructor(since?: number) {
    this.#since = since
  }

  /** The function asks for something, whatever it is, while so much else of it is open. */
  asked(others: number): void {
    if (others === 0) return
    this.#hasBranches = true
    for (const wait of this.#open) wait.isBeside = true
  }

  /** Since when what the code that runs now asks for may have been begun without a record. */
  get since(): number | undefined {
    const past = this.#past()
    return past === undefined ? this.#since : past.since
  }

  /** What the code that runs now came by last. */
  get last(): string {
    const past = this.#past()
    return past === undefined ? CALLED : shortHash(past.last)
  }

  /** The code that runs now asks for this, and goes on behind it. */
  came(path: string, since = this.since): void {
    PAST.enterWith({ of: this, counts: this.#past()?.counts ?? NONE, last: path, since })
  }

  /**
   * The next wait of a name; undefined where its place depends on what happens to come first.
   * @param others how much else of the function is open now.
   */
  next(name: string, others: number): UnkeyedWait | undefined {
    const last = this.#last.get(name)
    const place = last === undefined ? 0 : last.place + 1
    const counts = this.#past()?.counts ?? NONE
    const isAlone = others === 0 && last !== undefined && !last.isOpen && !last.isBeside
    if ((counts.get(name) ?? 0) !== place && !isAlone) return undefined
    return this.#take(name, place, others, counts, this.last)
  }

  /** The next wait of a name in the order of arrival: for runs that were begun by these rules, and for replays. */
  arrived(name: string, others: number): UnkeyedWait {
    return this.#take(name, (this.#last.get(name)?.place ?? -1) + 1, others, NONE, undefined)
  }

  #past(): Past | undefined {
    const past = PAST.getStore()
    return past?.of === this ? past : undefined
  }

  #take(
    name: string,
    place: number,
    others: number,
    counts: ReadonlyMap<string, number>,
    past: string | undefined,
  ): UnkeyedWait {
    const isBranching = () => this.#hasBranches
    const close = () => this.#open.delete(wait)
    const wait: Open = {
      place,
      past,
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
    // For the code that goes on from here.
    PAST.enterWith({
      of: this,
      counts: new Map(counts).set(name, place + 1),
      last: `${name}[${place}]`,
      since: this.since,
    })
    return wait
  }
}
