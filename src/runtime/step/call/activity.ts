import { EffectHeldError } from '../../errors.js'
import type { Run } from '../../run/run.js'
import type { Revisits } from './revisits.js'

/** How the function ends if it can't continue by itself. */
export interface Ends {
  isClosed(): boolean
  /** Nothing is left to do but wait. */
  suspend(): void
  fail(error: unknown): void
}

/** What a function has in progress, and when nothing of it can continue. */
export class Activity {
  /** What it requested and has not received. */
  active = 0
  /** What waits for a person, a signal, a time or another thread. */
  suspended = 0
  /** Raised whenever the function requests something. */
  asked = 0
  /** Signs of life from a function that does something else between steps. */
  beats = 0
  readonly #run: Run
  readonly #revisits: Revisits
  readonly #ends: Ends
  #onIdle: (() => void)[] = []
  /** A check is scheduled whether what is held back may continue. */
  #isJudging = false
  #isWaiting = false
  /** It was given all the time there is to reach what is recorded. */
  #hadTime = false

  constructor(run: Run, revisits: Revisits, ends: Ends) {
    this.#run = run
    this.#revisits = revisits
    this.#ends = ends
  }

  get open(): number {
    return this.active + this.suspended
  }

  restart(): void {
    this.active = 0
    this.suspended = 0
    this.asked++
  }

  /** Resolves when nothing is in progress anymore. */
  settled(): Promise<void> {
    if (this.busy === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  /** Leaves the function hanging in a promise that never settles. */
  hang(tracked = true): Promise<never> {
    this.suspended++
    // From here on counted as waiting, not as in progress: `track` of this call never ends.
    if (tracked) this.active--
    this.checkIdle()
    return never()
  }

  /** What is in progress and not held back. */
  get busy(): number {
    return this.active - this.#revisits.held
  }

  // Two turns of the event loop, so that whatever just settled can start its next step first.
  checkIdle(): void {
    if (this.#revisits.held > 0) this.#judgeSoon()
    if (this.busy > 0) return
    for (const wake of this.#onIdle.splice(0)) wake()
    if (this.suspended === 0 && this.active === 0) return
    setImmediate(() => {
      setImmediate(() => {
        if (this.busy > 0 || this.#ends.isClosed()) return
        // A function that waits for somebody may or may not come to need what is in doubt: that shows when it
        // continues.
        const isWaiting = this.suspended > 0 && this.#revisits.isOnlyInDoubt
        if (this.active > 0 && !this.#run.draining && !isWaiting) {
          if (this.#revisits.isInDoubt && this.#revisits.decide(this.#turn, this.#hadTime)) this.checkIdle()
          else void this.#waitForReturn()
        } else if (this.active + this.suspended > 0) this.#ends.suspend()
      })
    })
  }

  get #turn(): number {
    return this.#run.state.run?.takes ?? 0
  }

  /** Looks at what is held back once the function has reacted to everything it received. */
  #judgeSoon(): void {
    if (this.#isJudging) return
    this.#isJudging = true
    setImmediate(() => {
      setImmediate(() => {
        this.#isJudging = false
        if (this.#ends.isClosed()) return
        if (this.#revisits.judge()) this.checkIdle()
      })
    })
  }

  /**
   * Only what is held back is in progress. What the function does between steps may take any amount of time, and nobody
   * can see whether it does something: one that shows no sign of life for very long is ended, so that somebody looks.
   * That says nothing about its records; resumed, it waits again.
   */
  async #waitForReturn(): Promise<void> {
    if (this.#isWaiting) return
    this.#isWaiting = true
    const { clock, abort } = this.#run
    const signs = () => this.asked + this.beats
    for (let waited = 0, before = signs(); waited < RETURN_MS; waited += LOOK_MS) {
      await clock.sleep(LOOK_MS, abort.signal).catch(() => {})
      if (this.#ends.isClosed() || abort.aborted || this.busy > 0 || this.#revisits.held === 0) break
      if (this.#run.draining) this.#ends.suspend()
      if (before === signs()) continue
      before = signs()
      waited = 0
    }
    this.#isWaiting = false
    if (this.#ends.isClosed() || abort.aborted || this.busy > 0 || this.#revisits.held === 0) return
    if (this.#revisits.isInDoubt) {
      this.#hadTime = true
      this.#revisits.tell(this.#turn)
      return this.checkIdle()
    }
    const { heldFor } = this.#revisits
    if (heldFor === undefined) return
    this.#ends.fail(new EffectHeldError(heldFor.held, heldFor.missing, RETURN_MS / 60_000))
  }
}

/** How long a function may show no sign of life while an effect waits for it to reach what is recorded. */
const RETURN_MS = 10 * 60_000
/** How often to check in the meantime whether the run is to stop. */
const LOOK_MS = 200

export function never(): Promise<never> {
  return new Promise(() => {})
}
