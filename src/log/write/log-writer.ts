import { ConflictError, isHoldfastError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { AppliedWrites } from '../items/applied-writes.js'
import { catchUp } from '../read/catch-up.js'
import type { Append, AppendResult, Head, LogKey } from '../contract.js'
import type { EntryCodec } from '../entry/entry-codec.js'
import { emptyFold, type Fold } from '../entry/fold.js'
import { hasLanded } from './has-landed.js'
import type { LogEnvironment } from '../log-environment.js'
import { type LogReader, type Standing, standingOf, withoutLoss } from '../read/log-reader.js'
import { observeSave } from '../observed.js'
import { heldError, isRefusal, originGone, outdatedError } from './refusals.js'
import { backoffMs, retry } from './retry.js'
import { type Decide, type PendingUpdate, type Settle, travelsAlone, type Updated, type Writer } from './update.js'
import { type Planned, planAppend } from './update-plan.js'

/** After this many conflicts in a row a writer gives up: something else keeps writing. */
const MAX_CONFLICTS = 1000
const APPENDED: AppendResult = { status: 'appended' }

/** An update, or another kind of write. */
type Write = PendingUpdate | (() => Promise<void>)

/** All writes of one handle, one after another, each decided on the newest fold. */
export class LogWriter {
  fold: Fold
  standing: Standing = {}
  readonly applied: AppliedWrites
  readonly #environment: LogEnvironment
  readonly #log: LogKey
  readonly #codec: EntryCodec
  readonly #reader: LogReader
  /** Something may have landed that this handle does not know about. */
  mustRefresh = false
  /**
   * The fold came from a cache. Only an append that lands proves that it was the newest; nothing else may follow from
   * it.
   */
  isUnconfirmed = false
  /** An unconfirmed fold was found to be an earlier state of the same log. */
  isBehind = false
  #queue: Write[] = []
  #draining = false

  constructor(environment: LogEnvironment, log: LogKey, codec: EntryCodec, reader: LogReader) {
    this.#environment = environment
    this.#log = log
    this.#codec = codec
    this.#reader = reader
    this.applied = new AppliedWrites(environment, log, reader)
    this.fold = emptyFold(environment.randomId())
  }

  submit(decide: Decide, writer: Writer): Promise<Updated> {
    return new Promise((resolve, reject) => this.post(decide, writer, { resolve, reject }))
  }

  /** Like `submit`, for callers that do not wait for a promise. */
  post(decide: Decide, writer: Writer, { resolve, reject }: Settle): void {
    this.#enqueue({ decide, writer, appendId: this.#environment.randomId(), resolve, reject })
  }

  /** Does another kind of write, while none of these is in progress. */
  alone<T>(write: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.#enqueue(() => write().then(resolve, reject)))
  }

  /** Reads on from `known`. A head read before `known` was learned would look like a loss, so `known` comes first. */
  async refresh(known: Fold = this.fold, head?: Head): Promise<void> {
    if (this.isUnconfirmed) throw outdatedError(this.#log)
    const { driver, clock } = this.#environment
    const [newest] = await Promise.all([head ?? driver.head(this.#log), clock.sync()])
    const fold = await catchUp(this.#environment, this.#log, this.#reader, known, newest)
    // In the meantime an append of ours may have landed: what a handle knows never goes back.
    if (this.fold === known || fold.seq > this.fold.seq) this.fold = fold
    if (newest) this.standing = standingOf(newest)
    this.mustRefresh = false
    await this.applied.catchUp(this.fold, newest?.applied)
  }

  #enqueue(write: Write): void {
    this.#queue.push(write)
    if (!this.#draining) void this.#drain()
  }

  // Updates that wait while an append is in progress are decided one after another and sent as one append.
  async #drain(): Promise<void> {
    this.#draining = true
    while (this.#queue.length > 0) {
      const next = this.#queue[0] as Write
      if (typeof next === 'function') {
        this.#queue.shift()
        await next()
        continue
      }
      const group = this.#takeGroup()
      try {
        await this.#commit(group)
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#draining = false
  }

  #takeGroup(): readonly PendingUpdate[] {
    const alone = this.#queue.findIndex((each) => typeof each === 'function' || travelsAlone(each.writer))
    return this.#queue.splice(0, alone === -1 ? this.#queue.length : Math.max(alone, 1)) as PendingUpdate[]
  }

  async #commit(group: readonly PendingUpdate[]): Promise<void> {
    const begun = this.#environment.clock.monotonic()
    let members = group
    for (let conflicts = 0; conflicts <= MAX_CONFLICTS; conflicts++) {
      if (this.mustRefresh) await retry(this.#environment, () => this.refresh())
      const known = this.fold
      const planning = planAppend(this.#log, this.#codec, this.#environment, known, members, this.standing)
      const plan = planning instanceof Promise ? await planning : planning
      members = plan.members.map(({ update }) => update)
      if (plan.append === undefined) return settle(plan)
      let result: AppendResult
      try {
        result = await this.#send(plan.append)
      } catch (error) {
        if (members.length > 1 && isRefusal(error)) return this.#commitEach(members)
        throw error
      }
      if (result.status === 'appended') {
        this.isUnconfirmed = false
        this.fold = plan.fold
        // Whoever owns the log from here on was told what may be missing.
        if (plan.append.lease.kind === 'claim') this.standing = withoutLoss(this.standing)
        if (!this.applied.isDone(plan.fold)) await this.applied.apply(known, plan.fold, plan.carried)
        observeSave(this.#environment, plan.append, plan.carried, begun)
        return settle(plan)
      }
      if (result.status === 'held') {
        // It ends where we thought; otherwise the result would be a conflict.
        this.isUnconfirmed = false
        throw heldError(this.#log, result.head)
      }
      if (this.isUnconfirmed) {
        const { incarnation, seq } = known
        this.isBehind = result.head?.incarnation === incarnation && result.head.seq > seq
        throw outdatedError(this.#log)
      }
      this.#environment.observer.count('holdfast.conflicts')
      if (result.head === undefined && plan.append.requires) throw originGone(this.#log, plan.append)
      await retry(this.#environment, () => this.refresh(known, result.head))
      // Writers that keep colliding back off; the first collisions are not worth waiting for.
      if (conflicts > 2) await this.#environment.clock.sleep(Math.random() * Math.min(conflicts, 20))
    }
    throw new ConflictError(`${nameLog(this.#log)} was changed by others ${MAX_CONFLICTS} times.`, { log: this.#log })
  }

  /** What the backend refused as a whole is sent again one by one, so that a bad update fails alone. */
  async #commitEach(members: readonly PendingUpdate[]): Promise<void> {
    for (const member of members) await this.#commit([member]).catch(member.reject)
  }

  /**
   * Sends an append until its outcome is known. After a lost acknowledgment it first looks for its own entry after the
   * head it built on: found means done, not found means repeat. Repeating is harmless, because the log no longer ends
   * where the append expects once it landed.
   */
  #send(append: Append): Promise<AppendResult> {
    const { commit, clock, retryMs } = this.#environment
    const deadline = clock.monotonic() + retryMs
    return commit.submit(append).catch((error: unknown) => this.#sendAgain(append, error, deadline))
  }

  async #sendAgain(append: Append, failure: unknown, deadline: number): Promise<AppendResult> {
    const { driver, commit, clock } = this.#environment
    let error = failure
    let mayHaveLanded = false
    for (let attempt = 0; ; attempt++) {
      const definite = isHoldfastError(error) && (error.data.written === 'nothing' || error.code === 'closed')
      mayHaveLanded ||= !definite
      // A look that fails says nothing; the loop decides how long to continue.
      if (mayHaveLanded && (await hasLanded(driver, append).catch(() => false))) return APPENDED
      if ((isHoldfastError(error) && !error.retryable) || clock.monotonic() >= deadline) {
        // It may land after all: the next update looks before it decides.
        this.mustRefresh = true
        throw error
      }
      await clock.sleep(backoffMs(attempt))
      try {
        const result = await commit.submit(append, true)
        if (result.status !== 'appended' && mayHaveLanded && (await hasLanded(driver, append))) return APPENDED
        return result
      } catch (again) {
        error = again
      }
    }
  }
}

function settle({ members }: Planned): void {
  for (const { update, entries, after } of members) update.resolve({ entries, fold: after })
}
