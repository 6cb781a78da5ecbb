import { FencedError, InvalidOptionError } from '../core/errors.js'
import { nameLog } from '../core/log-name.js'
import type { SqlSession } from './contract.js'
import type { Draft } from './draft.js'
import type { Fold } from './fold.js'
import type { Log } from './log.js'
import { DEFAULT_TIMEOUT_MS, type Transacted, type TransactRequest } from './transact.js'
import type { Decide, Updated } from './update.js'

/** How a worker takes a log for itself. */
export interface ClaimOptions {
  /** Names the worker, for people who look. */
  readonly owner: string
  /** How long the claim holds without a sign of life. */
  readonly ms: number
  /** Takes the log even while another's lease runs. */
  readonly force?: boolean
  /** Entries that travel with the claim in one append, decided on the state it takes over. Throwing claims nothing. */
  readonly decide?: Decide
}

interface ClaimActions {
  update(decide: Decide, release: boolean): Promise<Updated>
  transact<T>(request: TransactRequest<T>): Promise<Transacted<T>>
  renew(ms: number): Promise<boolean>
}

/** The right to run a log, for as long as nobody else claims it. Every append of the owner prolongs the lease. */
export class Claim {
  readonly log: Log
  readonly epoch: number
  readonly owner: string
  readonly ms: number
  readonly #actions: ClaimActions

  constructor(log: Log, epoch: number, options: ClaimOptions, actions: ClaimActions) {
    this.log = log
    this.epoch = epoch
    this.owner = options.owner
    this.ms = options.ms
    this.#actions = actions
  }

  /** Appends as the owner. Rejects with FencedError, and writes nothing, once another took over. */
  update(decide: Decide): Promise<Updated> {
    return this.#actions.update(decide, false)
  }

  /** Appends as the owner and lets go in the same breath. Deciding on nothing keeps the claim. */
  conclude(decide: Decide): Promise<Updated> {
    return this.#actions.update(decide, true)
  }

  /**
   * Runs SQL of your own and records what came of it, in one transaction: both stay or neither. `decide` makes the
   * entries, at least one, of the result. `work` runs again, and everything it did is undone before, when a guest
   * appended meanwhile or the database asks for it: it must do nothing but SQL. Only on SQLite and Postgres.
   */
  transact<T>(
    work: (sql: SqlSession) => Promise<T>,
    decide: (fold: Fold, result: T) => readonly Draft[],
    options: { readonly timeoutMs?: number } = {},
  ): Promise<Transacted<T>> {
    return this.#actions.transact({ work, decide, timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS })
  }

  /** Prolongs the lease during long work that appends nothing. */
  async renew(): Promise<void> {
    if (!(await this.#actions.renew(this.ms))) throw await this.#fenced()
  }

  /** Lets go, with a last append if there is something to say; otherwise without an entry. */
  async release(decide?: Decide): Promise<void> {
    const said = decide ? await this.#actions.update(decide, true) : undefined
    if (said && said.entries.length > 0) return
    if (!(await this.#actions.renew(0))) throw await this.#fenced()
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
    throw new InvalidOptionError('ms', 'must be 1 to 86,400,000', 'Pass the lease in milliseconds, for example 10000.')
  }
}
