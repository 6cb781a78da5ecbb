import { FencedError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { SqlSession } from '../contract.js'
import type { Draft } from '../entry/draft.js'
import type { Fold } from '../entry/fold.js'
import type { Log } from '../log.js'
import type { ClaimActions, ClaimEntry, ClaimOptions, LeaseTime, Moment } from './claim-options.js'
import { DEFAULT_TIMEOUT_MS, type Transacted } from './transact.js'
import type { Decide, Settle, Updated } from './update.js'

/** The right to run a log, for as long as nobody else claims it. Every append by the owner extends the lease. */
export class Claim {
  readonly log: Log
  readonly epoch: number
  readonly owner: string
  readonly ms: number
  /** What was written with it: nobody has to read that back. */
  readonly made: readonly ClaimEntry[]
  readonly #actions: ClaimActions
  readonly #lease: LeaseTime

  constructor(log: Log, epoch: number, options: ClaimOptions, actions: ClaimActions) {
    this.log = log
    this.epoch = epoch
    this.made = actions.made
    this.owner = options.owner
    this.ms = options.ms
    this.#actions = actions
    this.#lease = actions.lease
  }

  /**
   * For how long the lease is known to be valid from now on: below 0, another may have it. Counted from when the last
   * heartbeat was sent, because the store may have counted from then, however late its reply came.
   */
  get remainingMs(): number {
    return this.#lease.remainingMs
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

  #append(decide: Decide, release: boolean): Promise<Updated> {
    return new Promise((resolve, reject) => this.#post(decide, release, { resolve, reject }))
  }

  #post(decide: Decide, release: boolean, { resolve, reject }: Settle): void {
    let sent: Moment | undefined
    const sending: Decide = (fold) => {
      sent = this.#lease.now()
      return decide(fold)
    }
    const arrived = (updated: Updated) => {
      if (updated.entries.length > 0) this.#lease.arrived(sent)
      resolve(updated)
    }
    this.#actions.post(sending, release, { resolve: arrived, reject })
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
    let sent: Moment | undefined
    const sending = (fold: Fold, result: T) => {
      sent = this.#lease.now()
      return decide(fold, result)
    }
    const { timeoutMs = DEFAULT_TIMEOUT_MS } = options
    const done = await this.#actions.transact({ work, decide: sending, timeoutMs })
    this.#lease.arrived(sent)
    return done
  }

  /** Extends the lease during long work that appends nothing. */
  async renew(): Promise<void> {
    const sent = this.#lease.now()
    if (!(await this.#actions.renew(this.ms))) throw await this.#fenced()
    this.#lease.arrived(sent)
  }

  /** Releases the log, with a last append if there is something to record; otherwise without an entry. */
  async release(decide?: Decide): Promise<void> {
    const said = decide ? await this.#append(decide, true) : undefined
    if (said && said.entries.length > 0) return
    if (!(await this.#actions.renew(0))) throw await this.#fenced()
  }

  async #fenced(): Promise<FencedError> {
    const current = (await this.log.refresh()).epoch
    return new FencedError({ log: nameLog(this.log.key), epoch: this.epoch, current })
  }
}
