import { andThen, forEachInTurn } from '../../core/at-once.js'
import { ClaimRequiredError, FencedError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { carryWrites, newestPerItem } from '../items/carried-writes.js'
import { formatCheckpointId } from '../entry/checkpoint-id.js'
import type { Draft } from '../entry/draft.js'
import type { Append, LeaseChange, LogKey, StoredEntry } from '../contract.js'
import type { EntryCodec, SealedEntry } from '../entry/entry-codec.js'
import type { Fold } from '../entry/fold.js'
import { indexFields } from '../entry/index-state.js'
import type { LogEnvironment } from '../log-environment.js'
import type { Standing } from '../read/log-reader.js'
import type { StoreWrite } from '../items/store-write.js'
import type { CarriedWrite } from '../store-contract.js'
import type { PendingUpdate, Updated, Writer } from './update.js'

export interface Planned {
  /** Undefined when nobody wants to append anything. */
  readonly append?: Append
  readonly fold: Fold
  /** Writes to the store, for drivers that don't take them with the append. */
  readonly carried: readonly CarriedWrite[]
  readonly members: readonly {
    readonly update: PendingUpdate
    readonly entries: Updated['entries']
    readonly after: Fold
  }[]
}

/** What others than its owner may append to a claimed log. */
const GUEST_KINDS = new Set(['input', 'answer', 'cancel', 'signal', 'tag', 'adopt', 'retain', 'schedule'])

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
    if (writer.kind === 'owner' && known.epoch !== writer.epoch) {
      throw new FencedError({ log: nameLog(this.#log), epoch: writer.epoch, current: known.epoch })
    }
    const at = Math.max(this.#environment.clock.now(), known.at)
    const drafts = decide(known) ?? []
    if (writer.kind === 'fork') this.#fold = { ...known, state: writer.state, index: writer.index }
    const epoch = writer.kind === 'claim' ? known.epoch + 1 : known.epoch
    return forEachInTurn(drafts, (draft) => {
      if (writer.kind === 'guest' && known.epoch > 0 && !GUEST_KINDS.has(draft.kind)) {
        throw new ClaimRequiredError(nameLog(this.#log), draft.kind)
      }
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
    const writers = members.map(({ update }) => update.writer)
    const fork = writers.find((writer) => writer.kind === 'fork')
    const isCarried = carried.length > 0 && this.#environment.driver.capabilities.storeAtomic
    const append: Append = {
      log: this.#log,
      expect: exists ? { incarnation, seq, hash, epoch } : null,
      entries: this.#stored,
      incarnation,
      epoch: fold.epoch,
      lease: leaseChange(writers),
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

function leaseChange(writers: readonly Writer[]): LeaseChange {
  for (const writer of writers) {
    if (writer.kind === 'claim') return writer
    if (writer.kind === 'owner') return writer.release ? { kind: 'release' } : { kind: 'extend', ms: writer.ms }
  }
  return { kind: 'keep' }
}
