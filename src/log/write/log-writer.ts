import { andThen, forEachInTurn } from '../../core/async/at-once.js'
import { ConflictError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Append, AppendResult, LogKey, StoredEntry } from '../contract.js'
import { formatCheckpointId } from '../entry/checkpoint-id.js'
import type { Draft } from '../entry/draft.js'
import type { EntryCodec } from '../entry/entry-codec.js'
import type { SealedEntry } from '../entry/entry-context.js'
import type { Fold } from '../entry/fold.js'
import { indexFields } from '../entry/index-state.js'
import { carryWrites, newestPerItem } from '../items/carried-writes.js'
import type { StoreWrite } from '../items/store-write.js'
import { type LogEnvironment, observeSave } from '../log-environment.js'
import type { KnownLog } from '../read/known-log.js'
import type { Standing } from '../read/catch-up.js'
import type { CarriedWrite } from '../store-contract.js'
import { isRefusal, retry } from './retry.js'
import { sendAgain } from './send-again.js'
import type { Decide, PendingUpdate, Planned, Settle, Updated, Writer } from './update.js'
import { checkEpoch, checkKind, leaseChange, travelsAlone } from './update.js'

/** After this many conflicts in a row a writer gives up: something else keeps writing. */
const MAX_CONFLICTS = 1000

/** An update, or another kind of write. */
type Write = PendingUpdate | (() => Promise<void>)

/** All writes of one handle, one after another, each decided on the newest fold. */
export class LogWriter {
  readonly known: KnownLog
  readonly #environment: LogEnvironment
  readonly #log: LogKey
  readonly #codec: EntryCodec
  readonly #queue: Write[] = []
  #draining = false

