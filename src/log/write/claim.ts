import { describeGiven } from '../../core/choices.js'
import { FencedError, InvalidOptionError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { SqlSession } from '../contract.js'
import type { Draft } from '../entry/draft.js'
import type { Fold } from '../entry/fold.js'
import type { Log } from '../log.js'
import type { StoreClock } from '../store-clock.js'
import { DEFAULT_TIMEOUT_MS, type Transacted, type TransactRequest } from './transact.js'
import type { Decide, Settle, Updated } from './update.js'

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

/** A moment by both clocks: one stands still while the machine sleeps, the other can be set. */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

export function momentOf(clock: Pick<StoreClock, 'monotonic' | 'wall'>): Moment {
  return { monotonic: clock.monotonic(), wall: clock.wall() }
}

interface ClaimActions {
  readonly clock: StoreClock
  /** When the claim was sent. */
  readonly sent: Moment
  post(decide: Decide, release: boolean, settle: Settle): void
  transact<T>(request: TransactRequest<T>): Promise<Transacted<T>>
  renew(ms: number): Promise<boolean>
}

/** The right to run a log, for as long as nobody else claims it. Every append by the owner extends the lease. */
export class Claim {
  readonly log: Log
  readonly epoch: number
  readonly owner: string
  readonly ms: number
  readonly #actions: ClaimActions
  /** When the last heartbeat that arrived was sent, at the latest. */
  #sent: Moment

  constructor(log: Log, epoch: number, options: ClaimOptions, actions: ClaimActions) {
    this.log = log
    this.epoch = epoch
    this.owner = options.owner
    this.ms = options.ms
    this.#actions = actions
    this.#sent = actions.sent
  }

  /**
   * For how long the lease is known to be valid from now on: below 0, another may have it. Counted from when the last
   * heartbeat was sent, because the store may have counted from then, however late its reply came.
   */
  get remainingMs(): number {
    const { monotonic, wall } = momentOf(this.#actions.clock)
    return this.ms - Math.max(monotonic - this.#sent.monotonic, wall - this.#sent.wall)
  }

  /** Appends as the owner. Rejects with FencedError, and writes nothing, once another took over. */
  update(decide: Decide): Promise<Updated> {
    return this.#append(decide, false)
  }

  /** Like `update`, for callers that do not wait for a promise. */
  post(decide: Decide, settle: Settle): void {
    this.#post(decide, false, settle)
  }

  /** Appends as the owner and releases the log in the same step. Deciding on nothing keeps the claim. */
  conclude(decide: Decide): Promise<Updated> {
    return this.#append(decide, true)
  }

  /**
   * Runs your own SQL and records its result, in one transaction: either both are kept or neither. `decide` turns the
   * result into entries, at least one. `work` runs again, after everything it did is undone, if a guest appended in the
   * meantime or the database asks for it: it must do nothing but SQL. Only on SQLite and Postgres.
   */
  async transact<T>(
    work: (sql: SqlSession) => Promise<T>,
    decide: (fold: Fold, result: T) => readonly Draft[],
    options: { readonly timeoutMs?: number } = {},
  ): Promise<Transacted<T>> {
    let sent = this.#sent
    const sending = (fold: Fold, result: T) => {
      sent = momentOf(this.#actions.clock)
      return decide(fold, result)
    }
    const { timeoutMs = DEFAULT_TIMEOUT_MS } = options
    const done = await this.#actions.transact({ work, decide: sending, timeoutMs })
    this.#arrived(sent)
    return done
  }

  /** Extends the lease during long work that appends nothing. */
  async renew(): Promise<void> {
    const sent = momentOf(this.#actions.clock)
    if (!(await this.#actions.renew(this.ms))) throw await this.#fenced()
    this.#arrived(sent)
  }

  /** Releases the log, with a last append if there is something to record; otherwise without an entry. */
  async release(decide?: Decide): Promise<void> {
    const said = decide ? await this.#append(decide, true) : undefined
    if (said && said.entries.length > 0) return
    if (!(await this.#actions.renew(0))) throw await this.#fenced()
  }

  #append(decide: Decide, release: boolean): Promise<Updated> {
    return new Promise((resolve, reject) => this.#post(decide, release, { resolve, reject }))
  }

  #post(decide: Decide, release: boolean, { resolve, reject }: Settle): void {
    let sent = this.#sent
    const sending: Decide = (fold) => {
      sent = momentOf(this.#actions.clock)
      return decide(fold)
    }
    const arrived = (updated: Updated) => {
      if (updated.entries.length > 0) this.#arrived(sent)
      resolve(updated)
    }
    this.#actions.post(sending, release, { resolve: arrived, reject })
  }

  #arrived(sent: Moment): void {
    if (sent.monotonic >= this.#sent.monotonic) this.#sent = sent
  }

  async #fenced(): Promise<FencedError> {
    const current = (await this.log.refresh()).epoch
    return new FencedError({ log: nameLog(this.log.key), epoch: this.epoch, current })
  }
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
  if (!Number.isSafeInteger(ms) || ms < 1 || ms > 24 * 60 * 60 * 1000) {
    throw new InvalidOptionError(
      'ms',
      `must be a whole number from 1 to 86400000, not ${describeGiven(ms)}`,
      'Pass the lease in milliseconds, for example 10_000.',
    )
  }
}
