import { ClaimRequiredError, FencedError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { carryWrites, newestPerItem } from '../items/carried-writes.js'
import { formatCheckpointId } from '../entry/checkpoint-id.js'
import type { Append, LeaseChange, LogKey, StoredEntry } from '../contract.js'
import type { EntryCodec } from '../entry/entry-codec.js'
import type { Fold } from '../entry/fold.js'
import { indexFields } from '../entry/index-state.js'
import type { LogEnvironment } from '../log-environment.js'
import type { Standing } from '../read/log-reader.js'
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

/** What may be appended to a claimed log by others than its owner. */
const GUEST_KINDS = new Set(['input', 'answer', 'cancel', 'signal', 'tag', 'adopt'])

/** Decides updates one after another on the same fold and makes one append of them. One that throws fails alone. */
export async function planAppend(
  log: LogKey,
  codec: EntryCodec,
  environment: LogEnvironment,
  known: Fold,
  updates: readonly PendingUpdate[],
  { generation }: Standing = {},
): Promise<Planned> {
  let fold = known
  const stored: StoredEntry[] = []
  const carried: CarriedWrite[] = []
  const members: Planned['members'][number][] = []
  for (const update of updates) {
    try {
      const drafted = await sealDrafts(log, codec, environment, fold, update)
      fold = drafted.fold
      stored.push(...drafted.stored)
      carried.push(...drafted.carried)
      const entries = drafted.stored.map(({ seq, hash }) => ({
        id: formatCheckpointId(log.branch, seq, hash),
        seq,
        hash,
      }))
      members.push({ update, entries, after: fold })
    } catch (error) {
      update.reject(error)
    }
  }
  if (stored.length === 0) return { fold, carried, members }
  const exists = known.seq >= 0
  const { incarnation, seq, hash, epoch } = known
  const writers = members.map(({ update }) => update.writer)
  const fork = writers.find((writer) => writer.kind === 'fork')
  const append: Append = {
    log,
    expect: exists ? { incarnation, seq, hash, epoch } : null,
    entries: stored,
    incarnation,
    epoch: fold.epoch,
    lease: leaseChange(writers),
    ...(generation === undefined ? {} : { generation }),
    index: indexFields(fold.index, fold.at, fold.origin),
    labelsChanged: !exists || fold.index.tags !== known.index.tags || fold.index.metadata !== known.index.metadata,
    ...(carried.length > 0 && environment.driver.capabilities.storeAtomic ? { carried: newestPerItem(carried) } : {}),
    ...(fork ? { requires: { branch: fork.base.branch as LogKey['branch'], incarnation: fork.base.incarnation } } : {}),
  }
  return { append, fold, carried, members }
}

async function sealDrafts(
  log: LogKey,
  codec: EntryCodec,
  environment: LogEnvironment,
  known: Fold,
  { decide, writer, appendId }: PendingUpdate,
): Promise<{ fold: Fold; stored: StoredEntry[]; carried: CarriedWrite[] }> {
  if (writer.kind === 'owner' && known.epoch !== writer.epoch) {
    throw new FencedError({ log: nameLog(log), epoch: writer.epoch, current: known.epoch })
  }
  const at = Math.max(environment.clock.now(), known.at)
  const drafts = decide(known) ?? []
  const stored: StoredEntry[] = []
  const carried: CarriedWrite[] = []
  let fold = writer.kind === 'fork' ? { ...known, state: writer.state, index: writer.index } : known
  const epoch = writer.kind === 'claim' ? known.epoch + 1 : known.epoch
  for (const draft of drafts) {
    if (writer.kind === 'guest' && known.epoch > 0 && !GUEST_KINDS.has(draft.kind)) {
      throw new ClaimRequiredError(nameLog(log), draft.kind)
    }
    const isFork = writer.kind === 'fork' && fold.seq < 0
    const sealed = await codec.seal(fold, draft, { appendId, epoch, at, ...(isFork ? { base: writer.base } : {}) })
    fold = sealed.fold
    stored.push(sealed.entry)
    if (draft.store) carried.push(...(await carryWrites(environment, log, fold, draft.store)))
  }
  return { fold, stored, carried }
}

function leaseChange(writers: readonly Writer[]): LeaseChange {
  for (const writer of writers) {
    if (writer.kind === 'claim') return writer
    if (writer.kind === 'owner') return writer.release ? { kind: 'release' } : { kind: 'extend', ms: writer.ms }
  }
  return { kind: 'keep' }
}