  constructor(environment: LogEnvironment, log: LogKey, codec: EntryCodec, known: KnownLog) {
    this.#environment = environment
    this.#log = log
    this.#codec = codec
    this.known = known
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

  #enqueue(write: Write): void {
    this.#queue.push(write)
    if (!this.#draining) void this.#drain()
  }

  // Updates that wait while an append is in progress are decided one after another and sent as one append.
  async #drain(): Promise<void> {
    this.#draining = true
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (typeof next === 'function') {
        this.#queue.shift()
        await next()
        continue
      }
      const alone = this.#queue.findIndex((each) => typeof each === 'function' || travelsAlone(each.writer))
      const count = alone === -1 ? this.#queue.length : Math.max(alone, 1)
      const group = this.#queue.splice(0, count) as PendingUpdate[]
      try {
        await this.#commit(group)
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#draining = false
  }

  async #commit(group: readonly PendingUpdate[]): Promise<void> {
    const { clock } = this.#environment
    const begun = clock.monotonic()
    let members = group
    for (let conflicts = 0; conflicts <= MAX_CONFLICTS; conflicts++) {
      if (this.known.mustRefresh) await retry(this.#environment, () => this.known.refresh())
      const { fold: known, standing } = this.known
      const planning = planAppend(this.#log, this.#codec, this.#environment, known, members, standing)
      const { append, fold, carried, members: decided } = planning instanceof Promise ? await planning : planning
      if (append !== undefined) {
        members = decided.map(({ update }) => update)
        let result: AppendResult
        this.known.sending = fold
        try {
          result = await this.#send(append)
        } catch (error) {
          // What the backend refused as a whole is sent again one by one, so that a bad update fails alone.
          if (members.length > 1 && isRefusal(error)) return this.#commitEach(members)
          throw error
        } finally {
          this.known.sending = undefined
        }
        if (result.status !== 'appended') {
          await this.known.conflicted(known, append, result)
          // Writers that keep colliding back off; the first collisions are not worth waiting for.
          if (conflicts > 2) await clock.sleep(Math.random() * Math.min(conflicts, 20))
          continue
        }
        this.known.landed(fold, append)
        if (!this.known.applied.isDone(fold)) await this.known.applied.apply(known, fold, carried)
        observeSave(this.#environment, append, carried, begun)
      }
      for (const { update, entries, after } of decided) update.resolve({ entries, fold: after })
      return
    }
    throw new ConflictError(`${nameLog(this.#log)} was changed by others ${MAX_CONFLICTS} times.`, { log: this.#log })
  }

  async #commitEach(members: readonly PendingUpdate[]): Promise<void> {
    for (const member of members) await this.#commit([member]).catch(member.reject)
  }

  /** Sends an append until its outcome is known. */
  #send(append: Append): Promise<AppendResult> {
    const { commit, clock, retryMs } = this.#environment
    const deadline = clock.monotonic() + retryMs
    return commit.submit(append).catch((failure: unknown) =>
      sendAgain(this.#environment, append, failure, deadline).catch((error: unknown) => {
        // It may land after all: the next update looks before it decides.
        this.known.mustRefresh = true
        throw error
      }),
    )
  }
}

/**
 * Decides updates one after another on the same fold and combines them into one append. One that throws fails alone.
 */
export function planAppend(
  log: LogKey,
  codec: EntryCodec,
  environment: LogEnvironment,
  known: Fold,
  updates: readonly PendingUpdate[],
  standing: Standing = {},
): Planned | Promise<Planned> {
  const plan = new Plan(log, codec, environment, known)
  return andThen(
    forEachInTurn(updates, (update) => plan.add(update)),
    () => plan.make(standing),
  )
}

class Plan {
  readonly #log: LogKey
  readonly #codec: EntryCodec
  readonly #environment: LogEnvironment
  readonly #known: Fold
  readonly #members: Planned['members'][number][] = []
  #fold: Fold
  #stored: StoredEntry[] = []
  #carried: CarriedWrite[] = []

  constructor(log: LogKey, codec: EntryCodec, environment: LogEnvironment, known: Fold) {
    this.#log = log
    this.#codec = codec
    this.#environment = environment
    this.#known = known
    this.#fold = known
  }

  add(update: PendingUpdate): undefined | Promise<undefined> {
    const before = { fold: this.#fold, stored: this.#stored.length, carried: this.#carried.length }
    const fail = (error: unknown): undefined => {
      this.#fold = before.fold
      this.#stored.length = before.stored
      this.#carried.length = before.carried
      update.reject(error)
    }
    const succeed = (): undefined => {
      const entries = this.#stored.slice(before.stored).map(({ seq, hash }) => ({
        id: formatCheckpointId(this.#log.branch, seq, hash),
        seq,
        hash,
      }))
      this.#members.push({ update, entries, after: this.#fold })
    }
    try {
      const sealing = this.#sealDrafts(update)
      return sealing instanceof Promise ? sealing.then(succeed, fail) : succeed()
    } catch (error) {
      return fail(error)
    }
  }

  #sealDrafts({ decide, writer, appendId }: PendingUpdate): undefined | Promise<undefined> {
    const known = this.#fold
    checkEpoch(this.#log, known, writer)
    const at = Math.max(this.#environment.clock.now(), known.at)
    const drafts = decide(known) ?? []
    if (writer.kind === 'fork') this.#fold = { ...known, state: writer.state, index: writer.index }
    const epoch = writer.kind === 'claim' ? known.epoch + 1 : known.epoch
    return forEachInTurn(drafts, (draft) => {
      checkKind(this.#log, known, writer, draft)
      const isFork = writer.kind === 'fork' && this.#fold.seq < 0
      const sealing = { appendId, epoch, at, ...(isFork ? { base: writer.base } : {}) }
      return andThen(this.#codec.seal(this.#fold, draft, sealing), (sealed) => this.#take(sealed, draft))
    })
  }

  #take({ entry, fold }: SealedEntry, { store }: Draft): undefined | Promise<undefined> {
    this.#fold = fold
    this.#stored.push(entry)
    return store === undefined ? undefined : this.#carry(fold, store)
  }

  #carry(fold: Fold, store: readonly StoreWrite[]): undefined | Promise<undefined> {
    return andThen(carryWrites(this.#environment, this.#log, fold, store), (carried): undefined => {
      for (const write of carried) this.#carried.push(write)
    })
  }

  make({ generation }: Standing): Planned {
    const known = this.#known
    const fold = this.#fold
    const carried = this.#carried
    const members = this.#members
    if (this.#stored.length === 0) return { fold, carried, members }
    const exists = known.seq >= 0
    const { incarnation, seq, hash, epoch } = known
    const updates = members.map(({ update }) => update)
    const fork = updates.map(({ writer }) => writer).find((writer) => writer.kind === 'fork')
    const isCarried = carried.length > 0 && this.#environment.driver.capabilities.storeAtomic
    const append: Append = {
      log: this.#log,
      expect: exists ? { incarnation, seq, hash, epoch } : null,
      entries: this.#stored,
      incarnation,
      epoch: fold.epoch,
      lease: leaseChange(updates),
      ...(generation === undefined ? {} : { generation }),
      index: indexFields(fold.index, fold.at, fold.origin),
      labelsChanged: !exists || fold.index.tags !== known.index.tags || fold.index.metadata !== known.index.metadata,
      ...(isCarried ? { carried: newestPerItem(carried) } : {}),
      ...(fork
        ? { requires: { branch: fork.base.branch as LogKey['branch'], incarnation: fork.base.incarnation } }
        : {}),
    }
    return { append, fold, carried, members }
  }
}
