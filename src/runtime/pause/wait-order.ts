import { type Past, passHere, pastHere, withPast } from '../step/here.js'
import { CALLED, shortHash } from '../step/call/trail.js'

/** A wait without a key. */
export interface UnkeyedWait {
  /** Its index among those of its name, from 0. */
  readonly place: number
  /** What the code that asks passed last, for its record. Undefined if waits are distinguished by arrival alone. */
  readonly past: string | undefined
  /** Whether anything else in the function was open at any time while it was. */
  readonly isBeside: boolean
  /** Whether the function has had several things open at once, so that this wait may belong to a branch. */
  readonly hasBranches: boolean
  /** It is over. */
  end(): void
}

interface Open extends UnkeyedWait {
  isBeside: boolean
  isOpen: boolean
}

const NONE: ReadonlyMap<string, number> = new Map()
const NOTHING: Past = { of: undefined, counts: NONE, last: '', since: undefined }

/**
 * Calls a function whose code has passed nothing yet. Node tracks the context of a promise only from the first use of
 * the storage on: without this, the first function of a process would seem to have passed something that was requested
 * alongside it.
 */
export function fromTheStart<Result>(call: () => Result): Result {
  return withPast(NOTHING, call)
}

/**
 * The order of a function's waits without a key, by which they are found again.
 *
 * The order in which they arrive is not an identity: parallel branches arrive in another order after a crash, and would
 * get each other's answers. So a wait is counted only if the program itself says what comes first: the code that asks
 * has passed all earlier ones of the name, or nothing else was open while the last of them was, nor is now. That holds
 * for one sequence of calls, even alongside steps that run in parallel, and for calls made all at once. Any other wait
 * needs a key.
 *
 * The first wait of a name has no earlier one to show whose it is. So each record also says what came before the wait
 * in the program's own order, and is handed only to code that has passed the same.
 */
export class WaitOrder {
  readonly #since: number | undefined
  /** The newest of each name. Most functions never wait. */
  #last: Map<string, Open> | undefined
  #open: Set<Open> | undefined
  #hasBranches = false

  /** @param since since when something of the function may have been begun without a record. */
  constructor(since?: number) {
    this.#since = since
  }

  /** The function requests something, whatever it is, while this much else in it is open. */
  asked(others: number): void {
    if (others === 0) return
    this.#hasBranches = true
    for (const wait of this.#open ?? []) wait.isBeside = true
  }

  /** Since when what the code running now requests may have been begun without a record. */
  get since(): number | undefined {
    const past = this.#past()
    return past === undefined ? this.#since : past.since
  }

  /** What the code running now passed last. */
  get last(): string {
    const past = this.#past()
    return past === undefined ? CALLED : past.last
  }

  /**
   * The code running now requests something, and continues after it.
   * @param hash of what it requests.
   */
  came(hash: string, since?: number): void {
    const past = this.#past()
    passHere({
      of: this,
      counts: past?.counts ?? NONE,
      last: hash,
      since: since ?? (past === undefined ? this.#since : past.since),
    })
  }

  /**
   * The next wait of a name; undefined if its place depends on what happens to come first.
   * @param others how much else in the function is open now.
   */
  next(name: string, others: number): UnkeyedWait | undefined {
    const last = this.#last?.get(name)
    const place = last === undefined ? 0 : last.place + 1
    const counts = this.#past()?.counts ?? NONE
    const isAlone = others === 0 && last !== undefined && !last.isOpen && !last.isBeside
    if ((counts.get(name) ?? 0) !== place && !isAlone) return undefined
    return this.#take(name, place, others, counts, this.last)
  }

  /** The next wait of a name in the order of arrival: for runs that were started under these rules, and for replays. */
  arrived(name: string, others: number): UnkeyedWait {
    return this.#take(name, (this.#last?.get(name)?.place ?? -1) + 1, others, NONE, undefined)
  }

  #past(): Past | undefined {
    const past = pastHere()
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
    const close = () => this.#open?.delete(wait)
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
    this.#last ??= new Map()
    this.#last.set(name, wait)
    this.#open ??= new Set()
    this.#open.add(wait)
    // For the code that continues from here.
    passHere({
      of: this,
      counts: new Map(counts).set(name, place + 1),
      last: shortHash(`${name}[${place}]`),
      since: this.since,
    })
    return wait
  }
}
