import type { Limits } from '../codec/limits.js'
import type { Observer } from '../telemetry/observer.js'
import type { AnchorBook } from './anchors/anchor-book.js'
import type { Append, Driver, StoredEntry } from './contract.js'
import type { GroupCommit } from './write/group-commit.js'
import type { ItemSealer } from './items/item-sealer.js'
import type { KeySource } from './keys/keys.js'
import type { News } from './news/news.js'
import type { StoreClock } from './store-clock.js'
import type { CarriedWrite } from './store-contract.js'

/** What all logs of one open store share. */
export interface LogEnvironment {
  readonly driver: Driver
  readonly commit: GroupCommit
  /** Notifies those who wait of what is appended, here and elsewhere. */
  readonly news: News
  readonly clock: StoreClock
  readonly limits: Limits
  readonly blobThreshold: number
  readonly keys: KeySource | undefined
  /** Seals and opens the store's items. */
  readonly items: ItemSealer
  /** How long a write is retried while the backend does not answer, in milliseconds. */
  readonly retryMs: number
  readonly randomId: () => string
  /** Records elsewhere what was acknowledged, and compares. */
  readonly anchors: AnchorBook | undefined
  /** Told how long appends and loads take, how large they are, and what conflicts. */
  readonly observer: Observer
}

/** Reports an append that landed. Without `begun`, only its size: how long it took says nothing about saving. */
export function observeSave(
  { clock, observer, anchors }: LogEnvironment,
  { log, entries, incarnation }: Append,
  carried: readonly CarriedWrite[],
  begun?: number,
): void {
  if (anchors) {
    const { seq, hash } = entries.at(-1) as StoredEntry
    anchors.noteLog(log, { incarnation, seq, hash })
    for (const write of carried) anchors.noteItem(log.tenant, write)
  }
  if (begun !== undefined) observer.record('holdfast.checkpoint.save.duration', clock.monotonic() - begun)
  for (const { body } of entries) observer.record('holdfast.checkpoint.bytes', body.byteLength)
}

/**
 * Reports how long a load takes. Loads of a thread that doesn't exist are not reported: their speed would hide the slow
 * loads.
 */
export async function observeLoad<Loaded extends object | undefined>(
  { clock, observer }: LogEnvironment,
  loading: Promise<Loaded>,
): Promise<Loaded> {
  const begun = clock.monotonic()
  const loaded = await loading
  if (loaded !== undefined) observer.record('holdfast.checkpoint.load.duration', clock.monotonic() - begun)
  return loaded
}
