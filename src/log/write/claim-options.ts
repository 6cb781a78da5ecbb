import { checkWhole } from '../../core/wording/choices.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { Draft } from '../entry/draft.js'
import type { Transacted, TransactRequest } from './transact.js'
import type { Decide, Settle } from './update.js'
import type { StoreClock } from '../store-clock.js'

/** How a worker takes a log for itself. */
export interface ClaimOptions {
  /** Identifies the worker to people. */
  readonly owner: string
  /** How long the claim lasts without a heartbeat. */
  readonly ms: number
  /** Takes the log even while another owner's lease is running. */
  readonly force?: boolean
  /**
   * Entries that are appended together with the claim, decided on the state it takes over. If this throws, nothing is
   * claimed.
   */
  readonly decide?: Decide
}

/** An entry that a claim was made with. */
export interface ClaimEntry {
  readonly id: string
  readonly seq: number
  readonly draft: Draft
}

/** What a claim does to its log. */
export interface ClaimActions {
  readonly made: readonly ClaimEntry[]
  readonly lease: LeaseTime
  post(decide: Decide, release: boolean, settle: Settle): void
  transact<T>(request: TransactRequest<T>): Promise<Transacted<T>>
  renew(ms: number): Promise<boolean>
}

export function checkClaimOptions({ owner, ms }: ClaimOptions): void {
  if (
    typeof owner !== 'string' ||
    owner === '' ||
    owner.length > 256 ||
    !owner.isWellFormed() ||
    /\p{Cc}/u.test(owner)
  ) {
    throw new InvalidOptionError(
      'owner',
      'must be 1 to 256 printable characters',
      'Name the worker, for example by host and pid.',
    )
  }
  checkWhole('ms', ms, 24 * 60 * 60 * 1000, 'Pass the lease in milliseconds, for example 10_000.')
}

/** A moment by both clocks: one stands still while the machine sleeps, the other can be set. */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

export function momentOf(clock: Pick<StoreClock, 'monotonic' | 'wall'>): Moment {
  return { monotonic: clock.monotonic(), wall: clock.wall() }
}

/**
 * How long a lease is known to be valid. Counted from when the last heartbeat was sent, because the store may have
 * counted from then, however late its reply came.
 */
export class LeaseTime {
  readonly #clock: StoreClock
  readonly #ms: number
  /** When the last heartbeat that arrived was sent, at the latest. */
  #sent: Moment

  constructor(clock: StoreClock, ms: number, sent: Moment) {
    this.#clock = clock
    this.#ms = ms
    this.#sent = sent
  }

  /** Below 0, another may have it. */
  get remainingMs(): number {
    const { monotonic, wall } = momentOf(this.#clock)
    return this.#ms - Math.max(monotonic - this.#sent.monotonic, wall - this.#sent.wall)
  }

  now(): Moment {
    return momentOf(this.#clock)
  }

  /** A heartbeat that was sent then arrived. */
  arrived(sent: Moment | undefined): void {
    if (sent !== undefined && sent.monotonic >= this.#sent.monotonic) this.#sent = sent
  }
}
